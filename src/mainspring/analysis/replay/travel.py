"""Time travel: a stream walked from its beginning, with the state before and after every event.

What belongs together is one moment: an input with all that was decided for it, or an event that stands alone, such as
what an operator did.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from msgspec import Struct

from mainspring.analysis.replay.changes import StateChange, state_change
from mainspring.core.events import Began, Migrated, Received, Reset
from mainspring.core.fold import fold
from mainspring.core.messages import Envelope
from mainspring.core.replay import belongs
from mainspring.core.story import Entry
from mainspring.engine.inputs.answered_command import Commands
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.event_rows import is_unkept
from mainspring.engine.recording.redecision import envelope_of
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import ErasedError, told
from mainspring.port.records import EventRow, Ref
from mainspring.port.store import Store

EVENTS_PER_PAGE: Final = 1_000


class Happened(Struct, frozen=True):
    """One event, the state after it, and what it made of that; None where it left it alone.

    >>> Happened(Entry(1, Began())).change is None
    True
    """

    entry: Entry
    change: StateChange | None = None
    state: Any = None


class Moment(Struct, frozen=True):
    """An input with what was decided for it, or one event alone, between the states before and after.

    `envelope` is that of the input, if there is one, and `begins` says whether it began the instance: then `before` is
    the initial state, in which it was decided, and not what its Began has made of that. `abandoned` says that a reset,
    or another beginning, left it behind later: it does not count any more. `migrated` says that the instance went on
    under another version of its workflow later.

    >>> Moment((Happened(Entry(1, Began())),), before=0, after=0).position
    1
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
    """Why nothing can be told from a position on: today's code cannot read or fold its event, or it was `erased`.

    >>> Stopped(7, "cannot be folded: ZeroDivisionError: division by zero").position
    7
    """

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
        """Tell whether a version does not count any more."""
        return any(first <= version <= last for first, last in self.left)


def turns_of(rows: list[EventRow], known: Turns | None = None) -> Turns:
    """Return where a stream turns, from its next page and what is `known` of those before."""
    known = known or Turns()
    targets, left, migrated = set(known.targets), list(known.left), known.migrated
    for row in rows:
        if row.event == "Reset":
            back_to = read_detail(row.detail).version or 0
            targets.add(back_to)
            left = _with(left, (back_to + 1, row.version - 1))
        elif row.event == "Began" and row.version > 1:
            left = _with(left, (1, row.version - 1))
        elif row.event == "Migrated":
            migrated = row.version
    return Turns(frozenset(targets), tuple(left), migrated)


def _with(left: list[tuple[int, int]], span: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the spans that are left behind with one more, which ends behind them all, without those inside of it."""
    return [*(one for one in left if one[0] < span[0]), span]


class Journey:
    """Takes the rows of a stream one after the other, and gives a moment when it is over.

    It holds the present state, and those that a reset goes back to: a stream may be as long as it likes. Where decide
    asks for envelopes, it holds what was sent too. Of moments that are over at the version `after`, it does not tell
    what changed: to compare states takes longer than to fold.
    """

    def __init__(self, entry: WorkflowEntry, ref: Ref, turns: Turns, after: int = 0) -> None:
        self._entry = entry
        self._after = after
        self._ref = ref
        self._turns = turns
        self._state: Any = entry.workflow.initial_state
        self._states: dict[int, Any] = {}
        self._began: bytes | None = None
        self._asked = Commands(wants=entry.definition.wants_envelope)
        self._open: list[tuple[Entry, Any, Any]] = []
        self._before: Any = self._state
        self._envelope: Envelope[Any] | None = None
        self._begins = self._after_began = False
        self.stopped: Stopped | None = None
        """Why no more rows can be taken, if one could not be read or folded."""

    def take(self, row: EventRow) -> Moment | None:
        """Take the next row. Return the moment that it ends, if it begins another one."""
        try:
            entry = self._entry.recorder.entry(self._ref, row)
        except Exception as error:  # noqa: BLE001  an upcaster may raise anything; it is the answer
            erased = error if isinstance(error, ErasedError) else None
            self.stopped = Stopped(row.version, f"cannot be read: {told(error)}", erased)
            return self._close()
        self._asked.note(row)
        goes_on = self._envelope is not None and belongs(entry.event, behind=self._open[-1][0].event)
        over = None if goes_on else self._close()
        if not goes_on:
            self._begin(row, entry)
        self._happen(entry)
        return over

    def end(self) -> Moment | None:
        """Return the last moment, when there are no more rows."""
        return self._close()

    def _begin(self, row: EventRow, entry: Entry) -> None:
        if self._began is None:
            self._began = row.context
        match entry.event:
            case Began():
                self._state = self._entry.workflow.initial_state
            case Reset(version):
                self._state = self._states.get(version, self._entry.workflow.initial_state)
            case Received(message) if not is_unkept(row):
                self._envelope = envelope_of(self._ref, row, message, self._began, self._asked.by(self._ref, row))
                self._begins = self._after_began
            case _:
                pass
        self._after_began = isinstance(entry.event, Began)
        # As in the step itself: what begins an instance is decided before its Began is folded.
        self._before = self._entry.workflow.initial_state if self._begins else self._state

    def _happen(self, entry: Entry) -> None:
        was, event = self._state, entry.event
        try:
            if event.folded:
                self._state = fold(self._entry.workflow, was, [event])  # pyright: ignore[reportArgumentType]  what is folded is an Event
        except Exception as error:  # noqa: BLE001  an author's evolve may raise anything; it is the answer
            self.stopped = Stopped(entry.position, f"cannot be folded: {told(error)}")
            return
        self._open.append((entry, was, self._state))
        if entry.position in self._turns.targets:
            self._states[entry.position] = self._state

    def _close(self) -> Moment | None:
        if not self._open:
            return None
        first, compared = self._open[0][0].position, self._open[-1][0].position > self._after
        moment = Moment(
            tuple(
                Happened(entry, state_change(was, state) if compared else None, state)
                for entry, was, state in self._open
            ),
            self._before,
            self._state,
            self._envelope,
            self._begins,
            self._turns.is_abandoned(first),
            first <= self._turns.migrated and not isinstance(self._open[0][0].event, Migrated),
        )
        self._open, self._envelope, self._begins = [], None, False
        return moment


async def travel(
    store: Store, entry: WorkflowEntry, ref: Ref, first: int = 1, last: int | None = None
) -> AsyncIterator[Moment | Stopped]:
    """Yield the moments of an instance's stream from a version to another, read page by page; whole ones in any case.

    Nothing is decided or carried out. Where an event cannot be read or folded, a Stopped says why, and ends it.
    """
    journey = Journey(entry, ref, await stream_turns(store, ref), first - 1)
    async for moment in _moments(store, ref, journey):
        if last is not None and moment.position > last:
            return
        if moment.last >= first:
            yield moment
    if journey.stopped is not None:
        yield journey.stopped


async def _moments(store: Store, ref: Ref, journey: Journey) -> AsyncIterator[Moment]:
    async for page in _pages(store, ref):
        for row in page:
            moment = journey.take(row)
            if moment is not None:
                yield moment
            if journey.stopped is not None:
                break
        if journey.stopped is not None:
            break
    moment = journey.end()
    if moment is not None:
        yield moment


async def stream_turns(store: Store, ref: Ref) -> Turns:
    """Return where the stream of an instance turns; all of it is read, page by page."""
    turns = Turns()
    async for page in _pages(store, ref):
        turns = turns_of(page, turns)
    return turns


async def _pages(store: Store, ref: Ref) -> AsyncIterator[list[EventRow]]:
    version = 0
    while page := await store.stream(ref, version, EVENTS_PER_PAGE):
        yield page
        version = page[-1].version
