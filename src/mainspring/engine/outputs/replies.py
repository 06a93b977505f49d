"""Replies: to the instance that asked, or to a caller outside that awaits one."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from mainspring.core.messages import Kind
from mainspring.engine.committing.committer import Committer
from mainspring.engine.handlers.job import Job
from mainspring.engine.handlers.runners import Runners
from mainspring.engine.inputs.delivered_output import input_of
from mainspring.engine.inputs.pending import Inputs
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.outputs.settlements import Settlements
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.stored_values import encode_context, instance_id, read_context
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.errors import DamagedRecordError
from mainspring.errors.reading import UNREADABLE
from mainspring.logs import logger
from mainspring.port.ids import MARK
from mainspring.port.records import Outcome, OutputClaim, OutputKey, Ref, Remembered, Unit
from mainspring.port.store import Store

REPLY_KEPT_US: Final = 24 * 3600 * 1_000_000
INSTANCE: Final = "instance:"
# Of a service elsewhere: the name of the endpoint, a colon, and the instance there that asked.
ENDPOINT: Final = "endpoint:"
PAUSE_SECONDS: Final = 1.0
PAUSE_US: Final = 1_000_000

log = logger("mainspring.engine")


class KeptReply(Struct, frozen=True):
    """A reply for a caller outside, as it is kept: a request's id is unique only for the instance that was asked.

    >>> KeptReply("Orders/o-1", Raw(b"{}")).sender
    'Orders/o-1'
    """

    sender: str
    body: Raw


_encode = json.Encoder().encode
_decode = json.Decoder(KeptReply).decode


class Replies:
    """Delivers replies, and keeps those for callers outside for a day: one that comes late is not lost."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        committer: Committer,
        runtime: Runtime,
        inputs: Inputs,
        settlements: Settlements,
        runners: Runners,
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._runtime = runtime
        self._inputs = inputs
        self._settlements = settlements
        self._runners = runners
        self._waiting: dict[tuple[Ref, str], list[asyncio.Future[Any]]] = {}
        # Replies whose addressee is being looked up.
        self.in_hand: set[OutputKey] = set()

    def expect(self, ref: Ref, request: str) -> asyncio.Future[Any]:
        """Return a future for an instance's reply to a request that is about to be sent."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault((ref, request), []).append(future)
        return future

    def give_up(self, ref: Ref, request: str, future: asyncio.Future[Any]) -> None:
        """Wait for a reply no longer; other callers of the same request may."""
        waiting = self._waiting.get((ref, request), [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._waiting[ref, request]

    async def kept(self, request: str, ref: Ref | None = None) -> tuple[bool, Any]:
        """Return a reply that came while no caller here waited for it: that of an instance, or of any."""
        found = await self._store.remembered(f"reply:{request}")
        if found is None or found.type is None:
            return False, None
        try:
            kept = _decode(found.body)
        except UNREADABLE as error:
            raise DamagedRecordError("remembered", f"the reply to {request}: {error}") from error
        if ref is not None and kept.sender != str(ref):
            return False, None
        return True, self._registry.codec.decode(found.type, found.type_version, bytes(kept.body))

    def deliver(self, claim: OutputClaim, message: Any) -> None:
        """Bring a reply to where it goes."""
        address = read_detail(claim.detail).reply_to or ""
        if address.startswith("message:"):
            self.in_hand.add(claim.output)
            self._runtime.spawn(self._to_sender_of(claim, message, address.partition(":")[2]), "mainspring-reply")
        else:
            self._to(claim, message, address)

    async def _to_sender_of(self, claim: OutputClaim, message: Any, message_id: str) -> None:
        """Find the input that the author named, and reply to its sender."""
        try:
            # What led to it is another message, by which the caller could not match the reply to its request.
            context = replace(read_context(claim.context), causation_id=message_id)
            address = await self._address(claim, message_id)
            self._to(replace(claim, context=encode_context(context)), message, address)
            self.in_hand.discard(claim.output)
        except Exception as error:  # noqa: BLE001  this task is not awaited: a reply that it dropped would be lost
            self._later(claim, message, error)

    async def _address(self, claim: OutputClaim, message_id: str) -> str:
        rows = await whole_stream(self._store, Ref(claim.workflow, claim.instance))
        found = {row.message_id: row.context for row in rows if row.message_id in (message_id, MARK + message_id)}
        # Of two with the same name, one that a caller chose must not get what is for an instance.
        context = found.get(MARK + message_id) or found.get(message_id)
        if context is None:
            return ""
        sent = read_context(context)
        return sent.reply_to or (f"{INSTANCE}{sent.sender}" if sent.sender else "")

    def _to(self, claim: OutputClaim, message: Any, address: str) -> None:
        scheme, _, rest = address.partition(":")
        target = instance_id(rest)
        if scheme == "caller":
            self._to_caller(claim, message, rest)
        elif scheme == "endpoint":
            self._to_endpoint(claim, message, address)
        elif scheme != "instance":
            named = read_detail(claim.detail).to
            self._settlements.bury(claim, f"there is no receiver of the reply: {named} is no sent input", None)
        elif target.workflow in self._registry.workflows:
            ref = Ref(target.workflow, target.id)
            self._inputs.submit(input_of(claim, message, ref, Kind.REPLY, self._store.now_us()))
        else:
            self._settlements.retry(claim, claim.attempts, PAUSE_US, f"nothing here knows {target.workflow}")

    def _to_caller(self, claim: OutputClaim, message: Any, request: str) -> None:
        expires_us = self._store.now_us() + REPLY_KEPT_US
        ref = Ref(claim.workflow, claim.instance)
        body = _encode(KeptReply(str(ref), Raw(claim.body)))
        kept = Remembered(f"reply:{request}", claim.type, claim.type_version, body, expires_us)
        unit = Unit(claim.workflow, claim.instance, settles=(claim.output,), remembers=(kept,))

        def then(_: Outcome) -> None:
            for future in self._waiting.pop((ref, request), ()):
                if not future.done():
                    future.set_result(message)

        self._committer.persist(unit, then)

    def _to_endpoint(self, claim: OutputClaim, message: Any, address: str) -> None:
        """Let the endpoint of another service carry it out, as a handler would."""
        name = address.split(":")[1]
        handler = self._registry.reply_handlers.get(name)
        if handler is None:
            self._settlements.retry(claim, claim.attempts, PAUSE_US, f"nothing here knows the endpoint {name}")
            return
        context = replace(read_context(claim.context), reply_to=address)
        job = Job(replace(claim, context=encode_context(context)), message)
        self._runners.of(handler, f"reply:{ENDPOINT}{name}").put(job)

    def _later(self, claim: OutputClaim, message: Any, error: Exception) -> None:
        where = f"{claim.workflow}/{claim.instance}/{claim.output.version}"
        log.warning("the reply %s is not delivered yet, will be tried again: %s", where, error)

        async def wait() -> None:
            await self._runtime.clock.sleep(PAUSE_SECONDS)
            self.deliver(claim, message)

        self._runtime.spawn(wait(), "mainspring-reply-later")
