"""What operators do to an instance: suspend, resume, skip, cancel. Each is one commit, recorded with its actor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from mainspring.core.events import Cancelled, Resumed, StreamEvent, Suspended
from mainspring.engine.children import ended_by_operator, parent_of
from mainspring.engine.loader import whole_stream
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.rewinding import rewind
from mainspring.errors import NoSuchInstanceError, OperationError
from mainspring.port.records import ENDED, Committed, EventRow, InstanceRow, Ref, Status, Unit
from mainspring.port.tasks import TaskWork

if TYPE_CHECKING:
    from mainspring.engine.engine import Engine

CONFLICTS: Final = 20
OPERATOR: Final = "operator"

_Make: TypeAlias = Callable[[InstanceRow], Unit]


class Operations:
    """Operates on instances through the engine's committer, on fresh rows, again when somebody else was first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def suspend(self, ref: Ref, reason: str, actor: str | None) -> None:
        """Stop stepping. Inputs and fired timers queue."""

        def unit(row: InstanceRow) -> Unit:
            _must_be(row, "running", "suspended")
            # Somebody did it, named or not: one without an actor is a fault.
            return self._unit(row, Suspended(reason), "suspended", actor or OPERATOR, error=reason)

        await self._commit(ref, unit)

    async def resume(self, ref: Ref, actor: str | None) -> None:
        """Step again, beginning with the input that failed if one did."""

        def unit(row: InstanceRow) -> Unit:
            _must_be(row, "suspended", "resumed")
            return self._unit(row, Resumed(), "running", actor)

        await self._commit(ref, unit)
        self._engine.due_at(0)

    async def skip(self, ref: Ref, actor: str | None) -> None:
        """Pass over the first waiting input of a suspended instance, and step again."""
        store, entry = self._engine.store, self._entry(ref)
        waiting = await store.inbox(ref, 1)
        if not waiting:
            raise OperationError(str(ref), "has no input to skip", "Resume it instead.")
        pending = self._engine.intake.from_inbox(waiting[0])

        def unit(row: InstanceRow) -> Unit:
            _must_be(row, "suspended", "skipped")
            unit = self._unit(row, (), "running", actor, consumes=waiting[0].position)
            if row.version == 0:
                # There is no stream yet that could keep it.
                letter = pending.as_dead_letter(f"skipped by {actor or 'an operator'}")
                return replace(unit, dead_letters=(letter,))
            skipped = entry.recorder.input_row("Skipped", row.version + 1, store.now_us(), pending, None)
            return replace(unit, events=(replace(skipped, actor=actor),))

        await self._commit(ref, unit)
        self._engine.due_at(0)

    async def cancel_child(self, ref: Ref, started_by: str, reason: str) -> bool:
        """Cancel the instance that a parent's output began, if it runs still. False: there is no such instance."""
        loaded = (await self._engine.store.load([ref]))[0]
        if loaded is None:
            return False
        if parent_of(loaded.row.context) == started_by and loaded.row.status not in ENDED:
            try:
                await self.cancel(ref, reason, None, tell=False)
            except OperationError:
                now = (await self._engine.store.load([ref]))[0]
                if now is not None and now.row.status not in ENDED:
                    raise  # it did not end by itself meanwhile
        return True

    async def cancel(self, ref: Ref, reason: str, actor: str | None, *, tell: bool = True) -> None:
        """End an instance from outside: what nobody carries out yet is cancelled, what runs is told.

        With `tell`, so is the parent that began it, if one did; its open children are cancelled in any case.
        """

        def unit(row: InstanceRow) -> Unit:
            if row.status in ENDED:
                raise OperationError(str(ref), f"cannot be cancelled: it has {row.status}", "Nothing is to be done.")
            return self._unit(row, Cancelled(reason), "cancelled", actor, error=reason, cancels=True)

        await self._commit(ref, unit, tell=tell)
        self._engine.cancelled(ref)
        self._engine.tell_end(ref, "cancelled", reason)

    def _entry(self, ref: Ref) -> WorkflowEntry:
        entry = self._engine.registry.workflows.get(ref.workflow)
        if entry is None:
            raise NoSuchInstanceError(str(ref))
        return entry

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
            now_us = self._engine.store.now_us()
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
        """Go back to an earlier version. What was recorded behind it stays in the stream, and does not count."""
        entry = self._entry(ref)
        for _ in range(CONFLICTS):
            row = await self._row(ref)
            rows = await whole_stream(self._engine.store, ref)
            reset = rewind(entry, row, rows, version)
            unit = reset.unit(row, entry, reason, actor or OPERATOR, self._engine.store.now_us())
            outcome = await self._engine.committer.commit(unit)
            self._engine.stepper.forget(ref)
            if isinstance(outcome, Committed):
                self._engine.due_at(0)
                return
        raise self._restless(ref)

    async def _row(self, ref: Ref) -> InstanceRow:
        loaded = (await self._engine.store.load([ref]))[0]
        if loaded is None:
            raise NoSuchInstanceError(str(ref))
        return loaded.row

    def _restless(self, ref: Ref) -> OperationError:
        return OperationError(str(ref), f"moved on {CONFLICTS} times meanwhile", "Suspend it first, or try again.")

    async def _commit(self, ref: Ref, make: _Make, *, tell: bool = True) -> None:
        for _ in range(CONFLICTS):
            loaded = (await self._engine.store.load([ref]))[0]
            if loaded is None:
                raise NoSuchInstanceError(str(ref))
            unit = make(loaded.row)
            if unit.status in ENDED:
                unit = ended_by_operator(unit, loaded, tell=tell)
            outcome = await self._engine.committer.commit(unit)
            self._engine.stepper.forget(ref)
            if isinstance(outcome, Committed):
                if unit.outputs:
                    self._engine.due_at(0)
                return
        raise self._restless(ref)


def _must_be(row: InstanceRow, status: Status, done: str) -> None:
    if row.status != status:
        problem = f"cannot be {done}: it is {row.status}"
        raise OperationError(f"{row.workflow}/{row.id}", problem, "Look at its status first.")
