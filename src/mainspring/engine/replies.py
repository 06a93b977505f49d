"""Replies: to the instance that asked, or to a caller outside who awaits one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from mainspring.core.messages import Kind
from mainspring.engine.committer import Committer
from mainspring.engine.intake import Intake
from mainspring.engine.loader import whole_stream
from mainspring.engine.pending import input_of, instance_id, read_context
from mainspring.engine.recorder import read_detail
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.port.records import Outcome, OutputClaim, Ref, Remembered, Unit
from mainspring.port.store import Store

if TYPE_CHECKING:
    pass

REPLY_KEPT_US: Final = 24 * 3600 * 1_000_000
CALLER: Final = "caller:"
INSTANCE: Final = "instance:"


class Replies:
    """Delivers replies, and keeps those for callers outside for a day: one that comes late is not lost."""

    def __init__(
        self, store: Store, registry: Registry, committer: Committer, intake: Intake, runtime: Runtime
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._intake = intake
        self._runtime = runtime
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    def expect(self, request: str) -> asyncio.Future[Any]:
        """Return a future for the reply to a request that is about to be sent."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request] = future
        return future

    def give_up(self, request: str) -> None:
        """Wait for a reply no longer."""
        self._waiting.pop(request, None)

    async def kept(self, request: str) -> tuple[bool, Any]:
        """Return a reply that came while nobody here waited for it."""
        found = await self._store.remembered(f"reply:{request}")
        if found is None or found.type is None:
            return False, None
        return True, self._registry.codec.decode(found.type, found.type_version, found.body)

    def deliver(self, claim: OutputClaim, message: Any) -> None:
        """Bring a reply to where it goes."""
        address = read_detail(claim.detail).reply_to or ""
        if address.startswith("message:"):
            self._runtime.spawn(self._to_sender_of(claim, message, address.partition(":")[2]), "mainspring-reply")
        else:
            self._to(claim, message, address)

    async def _to_sender_of(self, claim: OutputClaim, message: Any, message_id: str) -> None:
        """Find the input that the author named, and reply to whoever sent it."""
        rows = await whole_stream(self._store, Ref(claim.workflow, claim.instance))
        context = next((row.context for row in rows if row.message_id == message_id), None)
        address = ""
        if context is not None:
            found = read_context(context)
            address = found.reply_to or (f"{INSTANCE}{found.sender}" if found.sender else "")
        self._to(claim, message, address)

    def _to(self, claim: OutputClaim, message: Any, address: str) -> None:
        scheme, _, rest = address.partition(":")
        target = instance_id(rest)
        if scheme == "instance" and target.workflow in self._registry.workflows:
            ref = Ref(target.workflow, target.id)
            self._intake.submit(input_of(claim, message, ref, Kind.REPLY, self._store.now_us()))
        else:
            self._to_caller(claim, message, rest)

    def _to_caller(self, claim: OutputClaim, message: Any, request: str) -> None:
        expires_us = self._store.now_us() + REPLY_KEPT_US
        kept = Remembered(f"reply:{request}", claim.type, claim.type_version, claim.body, expires_us)
        unit = Unit(claim.workflow, claim.instance, settles=(claim.output,), remembers=(kept,))

        def done(outcome: Outcome | Exception) -> None:
            future = self._waiting.pop(request, None)
            if future is not None and not future.done() and not isinstance(outcome, Exception):
                future.set_result(message)

        self._committer.add(unit, done)
