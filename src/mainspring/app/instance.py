"""Handles: an instance to read and to operate, and the receipt of a message that was sent."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from mainspring.app.given import checked_place, checked_reason, checked_seconds
from mainspring.app.internals import Internals
from mainspring.app.viewing import attempt_view, decoded, input_view, instance_view, output_view
from mainspring.app.waiting import waits_at
from mainspring.core.execution import LogLine, execution_log, unbegun, with_attempts
from mainspring.core.story import Entry
from mainspring.engine.inputs.long_streams import EVENTS_AT_ONCE
from mainspring.engine.inputs.pending import Pending, ReceiptStatus
from mainspring.engine.inputs.senders import checked_actor
from mainspring.engine.inputs.stored_streams import present_state, readable, row_alone, rows_at, whole_stream
from mainspring.engine.operations.known_pauses import pauses_of
from mainspring.engine.operations.pauses import Pause
from mainspring.engine.outputs.awaited_ends import End
from mainspring.engine.recording.answered_commands import answered_by
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import (
    ERASED_TYPE,
    DamagedRecordError,
    InstanceFailedError,
    InstancePurgedError,
    InstanceSuspendedError,
    MainspringError,
    NoSuchInstanceError,
    OperationError,
    WaitTimeoutError,
)
from mainspring.port.attempts import ATTEMPTS_OF_INSTANCE
from mainspring.port.attributes import Value
from mainspring.port.records import EventRow, InstanceRow, Ref
from mainspring.port.store import Store
from mainspring.views import Attempt, InstanceInfo, WaitingInput, WaitingOutput, WaitsAt

State = TypeVar("State")
Result_co = TypeVar("Result_co", covariant=True)

RESULT_TIMEOUT: Final = timedelta(seconds=30)
WAITING_INPUTS: Final = 1_000


class Instance(Generic[State, Result_co]):
    """A handle on one instance. It holds nothing but the identity; every call asks the store.

    >>> import asyncio
    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> async def main() -> None:
    ...     async with app:
    ...         await app.send(Count("c-1"))
    ...         print(await app.instance(Counter, "c-1").state())
    >>> asyncio.run(main())
    Counted(times=1)
    """

    def __init__(self, internals: Internals, ref: Ref) -> None:
        self._internals = internals
        self._ref = ref

    def __str__(self) -> str:
        return str(self._ref)

    async def row(self) -> InstanceInfo:
        """Return status, state's name, error and times; of a purged one too.

        `position` is that of the last event in its stream, `workflow_version` its workflow's version.
        """
        return instance_view(await self._row())

    async def _row(self) -> InstanceRow:
        store = self._internals.engine.store
        try:
            loaded = (await store.load([self._ref], 0))[0]
            row = None if loaded is None else loaded.row
        except DamagedRecordError:
            # Its snapshot cannot be read; what it is and why it stands still can.
            row = await row_alone(store, self._ref)
            if row is None:
                raise
        if row is None:
            raise NoSuchInstanceError(str(self._ref))
        return row

    async def standing(self) -> str:
        """Describe its status in words, as for a caller that timed out. One whose first input waits has not begun."""
        # The inbox first: what is taken out of it between the two looks is seen by the second.
        waits = bool(await self._internals.engine.store.inbox(self._ref, 1))
        paused = "".join(f"; {pause}" for pause in await self._paused())
        try:
            row = await self.row()
        except NoSuchInstanceError:
            if not waits:
                raise
            return f"has not begun: no worker has taken its first input{paused}"
        return f"is {row.status}: {row.error}{paused}" if row.error else f"is {row.status}{paused}"

    async def _paused(self) -> list[Pause]:
        """Return the pauses of its workflow, and of handlers that it waits for."""
        store = self._internals.engine.store
        if not (pauses := await pauses_of(store)):
            return []
        names = {f"handler:{claim.type}" for claim in await store.outputs(self._ref, False, WAITING_INPUTS)}
        return [pause for pause in pauses if pause.what in {*names, f"workflow:{self._ref.workflow}"}]

    async def state(self) -> State:
        """Return the present state."""
        engine = self._internals.engine
        loaded = (await engine.store.load([self._ref], EVENTS_AT_ONCE))[0]
        if loaded is None:
            raise NoSuchInstanceError(str(self._ref))
        _refuse_purged(loaded.row)
        entry = readable(engine.registry.workflows[self._ref.workflow], loaded)
        return await present_state(engine.store, entry, loaded, engine.committer.lull)

    async def stream(self, after: int = 0) -> list[Entry]:
        """Return all recorded events after a position. `NotKept` stands for a message that was erased.

        Where it is empty, the first input was not taken: `row()` and `log()` say why, `waiting()` which one it is.
        """
        engine = self._internals.engine
        entry = engine.registry.workflows[self._ref.workflow]
        rows = await whole_stream(engine.store, self._ref, checked_place(after))
        if not rows:
            _refuse_purged(await self._row())
            # It may have begun between the two looks, and an instance that is there has a story.
            rows = await whole_stream(engine.store, self._ref, after)
        if len(entry.versions) > 1:
            entry = entry.at((await self._row()).definition_version) or entry
        return [entry.recorder.entry(self._ref, row, told=True) for row in rows]

    async def log(self) -> list[LogLine]:
        """Return the execution log: what happened, when, by which actor, at which attempt, and how long it took.

        A line about an answer has the time since it was asked for, `answered_after`; a timer's also how long it was
        due, `waited`; a handler's result the `duration` of the attempt that gave it.
        """
        store = self._internals.engine.store
        if lines := execution_log(await self.stream()):
            return with_attempts(lines, await log_of_attempts(store, self._ref))
        return await log_before_its_stream(store, await self._row())

    async def attempts(self) -> list[Attempt]:
        """Return the attempts at what it sent that failed: who made each, when, how long it took, and the error.

        Of one command the latest 20 are kept, of all 1,000. Those of a fan-out's commands stand in the fan-out.
        """
        await self._row()
        return [
            attempt_view(made) for made in await self._internals.engine.store.attempts(self._ref, ATTEMPTS_OF_INSTANCE)
        ]

    async def result(self, timeout: timedelta = RESULT_TIMEOUT) -> Result_co:
        """Wait for the end. Return the result, or raise if it failed, was cancelled, or is suspended."""
        end = await self.end(timeout)
        return self._internals.engine.registry.workflows[self._ref.workflow].workflow.result_of(end)

    async def end(self, timeout: timedelta = RESULT_TIMEOUT) -> Any:
        """Wait for the end, as `result` does. Return the message that it completed with, in whatever style."""
        end = await self._end(timeout)
        if end.status == "completed":
            return end.result
        if end.status == "suspended":
            raise InstanceSuspendedError(str(self._ref), end.result)
        raise InstanceFailedError(str(self._ref), end.status, end.result)

    async def attributes(self) -> dict[str, Value]:
        """Return what the instance can be searched by."""
        return {row.name: row.value for row in await self._internals.engine.store.attributes(self._ref)}

    async def waiting(self) -> list[WaitingInput]:
        """Return the inputs that wait in the inbox."""
        read = decoded(self._internals.registry.codec)
        return [input_view(row, read) for row in await self._internals.engine.store.inbox(self._ref, WAITING_INPUTS)]

    async def waits_at(self, at: int | None = None) -> WaitsAt:
        """Return at which lines of its code a flow waits, with the calls and variables; or behind a position.

        The code is run once more on what is recorded. What keeps that from being told is told in `problem`.
        """
        engine = self._internals.engine
        loaded = (await engine.store.load([self._ref], 0))[0]
        if loaded is None:
            raise NoSuchInstanceError(str(self._ref))
        _refuse_purged(loaded.row)
        place = None if at is None else max(1, checked_place(at))
        return await waits_at(engine.store, engine.registry, loaded, place)

    async def outputs(self, *, timers: bool = False) -> list[WaitingOutput]:
        """Return what is recorded and not carried out yet: timers, or all but timers."""
        read = decoded(self._internals.registry.codec)
        claims = await self._internals.engine.store.outputs(self._ref, timers, WAITING_INPUTS)
        return [output_view(claim, read) for claim in claims]

    async def suspend(self, reason: str = "by an operator", *, actor: str | None = None) -> None:
        """Stop stepping. Inputs and fired timers queue."""
        await self._internals.engine.operations.suspend(self._ref, checked_reason(reason), checked_actor(actor))

    async def resume(self, *, actor: str | None = None) -> None:
        """Step again."""
        await self._internals.engine.operations.resume(self._ref, checked_actor(actor))

    async def retry(self, *, actor: str | None = None) -> None:
        """Retry the input that failed: the same as `resume`."""
        await self.resume(actor=actor)

    async def skip(self, *, actor: str | None = None) -> None:
        """Skip the input, or the compensation, that failed, and continue."""
        await self._internals.engine.operations.skip(self._ref, checked_actor(actor))

    async def cancel(self, reason: str = "by an operator", *, actor: str | None = None) -> None:
        """End it from outside. What was done is undone first, where it has a compensation."""
        await self._internals.engine.operations.cancel(self._ref, checked_reason(reason), checked_actor(actor))

    async def terminate(self, reason: str = "by an operator", *, actor: str | None = None) -> None:
        """End it from outside at once, and undo nothing."""
        await self._internals.engine.operations.terminate(self._ref, checked_reason(reason), checked_actor(actor))

    async def reset(self, position: int, reason: str = "by an operator", *, actor: str | None = None) -> None:
        """Go back to an earlier position, at the end of a step. The reset is recorded as an event.

        Timers are set again, and what was answered only behind that position is carried out again under its old id.
        """
        await self._internals.engine.operations.reset(self._ref, position, checked_reason(reason), checked_actor(actor))

    async def migrate(self, to: int, *, actor: str | None = None, dry_run: bool = False) -> None:
        """Continue under another version of the workflow, or raise if it cannot read all that is recorded.

        The whole stream is folded by that version first, and what waits must be among its inputs; `dry_run` ends there.
        """
        await self._internals.engine.operations.migrate(self._ref, to, checked_actor(actor), dry_run=dry_run)

    async def _end(self, timeout: timedelta) -> End:
        """Wait for the end, or for a suspension that rows confirm: it may be resumed before the notice comes."""
        engine, seconds = self._internals.engine, checked_seconds(timeout)
        begun_us, left_seconds = engine.store.now_us(), seconds
        while (end := await self._told(seconds, left_seconds)).status == "suspended":
            known = await engine.ends.recorded_end(self._ref)
            if known is not None:
                return known
            left_seconds = max(0.0, seconds - (engine.store.now_us() - begun_us) / 1e6)
        return end

    async def _told(self, seconds: float, left_seconds: float) -> End:
        engine = self._internals.engine
        future = engine.ends.end_of(self._ref)
        try:
            # It may have ended before: only rows are truth. Where it runs here and now, they are asked only if its end
            # does not come soon.
            end = None if engine.stepper.is_running(self._ref) else await engine.ends.recorded_end(self._ref)
            if end is not None and not future.done():
                return end
            if await engine.runtime.wait(future, left_seconds):
                return future.result()
            # It may have ended elsewhere since the last look for all.
            end = await engine.ends.recorded_end(self._ref)
            if end is None:
                raise WaitTimeoutError(str(self._ref), seconds, f"it {await self.standing()}")
            return end
        finally:
            engine.ends.forget(self._ref, future)


class Receipt(Instance[Any, Result_co]):
    """The result of sending a message: its status, and the instance that it went to.

    `status` is `stepped` (taken and decided), `kept` (an event that came after the end: recorded), `accepted` (durable,
    its turn will come), `suspended` (durable, but the instance is suspended), `duplicate` (it was there already) or
    `dead letter` (no instance takes it); and `pending` in a transaction that has not committed.

    >>> import asyncio
    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> async def main() -> None:
    ...     async with app:
    ...         for _ in range(2):
    ...             print(repr(await app.send(Count("c-1"), id="m-1")))
    >>> asyncio.run(main())
    Receipt('Counter/c-1', message_id='m-1', status='stepped')
    Receipt('Counter/c-1', message_id='m-1', status='duplicate')
    """

    def __init__(self, internals: Internals, pending: Pending) -> None:
        super().__init__(internals, pending.ref)
        self.message_id = pending.id
        """The message's id: the one that was given, or a new one."""
        self.status: ReceiptStatus = pending.answer.status if pending.answer is not None else "stepped"
        """What became of the message."""

    def __repr__(self) -> str:
        return f"Receipt({str(self)!r}, message_id={self.message_id!r}, status={self.status!r})"

    async def result(self, timeout: timedelta = RESULT_TIMEOUT) -> Result_co:
        """Wait for the end, as an instance does; not for that of what was never sent."""
        if self.status == "pending":
            problem = "was sent in a transaction that has not committed"
            raise OperationError(str(self._ref), problem, "Ask behind the transaction's block, if that ended well.")
        if self.status == "dead letter":
            await self.row()  # raises if there is none: this message began none
        return await super().result(timeout)


async def log_of_attempts(store: Store, ref: Ref, after: int = 0, to: int | None = None) -> list[LogLine]:
    """Return the lines of the attempts that failed, at what was sent behind one position and up to another."""
    found = await store.attempts(ref, ATTEMPTS_OF_INSTANCE)
    made = [one for one in found if after < one.version and (to is None or one.version <= to)]
    sent = await rows_at(store, ref, {one.version for one in made})
    return [
        LogLine(
            one.version,
            "Attempted",
            moment(one.ended_us),
            one.error or "",
            actor=one.worker,
            attempt=one.number,
            duration_seconds=None if one.duration_us is None else one.duration_us / 1e6,
            command=(sent[one.version].type or "").removeprefix(ERASED_TYPE) if one.version in sent else None,
        )
        for one in made
    ]


async def asked_before(store: Store, recorder: Recorder, ref: Ref, rows: Sequence[EventRow]) -> list[Entry]:
    """Return what the inputs of a page answer that stands before the page. What cannot be read is left out."""
    first = rows[0].version if rows else 0
    causes = {answered_by(ref, row) or first for row in rows if row.kind is not None or row.event == "Suspended"}
    found: list[Entry] = []
    for row in (await rows_at(store, ref, (cause for cause in causes if cause < first))).values():
        with suppress(MainspringError):
            found.append(recorder.entry(ref, row, told=True))
    return found


async def log_before_its_stream(store: Store, row: InstanceRow) -> list[LogLine]:
    """Return what has kept an instance from taking its first input: no stream shows that, but its row does."""
    if row.version:
        return []
    waits = bool(await store.inbox(Ref(row.workflow, row.id), 1))
    return unbegun(row.status, moment(row.updated_us), row.error, row.state, waits=waits)


def _refuse_purged(row: InstanceRow) -> None:
    if row.purged_us is not None:
        raise InstancePurgedError(f"{row.workflow}/{row.id}", row.status, moment(row.purged_us))
