"""What operators do to an instance. Each is one commit, recorded with its actor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from mainspring.core.events import (
    Cancelled,
    Compensated,
    Compensating,
    Resumed,
    Retried,
    Sent,
    StreamEvent,
    Suspended,
    Terminated,
)
from mainspring.core.fold import fold
from mainspring.core.messages import Kind
from mainspring.core.saga import Ledger
from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.committing.committer import Committer
from mainspring.engine.handlers.runners import Runners
from mainspring.engine.inputs.long_streams import state_of
from mainspring.engine.inputs.skipped_input import skipped as skipped_input
from mainspring.engine.inputs.stored_input import from_inbox
from mainspring.engine.inputs.stored_streams import (
    pinned,
    read_ledger,
    readable,
    refuse_unkept,
    row_alone,
    trusted,
    whole_stream,
)
from mainspring.engine.operations.migration import examine, registered
from mainspring.engine.operations.pauses import FLEET
from mainspring.engine.operations.retried_letter import suspended_by, waits_for_it_alone
from mainspring.engine.operations.rewind import parent_was_told, rewind, without_parent
from mainspring.engine.outputs.awaited_ends import AwaitedEnds, End
from mainspring.engine.recording.children import ended_by_operator, parent_of
from mainspring.engine.recording.destinations import command
from mainspring.engine.recording.saga_rows import check_rewind, then_rows
from mainspring.engine.recording.stored_values import read_context
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.engine.stepping.lanes import Lanes
from mainspring.engine.stepping.open_tasks import asked_still
from mainspring.errors import NoSuchInstanceError, OperationError
from mainspring.port.records import (
    ENDED,
    Committed,
    DeadLetter,
    EventRow,
    InstanceRow,
    Loaded,
    OutputRow,
    Ref,
    Status,
    Unit,
)
from mainspring.port.store import Store
from mainspring.port.tasks import TaskWork

CONFLICTS: Final = 20
OPERATOR: Final = "operator"

_Make: TypeAlias = Callable[[InstanceRow, Ledger], Unit]


class Operations:
    """Operates on instances through the committer, on fresh rows, retried when another process was first."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        committer: Committer,
        lanes: Lanes,
        wakeups: Wakeups,
        ends: AwaitedEnds,
        runners: Runners,
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._lanes = lanes
        self._wakeups = wakeups
        self._ends = ends
        self._runners = runners

    async def suspend(self, ref: Ref, reason: str, actor: str | None) -> None:
        """Stop stepping. Inputs and fired timers queue."""

        def unit(row: InstanceRow, _: Ledger) -> Unit:
            _must_be(row, ("running", "compensating"), "suspended")
            # A person did it, named or not: without an actor it would be a fault.
            return self._unit(row, Suspended(reason), "suspended", actor or OPERATOR, error=reason)

        await self._commit(ref, unit, reads=False)
        self._ends.tell(ref, End("suspended", reason))

    async def resume(self, ref: Ref, actor: str | None, *, mended: bool = False) -> None:
        """Step again, from the input that failed if one did. `mended` says that a compensation will continue."""

        def unit(row: InstanceRow, ledger: Ledger) -> Unit:
            _must_be(row, ("suspended",), "resumed")
            if not mended and ledger.stuck:
                raise OperationError(
                    str(ref),
                    "cannot be resumed: a compensation of it failed for good",
                    "Retry its dead letter, which goes on with the rest; or skip it, if it was undone by hand.",
                )
            return self._unit(row, Resumed(), "compensating" if ledger.active else "running", actor)

        await self._commit(ref, unit)
        self._wakeups.due_at(0)

    async def skip(self, ref: Ref, actor: str | None) -> None:
        """Pass over the compensation that failed, or the first waiting input of a suspended instance, and continue."""
        store, entry = self._store, self._entry(ref)
        waiting = await store.inbox(ref, 1)
        pending = from_inbox(self._registry.codec, waiting[0]) if waiting else None
        # What a person said is passed over: where the stream says that they are asked still, so they are.
        asked = await asked_still(store, pending) if pending is not None and pending.kind is Kind.ANSWER else None

        def unit(row: InstanceRow, ledger: Ledger) -> Unit:
            _must_be(row, ("suspended",), "skipped")
            if ledger.stuck:
                return self._undone(row, ledger, Compensated(ledger.compensation), actor)
            if pending is None:
                raise OperationError(str(ref), "has no input to skip", "Resume it instead.")
            if pending.cause is not None and pending.cause == ledger.under:
                raise OperationError(
                    str(ref),
                    "waits to record that a compensation was carried out, without which the rest is not undone",
                    "Mend its evolve, and resume it.",
                )
            status: Status = "compensating" if ledger.active else "running"
            unit = self._unit(row, (), status, actor, consumes=waiting[0].position)
            if row.version == 0:
                # There is no stream yet that could keep it.
                by = f"skipped by {actor or 'an operator'}"
                never = f"it has not begun: {pending.type} {pending.id} was {by}"
                letters = (pending.as_dead_letter(by),)
                return replace(unit, error=never, dead_letters=letters, remembers=(skipped_input(pending),))
            skipped = entry.recorder.input_row("Skipped", row.version + 1, store.now_us(), pending, None)
            tasks = None if asked is None else TaskWork(reopens=asked)
            return replace(unit, events=(replace(skipped, actor=actor),), tasks=tasks)

        await self._commit(ref, unit)
        self._wakeups.due_at(0)

    async def cancel_child(self, ref: Ref, started_by: str, reason: str) -> bool:
        """Cancel the instance that a parent's output began, if it runs still. False: there is no such instance."""
        loaded = (await self._store.load([ref], 0))[0]
        if loaded is None:
            return False
        if parent_of(loaded.row.context) == started_by and loaded.row.status not in (*ENDED, "compensating"):
            try:
                await self.cancel(ref, reason, None, tell=False)
            except OperationError:
                now = (await self._store.load([ref], 0))[0]
                ledger = await read_ledger(self._store, self._entry(ref), ref, self._committer.lull)
                if now is not None and now.row.status not in ENDED and not ledger.active:
                    raise  # it neither ended by itself meanwhile, nor is about to
        return True

    async def cancel(self, ref: Ref, reason: str, actor: str | None, *, tell: bool = True) -> None:
        """End an instance from outside, after what was done is undone, where it has a compensation.

        What is not carried out yet is cancelled, what runs is notified. With `tell`, so is the parent that began it, if
        one did; its open children are cancelled in any case.
        """

        def unit(row: InstanceRow, ledger: Ledger) -> Unit:
            _must_run(row, "cancelled")
            if ledger.active:
                raise OperationError(
                    str(ref), "cannot be cancelled: it is being compensated", "Wait for its end, or terminate it."
                )
            if not ledger.armed:
                return self._unit(row, Cancelled(reason), "cancelled", actor, error=reason, cancels=True)
            unit = self._undone(row, ledger, Compensating(reason, cancelled=True), actor)
            return replace(unit, cancel_all="unclaimed", tasks=TaskWork(close_all=True))

        undoes = (await self._commit(ref, unit, tell=tell)).status == "compensating"
        self._runners.cancel(ref, "forward" if undoes else "all")
        if not undoes:
            self._ends.tell(ref, End("cancelled", reason))

    async def terminate(self, ref: Ref, reason: str, actor: str | None) -> None:
        """End an instance from outside at once, and undo nothing."""

        def unit(row: InstanceRow, _: Ledger) -> Unit:
            _must_run(row, "terminated")
            return self._unit(row, Terminated(reason), "terminated", actor, error=reason, cancels=True)

        await self._commit(ref, unit, reads=False)
        self._runners.cancel(ref)
        self._ends.tell(ref, End("terminated", reason))

    async def before_retry(self, letter: DeadLetter, actor: str | None, *, edited: bool, force: bool = False) -> None:
        """Refuse to carry out again what was undone. After a failed compensation, let the rest be undone.

        A compensation that was dropped is armed before anything is
        done that it may have to undo.
        """
        ref = Ref(letter.workflow, letter.instance)
        entry = self._registry.workflows.get(ref.workflow)
        ledger = Ledger() if entry is None else await read_ledger(self._store, entry, ref, self._committer.lull)
        version = letter.output.version if letter.output is not None else 0
        known = version in ledger.armed or version in ledger.dropped
        if not force and (version in ledger.undone or (ledger.begun is not None and known)):
            raise OperationError(
                f"Dead letter {letter.id}",
                f"cannot be retried: {ref} was compensated for it",
                "Discard it; or force it (--force), if it is to be carried out all the same.",
            )
        if ledger.stuck and version == ledger.under:
            if edited:
                what = f"Dead letter {letter.id}"
                raise OperationError(what, "is a compensation, and cannot be changed", "Retry it as it is, or skip it.")
            await self.resume(ref, actor, mended=True)
        if version in ledger.dropped and not edited and (await self._loaded(ref)).row.status not in ENDED:
            await self._arm_again(ref, version, actor)

    async def after_retry(self, letter: DeadLetter, actor: str | None) -> None:
        """Resume an instance that is suspended for the failure in a dead letter alone, which is gone.

        Behind its end: of several that are retried at once, whichever is the last finds no other. An app that does not
        know the instance's workflow leaves it to be resumed.
        """
        ref = suspended_by(letter)[0]
        entry = self._registry.workflows.get(ref.workflow)
        if entry is None:
            return
        for _ in range(CONFLICTS):
            loaded = (await self._store.load([ref]))[0]
            # On the very version that is resumed: a person may have suspended it since, or the command failed again.
            if loaded is None or not await waits_for_it_alone(self._store, letter, loaded.row):
                return
            ledger = await read_ledger(self._store, entry, ref, self._committer.lull)
            if ledger.stuck:
                return
            status: Status = "compensating" if ledger.active else "running"
            outcome = await self._committer.commit(self._unit(loaded.row, Resumed(), status, actor))
            self._lanes.forget(ref)
            if isinstance(outcome, Committed):
                return
        problem = f"is suspended still: it moved on {CONFLICTS} times while its dead letter {letter.id} was retried"
        raise OperationError(str(ref), problem, "The letter is on its way; resume the instance.")

    async def _arm_again(self, ref: Ref, version: int, actor: str | None) -> None:
        def unit(row: InstanceRow, ledger: Ledger) -> Unit:
            _must_run(row, "retried")
            retried = Retried(version) if version in ledger.dropped else ()
            return self._unit(row, retried, row.status, actor, error=row.error)

        await self._commit(ref, unit)

    def _undone(
        self, row: InstanceRow, ledger: Ledger, event: Compensating[Any] | Compensated[Any], actor: str | None
    ) -> Unit:
        """Return the unit of what an operator says about a saga, with what follows from it."""
        ref, store = Ref(row.workflow, row.id), self._store
        recorder, now_us, version = self._entry(ref).recorder, store.now_us(), row.version + 1
        if isinstance(event, Compensated):
            first = recorder.compensated_row(event, version, now_us, ledger.under, actor)
        else:
            first = recorder.row(event, version, now_us, actor)
        ledger.take(version, event)
        rows, outputs = [first], list[OutputRow]()
        for next in ledger.onward():
            version += 1
            rows.append(recorder.row(next, version, now_us, actor, cause=row.version + 1))
            if isinstance(next, Sent):
                outputs.append(OutputRow(version, "send", command(rows[-1])))
            ledger.take(version, next)
        goes_on = not ledger.active and len(rows) == 1
        accepts = then_rows(recorder, ref, ledger, read_context(row.context), now_us) if goes_on else ()
        status: Status = "compensating" if ledger.active else "running" if goes_on else _end_of(ledger)
        unit = self._unit(row, tuple(rows), status, actor, error=None if goes_on else ledger.reason)
        return replace(unit, outputs=tuple(outputs), accepts=accepts)

    def _entry(self, ref: Ref) -> WorkflowEntry:
        entry = self._registry.workflows.get(ref.workflow)
        if entry is None:
            raise NoSuchInstanceError(str(ref))
        return entry

    async def migrate(self, ref: Ref, to: int, actor: str | None, *, dry_run: bool = False) -> None:
        """Continue under another version of the definition, if all that is there can be read and folded by it."""
        entry = registered(self._entry(ref), to)
        for _ in range(CONFLICTS):
            found = await examine(self._store, await self._loaded(ref), entry)
            if dry_run:
                return
            outcome = await self._committer.commit(found.unit(actor or OPERATOR, self._store.now_us()))
            self._lanes.forget(ref)
            if isinstance(outcome, Committed):
                self._wakeups.due_at(0)
                return
        raise self._restless(ref)

    def _unit(
        self,
        row: InstanceRow,
        event: StreamEvent[Any, Any] | tuple[EventRow, ...],
        status: Status,
        actor: str | None,
        *,
        error: str | None = None,
        consumes: int | None = None,
        cancels: bool = False,
    ) -> Unit:
        recorder = self._entry(Ref(row.workflow, row.id)).recorder
        if isinstance(event, tuple):
            events = event
        else:
            # Before its first event an instance has no stream to record this in.
            now_us = self._store.now_us()
            events = (recorder.row(event, row.version + 1, now_us, actor),) if row.version else ()
        return Unit(
            row.workflow,
            row.id,
            key=row.key,
            expected_version=row.version,
            events=events,
            status=status,
            state=row.state,
            error=error,
            definition_version=row.definition_version,
            context=row.context,
            consumes=consumes,
            cancel_all="unclaimed" if cancels else None,
            tasks=TaskWork(close_all=True) if cancels else None,
        )

    async def reset(self, ref: Ref, version: int, reason: str, actor: str | None) -> None:
        """Go back to an earlier position. What was recorded behind it stays in the stream, and does not count."""
        for _ in range(CONFLICTS):
            loaded = await self._loaded(ref)
            refuse_unkept(loaded, "cannot be reset")
            row, entry = loaded.row, readable(self._entry(ref), loaded)
            rows = await whole_stream(self._store, ref)
            reset = rewind(entry, row, rows, version)
            check_rewind(entry.recorder, ref, rows, version)
            parent = parent_of(row.context) if row.status in ENDED else None
            if parent is not None and await parent_was_told(self._store, ref, parent):
                row = without_parent(row)
            unit = reset.unit(row, entry, reason, actor or OPERATOR, self._store.now_us())
            outcome = await self._committer.commit(unit)
            self._lanes.forget(ref)
            if isinstance(outcome, Committed):
                self._wakeups.due_at(0)
                return
        raise self._restless(ref)

    async def _loaded(self, ref: Ref) -> Loaded:
        try:
            loaded = (await self._store.load([ref]))[0]
        except Exception:
            # Ending it is the way out of orders that cannot be read: it has no children, and nothing to undo.
            row = await row_alone(self._store, ref) if ref == FLEET else None
            if row is None:
                raise
            loaded = Loaded(row, None, [])
        if loaded is None:
            raise NoSuchInstanceError(str(ref))
        return loaded

    def _restless(self, ref: Ref) -> OperationError:
        return OperationError(str(ref), f"moved on {CONFLICTS} times meanwhile", "Suspend it first, or try again.")

    async def _commit(self, ref: Ref, make: _Make, *, reads: bool = True, tell: bool = True) -> Unit:
        """Commit what `make` says of an instance's row and ledger; the latter costs a whole stream to read."""
        known = Ledger()
        for _ in range(CONFLICTS):
            loaded = await self._loaded(ref)
            if reads:
                # What came since the last try is read soon: all of it again, and a busy one would always be ahead.
                known = await read_ledger(self._store, self._entry(ref), ref, self._committer.lull, known)
            unit = await self._folded(loaded, make(loaded.row, known.copy()))
            if unit.status in ENDED:
                unit = ended_by_operator(unit, loaded, tell=tell)
            outcome = await self._committer.commit(unit)
            self._lanes.forget(ref)
            if isinstance(outcome, Committed):
                if unit.outputs:
                    self._wakeups.due_at(0)
                return unit
        raise self._restless(ref)

    async def _folded(self, loaded: Loaded, unit: Unit) -> Unit:
        """Return a unit with the name of the state that its events lead to."""
        ref = Ref(unit.workflow, unit.instance)
        entry = pinned(self._entry(ref), loaded)
        events = () if entry is None else entry.recorder.folded(ref, unit.events)
        if entry is None or not events:
            return unit
        try:
            whole = await trusted(self._store, entry, loaded)
            state = fold(entry.workflow, state_of(entry, whole or loaded)[0], events)
        except Exception:  # noqa: BLE001  what cannot be folded can be operated all the same
            return unit
        return replace(unit, state=entry.definition.states[type(state)])


def _must_be(row: InstanceRow, statuses: tuple[Status, ...], done: str) -> None:
    if row.status not in statuses:
        problem = f"cannot be {done}: it is {row.status}"
        raise OperationError(f"{row.workflow}/{row.id}", problem, "Look at its status first.")


def _must_run(row: InstanceRow, done: str) -> None:
    if row.status in ENDED:
        problem = f"cannot be {done}: it has {row.status}"
        raise OperationError(f"{row.workflow}/{row.id}", problem, "Nothing is to be done.")


def _end_of(ledger: Ledger) -> Status:
    return "cancelled" if ledger.begun is not None and ledger.begun.cancelled else "failed"
