"""One stream, walked with the code of today: every input decided once more, every event folded, and compared with it.

What was recorded is folded, not what would be decided: so each step is judged for itself, in the state in which it was
taken, and one difference does not hide or make others.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, Final

from mainspring.analysis.what_if.contrast import (
    Compared,
    Found,
    Key,
    Lines,
    StopWalkError,
    Stored,
    What,
    as_today,
    changes,
    decision_lines,
    label,
    state_changes,
    state_lines,
)
from mainspring.core import deadlines
from mainspring.core.events import Began
from mainspring.core.fold import fold, placed
from mainspring.core.messages import Envelope, Kind, type_of
from mainspring.core.step import asked_of, step
from mainspring.engine.recording.answered_commands import answered_by
from mainspring.engine.recording.event_rows import is_folded, is_unkept
from mainspring.engine.recording.stored_values import moment, read_context
from mainspring.engine.recording.walk import Walk, back_to, beside_input
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import (
    CodecError,
    DamagedRecordError,
    DriftError,
    ErasedError,
    ImpureCallError,
    MainspringError,
    shown,
    told,
)
from mainspring.flows.flow import Flow, flow_of
from mainspring.port.records import EventRow, Ref, Snapshot
from mainspring.purity.guarding import Watch

STATES_KEPT: Final = 10_000
"""Of one instance, for resets: to go back further, a stream would have to be folded again."""
SHOWN_CHARACTERS: Final = 300
STOPPED: Final = "Nothing behind it was checked."

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TASK: Final = b'"task"'
_BEGAN: Final = Began()
_BEGINNINGS: Final = frozenset({"Began", "Reset"})
_ENDS: Final = frozenset({"Completed", "Failed", "Cancelled", "Terminated", "Compensating"})


class Comparison(Walk):
    """Takes the events of one instance, page by page, and collects what differs.

    `stored` are whole states, by the versions at which they were stored. `told` are kinds of difference of which no
    story is wanted any more. `watch` says which steps the purity guard sees. `found` is keyed by what differs and how;
    `gone` says why the rest could not be checked, if it could not, and `uncompared` why old code came to no states
    there. What a reset or a new beginning has left behind counts in neither: the instance will never go on from there.
    `new_fields` are those that only today's code has, by state.

    >>> from mainspring import Mainspring
    >>> from mainspring.app.internals import internals_of
    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> rows = [EventRow(1, "Began", 0), EventRow(2, "InitiatedBy", 0, "Count", 1, b'{"counter":"c-1"}', state="Lost")]
    >>> walk = Comparison(internals_of(app).registry.workflows["Counter"], Ref("Counter", "c-1"))
    >>> walk.take(rows)
    >>> walk.end()
    >>> list(walk.found)
    [('state', 'Count in Counted leads to Counted, not to Lost')]
    """

    def __init__(
        self,
        entry: WorkflowEntry,
        ref: Ref,
        stored: Mapping[int, Stored] | None = None,
        told: Container[Key] = frozenset(),
        watch: Watch | None = None,
    ) -> None:
        super().__init__(entry, ref)
        self.notes = entry.definition.wants_envelope
        self.found: dict[Key, Found] = {}
        self.new_fields: dict[str, dict[str, None]] = {}
        self.compared = Compared()
        self.events = 0
        self.gone: str | None = None
        self.uncompared: str | None = None
        self._stored = stored or {}
        self._beside_old = False
        self._told = told
        self._watch = watch or Watch()
        self._recorder = entry.recorder
        self._names = entry.definition.states
        self._states: dict[int, Any] = {0: self.state}
        self._stopped = False
        self._last: int | None = None
        self._over = False

    def take(self, rows: Sequence[EventRow]) -> None:
        """Take the next events. An input is decided when all that was recorded for it has come."""
        self.events += len(rows)
        for row in rows:
            self._over = row.event in _ENDS or (self._over and row.event not in _BEGINNINGS)
            self._last = None if self._over else row.version
            if self._stopped and not self._goes_on(row):
                continue
            try:
                self.walk(row)
            except StopWalkError:
                self._stopped = True
                if self._goes_on(row):  # it was the step before this row that could not be walked
                    self.walk(row)

    def hold_against(self, states: Mapping[int, Stored]) -> None:
        """Compare the next events with the states that old code folds them to."""
        self._stored, self._beside_old = states, True

    def end(self) -> None:
        """Close the last step: there are no more events."""
        if not self._stopped:
            try:
                self.close()
            except StopWalkError:
                self._stopped = True
        flow = flow_of(self.workflow)
        if self._last is not None and not self._stopped and flow is not None:
            self._tell_drift(flow, self._last)

    def _tell_drift(self, flow: Flow[Any, Any], version: int) -> None:
        """Tell once where a flow in flight would be suspended: at its next input, whichever that is."""
        try:
            drift = flow.drift_of(self.state)
        except Exception as error:  # noqa: BLE001  whatever it is, it is the answer
            what = f"its code cannot be run again, {type(error).__name__}"
            self._add("error", what, version, (told(error, SHOWN_CHARACTERS),))
            return
        if drift is not None:
            places = dict.fromkeys(place for _, place in drift.asked)
            asked = f"asks for {kind_of(drift.asked[0][0])} at {' and '.join(places)}" if places else ""
            gone = f"{kind_of(drift.recorded[0][1])} is not asked for any more" if drift.recorded else ""
            what = f"it would be suspended by drift: {', '.join(filter(None, (asked, gone)))}"
            self._add("error", what, version, tuple(drift.difference.splitlines()[1:]))

    def stop(self, why: str, *, inside: bool) -> None:
        """Stop: what follows is missing or altered; what came before was checked.

        What was recorded for the last input may go on there: `inside` of its step nothing can be said of it.
        """
        if not inside:
            self.end()
        self.gone = why
        self._stopped = True

    def unreadable_state(self, snapshot: Snapshot, error: CodecError) -> None:
        """Report that the state, which is all that is kept of the instance, cannot be read."""
        what = f"the state {snapshot.type} (version {snapshot.type_version}) cannot be read any more"
        self._add("unreadable", what, snapshot.version, (str(error),))

    # ---- one event after the other

    def _goes_on(self, row: EventRow) -> bool:
        """Return True if a reset or a new beginning leaves the unreadable part behind, so that the walk continues."""
        if row.event != "Began" and (row.event != "Reset" or back_to(row) not in self._states):
            return False
        self._stopped, self.gone = False, None
        self.drop()
        return True

    def alone(self, row: EventRow) -> None:
        """Take an event that no input was decided to."""
        match row.event:
            case "Began":
                self._leave_behind(0)
                return
            case "Migrated":
                self._forget_what_was_decided_before()
            case _ if self._sees(row):
                self.state = self._folded(self._seen([row], [self._event(row)], False), row)
            case _:
                pass  # what operators did is beside the fold
        self._settle(row.version, row.version, None)

    def state_at(self, version: int) -> Any:
        """Return the state that a reset goes back to."""
        if version not in self._states:
            self.gone = f"it was reset to a version more than {STATES_KEPT:,} steps before"
            raise StopWalkError
        self._leave_behind(version)
        return self._states[version]

    def _leave_behind(self, version: int) -> None:
        """Forget what was found behind a version that the instance went back to: it does not count any more."""
        for key, found in list(self.found.items()):
            found.versions = [at for at in found.versions if at <= version]
            if not found.versions:
                del self.found[key]

    def _forget_what_was_decided_before(self) -> None:
        """Decisions under another version of the workflow are not compared with this one's."""
        for key in [key for key in self.found if key[0] in ("decision", "error", "state")]:
            del self.found[key]
        before = self.compared.before_migration + self.compared.decisions
        self.compared = Compared(before_migration=before, unreadable_snapshots=self.compared.unreadable_snapshots)

    # ---- a step

    def step(self, group: Sequence[EventRow], begins: bool) -> None:
        """Decide an input once more, and go on with what was recorded."""
        head, last = group[0], group[-1].version
        events = [self._event(row) for row in group]
        before = self.state
        envelope = self._envelope(head, events[0].message)
        self.compared.decisions += 1
        message, state = class_of(envelope.message), class_of(before)
        try:
            guard = self._watch.guard(self.ref.workflow, message, state)
            at = (head.version - 1 - begins, envelope, begins, *self._recorded(head))
            if guard is None:
                taken = step(self.workflow, before, *at)
            else:
                with guard:
                    taken = step(self.workflow, before, *at)
        except Exception as error:  # noqa: BLE001  whatever it is, it is the answer
            if isinstance(error, ImpureCallError):
                self._watch.caught(self.ref.workflow, message, state)
            try:
                with self._watch.guard(self.ref.workflow, message, state) or nullcontext():
                    self.state = self._folded(self._seen(group, events, begins), head)
            except ImpureCallError as impure:
                raise StopWalkError from impure  # told already: the guard only insists on it
            if not isinstance(error, DriftError):  # of a flow in flight it is told at the end, and once
                self._add_error(head, envelope, before, error)
        else:
            decided, recorded = beside_input(taken.events, begins=begins), beside_input(events)
            if decided == recorded:
                self.state = taken.state
            else:
                self.state = self._folded(self._seen(group, events, begins), head)
                was, now = recorded, decided
                if begins:
                    was, now = deadlines.compared(self.entry.definition, was, now)
                self._compare(head, envelope.message, before, was, now)
        if head.state is not None:
            self._compare_name(head, envelope.message, before)
        self._settle(head.version, last, before)

    def _envelope(self, row: EventRow, message: Any) -> Envelope[Any]:
        if self.notes:
            return self.envelopes.of(row, message)
        # Who asks for the message alone needs no more of it than this, and all of it takes as long as the step.
        kind = Kind.TIMER if row.kind == "timer" else Kind.COMMAND
        context = row.context
        task = read_context(context).task if context is not None and _TASK in context else None
        return Envelope(message, "", _EPOCH, "", kind, task=task)

    def _event(self, row: EventRow) -> Any:
        try:
            if is_unkept(row):
                self.gone = "a message of its stream is not kept"
                raise StopWalkError
            return self._recorder.event(row)
        except ErasedError:
            self.gone = "a part of its stream was erased"
        except DamagedRecordError as error:
            self.gone = f"its stream is damaged: {error.record}"
        except CodecError as error:
            what = f"{row.type} (version {row.type_version}) in {row.event} cannot be read any more"
            self._add("unreadable", what, row.version, (str(error), STOPPED))
        raise StopWalkError

    def _sees(self, row: EventRow) -> bool:
        """Return True if a fold sees an event."""
        try:
            return is_folded(row)
        except CodecError as error:
            self._add("unreadable", f"{row.event} is no event that is known here", row.version, (str(error), STOPPED))
            raise StopWalkError from error

    def _recorded(self, row: EventRow) -> tuple[datetime | None, int | None]:
        """Return when an input was recorded and what it answers, where the workflow asks for that."""
        wants = self.entry.definition.wants_occurrences
        return (moment(row.time_us), answered_by(self.ref, row)) if wants else (None, None)

    def _seen(self, group: Sequence[EventRow], events: Sequence[Any], begins: bool) -> Sequence[Any]:
        """Return recorded events as a fold asks for them, behind the Began of an input that begins."""
        seen = [self._recorder.as_folded(self.ref, row, event) for row, event in zip(group, events, strict=True)]
        if not begins:
            return seen
        head = group[0]
        return [*placed(self.entry.definition, [_BEGAN], head.version - 2, self._recorded(head)[0]), *seen]

    def _folded(self, events: Sequence[Any], row: EventRow) -> Any:
        state = self.state
        for event in events:
            try:
                after = fold(self.workflow, state, (event,))
            except Exception as error:
                what = f"evolve raises {type(error).__name__} on {label(event)} in {self._name(state)}"
                story = f"{shown(state, SHOWN_CHARACTERS)} by {shown(event, SHOWN_CHARACTERS)}"
                self._add("evolve", what, row.version, (story, told(error, SHOWN_CHARACTERS), STOPPED))
                raise StopWalkError from error
            state = after
        return state

    def _settle(self, input: int, version: int, before: Any) -> None:
        """Remember the state, and compare it with a stored one where there is one."""
        state, states = self.state, self._states
        states[version] = state
        self.compared.states_passed += 1
        if len(states) > STATES_KEPT:
            del states[next(iter(states))]
        if self._stored:
            stored = self._stored.get(version) or self._stored.get(input)
            if stored is not None:
                self._compare_state(stored, version, before)

    # ---- what differs

    def _compare(
        self, row: EventRow, message: Any, before: Any, recorded: Sequence[Any], decided: Sequence[Any]
    ) -> None:
        try:
            found = changes(self._recorder, recorded, decided)
        except CodecError as error:
            # It would be refused in the commit of the step.
            self._add_error(row, None, before, error, message)
            return
        if found:
            what = f"{self._place(message, before)}: {', '.join(found)}"
            self._add(
                "decision", what, row.version, lambda: (self._head(message, before), *decision_lines(recorded, decided))
            )

    def _add_error(
        self, row: EventRow, envelope: Envelope[Any] | None, before: Any, error: Exception, message: Any = None
    ) -> None:
        message = message if envelope is None else envelope.message
        raised = f"{type(error).__name__}"
        if isinstance(error, ImpureCallError):
            what = f"{self._place(message, before)}: it is not pure and calls {error.call}"
        elif isinstance(error, MainspringError):
            what = f"{self._place(message, before)}: what is decided is refused, {raised}"
        elif envelope is not None and self._decides(row, envelope, before):
            what = f"{self._place(message, before)}: evolve raises {raised} on what is decided"
        else:
            what = f"{self._place(message, before)}: decide raises {raised}"
        self._add("error", what, row.version, lambda: (self._head(message, before), told(error, SHOWN_CHARACTERS)))

    def _decides(self, row: EventRow, envelope: Envelope[Any], before: Any) -> bool:
        """Return True if decide returns; then the error came from the evolve behind it."""
        definition, begins = self.entry.definition, row.event == "InitiatedBy"
        asked = asked_of(definition, envelope, row.version - 1 - begins, begins, *self._recorded(row))
        try:
            self.workflow.decide_on(asked, before)
        except Exception:  # noqa: BLE001  it is the one that is being told
            return False
        return True

    def _compare_name(self, row: EventRow, message: Any, before: Any) -> None:
        self.compared.state_names += 1
        state = class_of(self.state)
        now = self._names.get(state)
        if now == row.state or row.state in type_of(state).aliases:
            return
        what = f"{self._place(message, before)} leads to {now}, not to {row.state}"
        lines = (self._head(message, before), f"- {row.state}", f"+ {shown(self.state, SHOWN_CHARACTERS)}")
        self._add("state", what, row.version, lines)

    def _compare_state(self, stored: Stored, version: int, before: Any) -> None:
        name = self._name(self.state)
        head = f"the state {name}{'' if before is None else f' behind a step in {self._name(before)}'}"
        try:
            now = self._recorder.snapshot(self.state, version, "")
            if (now.type, now.type_version, now.body) == (stored.type, stored.type_version, stored.body):
                self.compared.states += 1
                return
            was, shape = as_today(self._recorder, stored, self.state, now)
            found = state_changes(self._recorder, was, self.state)
        except CodecError as error:
            if self._beside_old:
                # A snapshot of another shape is folded again. Two codes that come to states of two shapes differ.
                self.compared.states += 1
                what = f"the state {name} has another shape: the old {stored.type} cannot be read by today's code"
                self._add("state", what, version, (str(error), *self._shapes(stored)))
            else:
                self.compared.unreadable_snapshots += 1
            return
        if shape.differs and not self._beside_old:
            self.compared.unreadable_snapshots += 1
        else:
            self.compared.states += 1
        if shape.differs and self._beside_old:
            what = f"the state {name} has another shape: {shape}"
            self._add("state", what, version, lambda: self._shapes(stored))
        elif shape.new:
            self.new_fields.setdefault(name, {}).update(dict.fromkeys(shape.new))
        if found:
            self._add("state", f"{head} {found}", version, lambda: tuple(state_lines(was, self.state)))

    def _shapes(self, stored: Stored) -> Lines:
        old = stored.body.decode(errors="replace")[:SHOWN_CHARACTERS]
        return f"- {stored.type} {old}", f"+ {shown(self.state, SHOWN_CHARACTERS)}"

    def _add(self, kind: What, what: str, version: int, lines: Lines | Callable[[], Lines]) -> None:
        known = self.found.get((kind, what))
        if known is not None:
            known.versions.append(version)
            return
        story = () if (kind, what) in self._told else lines() if callable(lines) else lines
        self.found[kind, what] = Found([version], story)

    def _place(self, message: Any, before: Any) -> str:
        kind = class_of(message)
        return f"{type_of(kind).name} in {self._name(before)}"

    def _head(self, message: Any, before: Any) -> str:
        return f"{shown(message, SHOWN_CHARACTERS)} in {shown(before, SHOWN_CHARACTERS)}"

    def _name(self, state: Any) -> str:
        kind = class_of(state)
        return self._names.get(kind) or kind.__name__


def kind_of(told: str) -> str:
    """Return of a message that was told its type.

    >>> kind_of("charge(cents=5)")
    'charge'
    """
    return told.partition("(")[0]


def class_of(value: object) -> type[Any]:
    """Return the class of a value, whatever it is."""
    return type(value)
