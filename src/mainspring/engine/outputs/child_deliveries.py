"""Starts and ends of children: a start to the child's workflow, an end to the parent and to children that are open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mainspring.codec import Encoded
from mainspring.core.failures import ChildCompleted, ChildFailed
from mainspring.core.messages import Kind
from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.delivered_output import child_end, input_of
from mainspring.engine.inputs.pending import FailedForGood, Inputs, Pending
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.outputs.fan_out import chunks, joined
from mainspring.engine.outputs.settlements import Settlements
from mainspring.engine.paused_work import PausedWork
from mainspring.engine.recording.children import open_children, parent_at, parent_of
from mainspring.engine.recording.error_text import error_text
from mainspring.engine.recording.event_details import Ending, read_detail
from mainspring.engine.recording.event_rows import answer_id
from mainspring.engine.recording.fan_out_parts import Parts
from mainspring.engine.recording.stored_values import read_context
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.errors import NewerTypeError
from mainspring.logs import Quoted, logger
from mainspring.port.ids import MARK
from mainspring.port.records import FAN_OUT, Context, EventRow, OutputClaim, OutputKey, Ref, Unit
from mainspring.port.store import Store

CANCELLED_AT_ONCE: Final = 200
OUTPUTS_LOOKED_AT: Final = 10_000
INPUTS_LOOKED_AT: Final = 1_000
SECOND_US: Final = 1_000_000
PAUSE_FOR_A_START_SECONDS: Final = 0.05
# Then the end is given back for a while: a start that was set aside is tried only while its worker holds nothing.
LOOKS_FOR_A_START: Final = 20

log = logger("mainspring.engine")


CancelChild: TypeAlias = Callable[[Ref, str, str], Awaitable[bool]]
"""Cancels the instance that an output began, for a reason. False: there is no such instance."""


class Child(Struct, frozen=True):
    """A child to be cancelled: which one, and by which of its parent's outputs it was to begin."""

    ref: Ref
    started_by: str
    version: int


class ChildDeliveries:
    """Carries out the starts of children and the ends of instances."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        runtime: Runtime,
        committer: Committer,
        inputs: Inputs,
        settlements: Settlements,
        paused: PausedWork,
        cancel_child: CancelChild,
    ) -> None:
        self._store = store
        self._registry = registry
        self._runtime = runtime
        self._committer = committer
        self._inputs = inputs
        self._settlements = settlements
        self._paused = paused
        self._cancel_child = cancel_child
        self.in_hand: set[OutputKey] = set()

    # ---- starts

    def start(self, claim: OutputClaim, message: Any) -> None:
        """Begin a child, or a fan-out."""
        if claim.type == _PARTS:
            self._fan_out(claim)
            return
        takers = self._registry.takers(message)
        handler = self._registry.handlers.get(self._registry.queue_of(claim.destination))
        if takers:
            entry = takers[0]
            try:
                id = entry.route(message)
            except Exception as error:  # noqa: BLE001  an author's route may fail in any way
                self._refuse(claim, f"{entry.name} could not route it: {error_text(error)}")
                return
            if id is None:
                self._refuse(claim, f"{entry.name} does not want it: its route returned None")
                return
            pending = input_of(claim, message, Ref(entry.name, id), Kind.COMMAND, self._store.now_us())
            pending.context = replace(pending.context, parent=pending.id)
            self._inputs.submit(pending)
        elif handler is not None:
            self._refuse(claim, f"{claim.type} is carried out by the handler {handler.name}: Send it instead")
        else:
            self._settlements.retry(claim, claim.attempts, SECOND_US, f"nothing here takes {claim.type}")

    def _refuse(self, claim: OutputClaim, reason: str) -> None:
        failed = ChildFailed(claim.type, "refused", reason)
        own = f"{claim.workflow}/{claim.instance}/{claim.output.version}"
        self._inputs.submit(self._end(claim, own, failed))

    def _fan_out(self, claim: OutputClaim) -> None:
        """Accept all parts in one commit, in pieces that a step can start."""
        codec, now_us = self._registry.codec, self._store.now_us()
        parts: Parts = codec.decode(claim.type, claim.type_version, claim.body)
        own = f"{claim.workflow}/{claim.instance}/{claim.output.version}"
        first = input_of(claim, parts, Ref(FAN_OUT, own), Kind.COMMAND, now_us)
        context = replace(first.context, parent=own)
        rows: list[Any] = []
        for number, chunk in enumerate(chunks(parts)):
            body = codec.encode(chunk).body
            # Only the first begins; the others must not look like one more child of the same name.
            told = context if number == 0 else first.context
            piece = Pending(first.ref, chunk, first.type, first.type_version, body, own, first.kind, told, now_us)
            rows.append(
                replace(piece.input_row(claimed=True), message_id=f"{MARK}{own}/{number}" if number else MARK + own)
            )
        self._settlements.settle(claim, tuple(rows))

    # ---- ends

    def tell(self, claim: OutputClaim) -> None:
        """Notify parent and children of an instance's end, and settle it."""
        end = read_detail(claim.detail).end or Ending("completed")
        if end.children or claim.workflow == FAN_OUT:
            self.in_hand.add(claim.output)
            self._runtime.spawn(self._tell_slowly(claim, end), "mainspring-end")
        else:
            self._tell_parent(claim, end)

    async def _tell_slowly(self, claim: OutputClaim, end: Ending) -> None:
        """Report an end that needs more than one commit. Whatever happens, it is settled or retried."""
        try:
            ref = Ref(claim.workflow, claim.instance)
            looks = 0
            while end.children and not await self._cancel_children(ref, end.status, claim.output.version):
                looks += 1
                if looks == LOOKS_FOR_A_START:
                    self._settlements.retry(claim, claim.attempts, SECOND_US, "a child of it is just beginning")
                    return
                await self._runtime.clock.sleep(PAUSE_FOR_A_START_SECONDS)
            if claim.workflow == FAN_OUT and end.status == "completed":
                await self._tell_joined(claim, end)
            else:
                self._tell_parent(claim, end)
        except NewerTypeError as error:
            self._settlements.leave(claim, error)
        except Exception as error:  # noqa: BLE001  this task is not awaited: an end that it dropped would be lost
            where = f"{claim.workflow}/{claim.instance}"
            log.warning("the end of %s is not told yet, will be tried again: %s", where, error)
            self._settlements.retry(claim, claim.attempts + 1, SECOND_US, error_text(error))
        finally:
            self.in_hand.discard(claim.output)

    def _tell_parent(self, claim: OutputClaim, end: Ending) -> None:
        if end.parent is None:
            self._settlements.settle(claim)
        elif self._is_known(claim, end.parent):
            self._inputs.submit(self._end(claim, end.parent, _said(claim, end)))

    def _is_known(self, claim: OutputClaim, parent: str) -> bool:
        """Return True if the parent's workflow is known here; if not, leave the end to a worker that knows it."""
        known = parent_at(parent).ref.workflow in self._registry.workflows
        if not known:
            self._settlements.retry(claim, claim.attempts, SECOND_US, f"nothing here knows the parent {parent}")
        return known

    def _end(self, claim: OutputClaim, parent: str, said: ChildCompleted | ChildFailed | Encoded) -> Pending:
        about = read_context(claim.context)
        own = f"{claim.workflow}/{claim.instance}/{claim.output.version}"
        context = Context(about.correlation_id, own, None, None, about.trace)
        return child_end(self._registry.codec, parent, said, context, self._store.now_us(), claim.output)

    async def _tell_joined(self, claim: OutputClaim, end: Ending) -> None:
        """Make one message of the ends of all parts, and bring it to the parent."""
        parent = end.parent or ""
        if not self._is_known(claim, parent):
            return
        rows = await whole_stream(self._store, Ref(claim.workflow, claim.instance))
        try:
            said = self._joined(parent, rows)
        except NewerTypeError:
            raise
        except Exception as error:  # noqa: BLE001  whatever an author's type refuses
            self._inputs.submit(self._cannot_join(claim, parent, error))
        else:
            self._inputs.submit(self._end(claim, parent, said))

    def _joined(self, parent: str, rows: list[EventRow]) -> Encoded:
        codec = self._registry.codec
        join = joined(codec, rows)
        entry = self._registry.workflows[parent_at(parent).ref.workflow]
        inputs = {name: cls for version in entry.versions for cls, name in version.definition.inputs.items()}
        cls = inputs.get(join.into)
        if cls is None and not codec.reads(join.into, 1):
            raise NewerTypeError(join.into, f"is to join a fan-out of {entry.name}, and not known here", "Upgrade.")
        if cls is None:
            raise LookupError(f"{join.into} is no input of {entry.name} any more")
        return codec.encode(join.as_message(cls))

    def _cannot_join(self, claim: OutputClaim, parent: str, error: Exception) -> Pending:
        """Suspend a parent that cannot take what its fan-out came to; the dead letter can be retried when it can."""
        text = error_text(error)
        log.error("the results of %s cannot be told to %s: %s", claim.instance, parent, Quoted(text))
        pending = self._end(claim, parent, ChildFailed(claim.instance, "failed", text))
        letter = self._settlements.letter(claim, "its results cannot be told to its parent", text)
        pending.failure = FailedForGood(f"the results of its fan-out cannot be told: {text}", letter)
        return pending

    # ---- children of an instance that has ended

    async def _cancel_children(self, ref: Ref, status: str, ended_at: int) -> bool:
        """Cancel all open children. False: some are just beginning, and must be looked at again.

        Those that were started behind the end belong to the instance as it began anew, or was reset.
        """
        rows = open_children(await whole_stream(self._store, ref))
        children = [self._child(ref, row) for row in rows if row.version < ended_at]
        known = [child for child in children if child is not None]
        reason = f"its parent {ref} has {status}"
        beginning: list[Child] = []
        for at in range(0, len(known), CANCELLED_AT_ONCE):
            some = known[at : at + CANCELLED_AT_ONCE]
            done = await asyncio.gather(*(self._cancel_child(child.ref, child.started_by, reason) for child in some))
            beginning += [child for child, found in zip(some, done, strict=True) if not found]
        return not beginning or await self._never_began(ref, beginning, reason)

    async def _never_began(self, ref: Ref, children: list[Child], reason: str) -> bool:
        """Return True if children that were not found can be forgotten: their starts are no longer claimed."""
        waiting = await self._store.outputs(ref, timers=False, limit=OUTPUTS_LOOKED_AT)
        if {output.output.version for output in waiting} & {child.version for child in children}:
            return False
        for child in children:
            if not await self._withdrawn(child):
                return False
        # One may have begun between the two looks.
        await asyncio.gather(*(self._cancel_child(child.ref, child.started_by, reason) for child in children))
        return True

    async def _withdrawn(self, child: Child) -> bool:
        """Take a start away that waits in the inbox of a paused workflow. False: a worker is about to take it in."""
        waiting = await self._store.inbox(child.ref, INPUTS_LOOKED_AT)
        starts = [row for row in waiting if parent_of(row.context) == child.started_by]
        if starts and f"reply:{child.ref.workflow}" not in self._paused.queues:
            return False
        for row in starts:
            await self._committer.commit(Unit(row.workflow, row.instance, consumes=row.position))
        return True

    def _child(self, parent: Ref, row: EventRow) -> Child | None:
        started_by = answer_id(parent, row.version, Kind.TIMER)
        if row.type == _PARTS:
            return Child(Ref(FAN_OUT, started_by), started_by, row.version)
        message = self._registry.codec.decode(row.type or "", row.type_version, row.body or b"")
        for entry in self._registry.takers(message)[:1]:
            try:
                id = entry.route(message)
            except Exception:  # noqa: BLE001  then it could not begin either
                return None
            return None if id is None else Child(Ref(entry.name, id), started_by, row.version)
        log.warning(
            "%s was started by %s, which has ended, and cannot be cancelled here: add its workflow", row.type, parent
        )
        return None


_PARTS: Final = "mainspring.Parts"


def _said(claim: OutputClaim, end: Ending) -> ChildCompleted | ChildFailed | Encoded:
    ref = f"{claim.workflow}/{claim.instance}"
    if end.status != "completed":
        return ChildFailed(ref, end.status, read_detail(claim.detail).reason or "")
    return Encoded(claim.type, claim.type_version, claim.body) if claim.type else ChildCompleted(ref)
