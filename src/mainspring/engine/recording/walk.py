"""A stored stream, walked from its beginning: an input with all that was decided for it, or an event that stands alone.

What a walk does on its way is its own business: see `Journey` here, which folds what was recorded, and
`mainspring.analysis.what_if`, which decides once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, json

from mainspring.core.events import OUTPUTS, AnswerRefused, Became, Completed, Failed, Received
from mainspring.core.fold import fold
from mainspring.core.messages import Envelope, InstanceId, Kind
from mainspring.core.story import Entry
from mainspring.core.workflow import Workflow
from mainspring.engine.recording.answered_commands import Commands, command_in
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.event_rows import is_unkept, message_id_of
from mainspring.engine.recording.stored_values import instance_id, moment, read_context, read_kind
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import ErasedError, told
from mainspring.port.records import EventRow, Ref

INPUTS: Final = frozenset({"InitiatedBy", "Received", "AnswerRefused"})
# A Compensating may also have been begun from outside.
_DECIDED: Final = frozenset(cls.__name__ for cls in (*OUTPUTS, Became, Completed, Failed))
_NO_CONTEXT: Final = b'{"correlation_id":""}'


class StoredEnvelopes:
    """The envelopes of a stream's inputs, as far as its rows tell. An answer has the context of what it answers."""

    __slots__ = ("_asked", "_began", "_ref")

    def __init__(self, ref: Ref, *, wants: bool = True) -> None:
        self._ref = ref
        self._asked = Commands(wants=wants)
        self._began: bytes | None = None

    def note(self, row: EventRow) -> None:
        """Take the next row of the stream."""
        if row.event == "Began":
            self._began = None
        elif self._began is None:
            self._began = row.context
        self._asked.note(row)

    def of(self, row: EventRow, message: Any) -> Envelope[Any]:
        """Return the envelope of an input."""
        context = read_context(row.context or self._began or _NO_CONTEXT)
        own = row.context is not None
        sender: InstanceId | None = instance_id(context.sender) if own and context.sender else None
        asked = self._asked.by(self._ref, row)
        return Envelope(
            message,
            message_id_of(self._ref, row) or "",
            moment(row.time_us),
            context.correlation_id,
            Kind.COMMAND if row.kind is None else read_kind(row.kind),
            context.causation_id if own else f"{self._ref}/{row.cause}",
            sender,
            context.reply_to if own else None,
            row.actor,
            context.trace,
            context.task if own else None,
            json.decode(command_in(asked)) if row.kind in (Kind.RESULT, Kind.REPLY) else None,
        )


def beside_input(events: Sequence[Any], *, begins: bool = False) -> Sequence[Any]:
    """Return those events of a step that record what was decided; a refused answer is both input and decision.

    >>> beside_input([Received("paid"), Completed()]), beside_input([AnswerRefused("yes", "k", "no")])
    ([Completed(result=None)], [AnswerRefused(message='yes', task='k', reason='no')])
    """
    return events if events and type(events[0]) is AnswerRefused else events[2 if begins else 1 :]


class Walk:
    """Takes rows, and finds what belongs together. `state` is the present one; a reset and a new beginning go back.

    A kind of walk says in `step` what it does with an input and what was decided for it, in `alone` what with another
    event, and in `state_at` where a reset leads to.
    """

    def __init__(self, entry: WorkflowEntry, ref: Ref, workflow: Workflow[Any, Any, Any] | None = None) -> None:
        self.entry = entry
        self.ref = ref
        self.workflow = workflow or entry.workflow
        self.envelopes = StoredEnvelopes(ref, wants=entry.definition.wants_envelope)
        self.state: Any = entry.workflow.initial_state
        self.notes = True
        """Whether envelopes are asked for: what they are made of takes time to remember."""
        self._group: list[EventRow] = []
        self._open = self._begins = False

    def walk(self, row: EventRow) -> None:
        """Take the next row. A step is over when a row comes that does not belong to it."""
        if self._open and self._belongs(row):
            if self.notes:
                self.envelopes.note(row)
            self._group.append(row)
            return
        if self._group:
            self.close()
        if self.notes:
            self.envelopes.note(row)
        if row.event in INPUTS and not is_unkept(row):
            self._group.append(row)
            self._open = True
            return
        if row.event == "Began":
            self.state, self._begins = self.workflow.initial_state, True
        elif row.event == "Reset":
            self.state = self.state_at(back_to(row))
        self.alone(row)

    def close(self) -> None:
        """Know that what has come is whole."""
        group = self._group
        if group:
            self.drop()
            begins = self._begins and group[0].event in INPUTS
            if begins:
                self._begins = False
            self.step(group, begins)

    def drop(self) -> None:
        """Forget what is not whole."""
        self._group, self._open = [], False

    def step(self, group: Sequence[EventRow], begins: bool) -> None:
        """Go on by what is whole: an input with what was decided for it, or a row that was left to wait for this."""
        raise NotImplementedError

    def alone(self, row: EventRow) -> None:
        """Take a row that no input was decided to: here it waits, as an input would, for the next one."""
        self._group.append(row)

    def state_at(self, version: int) -> Any:
        """Return the state that a reset goes back to."""
        raise NotImplementedError

    def _belongs(self, row: EventRow) -> bool:
        """Return True if a row was decided for the input that is open."""
        if row.event != "Compensating":
            return row.event in _DECIDED
        # What follows is undone by the engine. One that was begun from outside was not decided by it.
        self._open = False
        return not read_detail(row.detail).cancelled


def back_to(reset: EventRow) -> int:
    """Return the version that a reset went back to.

    >>> back_to(EventRow(5, "Reset", 0, detail=b'{"version":3}'))
    3
    """
    return read_detail(reset.detail).version or 0


# ---- a walk that folds what was recorded


class Happened(Struct, frozen=True):
    """One event, between the states before and after it."""

    entry: Entry
    before: Any = None
    state: Any = None


class Moment(Struct, frozen=True):
    """An input with what was decided for it, or one event alone, between the states before and after.

    `envelope` is that of the input, if there is one, and `begins` says whether it began the instance: then `before` is
    the initial state, in which it was decided, and not what its Began has made of that. `abandoned` says that a reset,
    or another beginning, left it behind later: it does not count any more. `migrated` says that the instance went on
    under another version of its workflow later.
    """

    happened: tuple[Happened, ...]
    before: Any
    after: Any
    envelope: Envelope[Any] | None = None
    begins: bool = False
    abandoned: bool = False
    migrated: bool = False

    @property
    def position(self) -> int:
        """That of its first event in the stream."""
        return self.happened[0].entry.position

    @property
    def last(self) -> int:
        """The version of its last event."""
        return self.happened[-1].entry.position

    @property
    def is_step(self) -> bool:
        """Whether an input was taken."""
        return self.envelope is not None


class Stopped(Struct, frozen=True):
    """Why nothing can be told from a position on: today's code cannot read or fold its event, or it was `erased`."""

    position: int
    problem: str
    erased: ErasedError | None = None


class Turns(Struct, frozen=True):
    """Where a stream turns: which versions a later reset goes back to, which do not count, where it was migrated.

    >>> turns = turns_of([EventRow(1, "Began", 0), EventRow(2, "InitiatedBy", 0), EventRow(3, "Began", 0)])
    >>> turns.is_abandoned(2), turns.is_abandoned(3)
    (True, False)
    """

    targets: frozenset[int] = frozenset()
    left: tuple[tuple[int, int], ...] = ()
    migrated: int = 0

    def is_abandoned(self, version: int) -> bool:
        """Return True if a version does not count any more."""
        return any(first <= version <= last for first, last in self.left)


def turns_of(rows: Iterable[EventRow], known: Turns | None = None) -> Turns:
    """Return where a stream turns, from its next page and what is `known` of those before."""
    known = known or Turns()
    targets, left, migrated = set(known.targets), list(known.left), known.migrated
    for row in rows:
        if row.event == "Reset":
            targets.add(back_to(row))
            left = _with(left, (back_to(row) + 1, row.version - 1))
        elif row.event == "Began" and row.version > 1:
            left = _with(left, (1, row.version - 1))
        elif row.event == "Migrated":
            migrated = row.version
    return Turns(frozenset(targets), tuple(left), migrated)


def _with(left: list[tuple[int, int]], span: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the spans that are left behind with one more, which ends behind them all, without those inside of it."""
    return [*(one for one in left if one[0] < span[0]), span]


class Journey(Walk):
    """Takes the rows of a stream one after the other, and gives a moment when it is over.

    It holds the present state, and those that a reset goes back to: a stream may be as long as it likes. Where decide
    asks for envelopes, it holds what was sent too.
    """

    def __init__(
        self, entry: WorkflowEntry, ref: Ref, turns: Turns, workflow: Workflow[Any, Any, Any] | None = None
    ) -> None:
        super().__init__(entry, ref, workflow)
        self._turns = turns
        self._states: dict[int, Any] = {}
        self._over: Moment | None = None
        self.stopped: Stopped | None = None
        """Why no more rows can be taken, if one could not be read or folded; then `error` is what was raised."""
        self.error: Exception | None = None
        self.unread = False
        """Whether it could not even be read."""

    def take(self, row: EventRow) -> Moment | None:
        """Take the next row. Return the moment that it ends, if it begins another one."""
        self.walk(row)
        return self._given()

    def end(self) -> Moment | None:
        """Return the last moment, when there are no more rows."""
        self.close()
        return self._given()

    def moments(self, rows: Iterable[EventRow]) -> Iterator[Moment]:
        """Yield the moments of a whole stream, up to where it `stopped`."""
        for row in rows:
            if (over := self.take(row)) is not None:
                yield over
        if (over := self.end()) is not None:
            yield over

    def step(self, group: Sequence[EventRow], begins: bool) -> None:
        """Fold what was recorded."""
        if self.stopped is not None:
            return
        # As in the step itself: what begins an instance is decided before its Began is folded.
        before = self.workflow.initial_state if begins else self.state
        happened = tuple(self._happened(group))
        if not happened:
            return
        event, first, envelope = happened[0].entry.event, group[0], None
        if isinstance(event, Received | AnswerRefused) and not is_unkept(first):
            envelope = self.envelopes.of(first, event.message)
        self._over = Moment(
            happened,
            before,
            self.state,
            envelope,
            begins,
            self._turns.is_abandoned(first.version),
            first.version <= self._turns.migrated and first.event != "Migrated",
        )

    def state_at(self, version: int) -> Any:
        """Return the state behind a version; the initial one where there is none such."""
        return self._states.get(version, self.workflow.initial_state)

    def _happened(self, group: Sequence[EventRow]) -> Iterator[Happened]:
        for row in group:
            before, what = self.state, "read"
            try:
                entry = self.entry.recorder.entry(self.ref, row)
                what = "folded"
                self.state = fold(self.workflow, before, [self.entry.recorder.as_folded(self.ref, row, entry.event)])
            except Exception as error:  # noqa: BLE001  an author's upcaster or evolve may raise anything; it is the answer
                erased = error if isinstance(error, ErasedError) else None
                self.stopped = Stopped(row.version, f"cannot be {what}: {told(error)}", erased)
                self.error, self.unread = error, what == "read"
                return
            if row.version in self._turns.targets:
                self._states[row.version] = self.state
            yield Happened(entry, before, self.state)

    def _given(self) -> Moment | None:
        over, self._over = self._over, None
        return over
