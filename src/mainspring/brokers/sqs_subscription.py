"""A consumer of a FIFO queue in Amazon SQS, and what its messages look like there."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from time import monotonic
from typing import Any, Final, Self

from msgspec import DecodeError, Struct, ValidationError, json
from msgspec.structs import replace

from mainspring.brokers.adapters import going_on
from mainspring.brokers.port import Delivery
from mainspring.brokers.sqs_client import BATCH, SqsClient
from mainspring.errors import BrokerError

# Attributes of a message: its headers as one JSON object, for SQS takes ten; and whether its body is base64.
HEADERS: Final = "headers"
ENCODING: Final = "encoding"
BASE64: Final = "base64"
COUNT_DIGITS: Final = 9
CLOSE_SECONDS: Final = 5.0


class _Held(Struct):
    """A message that is hidden from others at SQS until `expires`, by the monotonic clock."""

    receipt: str
    expires: float


class SqsSubscription:
    """What SQS has handed over is held here, hidden from others for `takeover_seconds`, which is renewed by half time.

    While a message of a group is hidden, SQS gives out nothing behind it of that group. So what is given back stays
    here, in its order, and is shown to others when the subscription is closed.
    """

    def __init__(
        self,
        client: SqsClient,
        address: str,
        url: str,
        prefetch: int,
        takeover_seconds: int,
        poll_seconds: int,
        on_close: Callable[[Self], None],
    ) -> None:
        self._client = client
        self._address = address
        self._url = url
        self._prefetch = prefetch
        self._takeover_seconds = takeover_seconds
        self._poll_seconds = poll_seconds
        self._on_close = on_close
        # Waiting for messages takes its thread for seconds: what is to be done meanwhile has others.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mainspring-sqs-poll")
        self._polling: asyncio.Task[tuple[Any, float]] | None = None
        self._ready: deque[Delivery] = deque()
        self._held: dict[int, _Held] = {}
        self._taken = 0
        self._closed = False

    # ---- the contract

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        deadline = monotonic() + wait_seconds
        await self._keep()
        if not self._ready and self._room > 0:
            await self._fill(limit, deadline)
        elif not self._ready:
            await asyncio.sleep(wait_seconds)
        return [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        self._check()
        numbers = [delivery.token for delivery in deliveries if delivery.token in self._held]
        failed = await self._each("delete_message_batch", numbers)
        for number in numbers:
            if number not in failed:
                del self._held[number]
        if failed:
            raise self._lost()

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        self._check()
        back = [replace(each, attempt=each.attempt + 1) for each in deliveries if each.token in self._held]
        self._ready = deque(sorted([*back, *self._ready], key=lambda delivery: delivery.token))

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        await self._keep()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._on_close(self)
        with going_on("giving messages back to SQS"):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._each("change_message_visibility_batch", list(self._held), VisibilityTimeout=0)
        self._held.clear()
        with going_on("giving messages back to SQS that were on their way"):
            async with asyncio.timeout(self._poll_seconds + CLOSE_SECONDS):
                if self._polling is not None:
                    self._take(*await self._polling)
                    await self._each("change_message_visibility_batch", list(self._held), VisibilityTimeout=0)
        self._leave()

    def abandon(self) -> None:
        """Give nothing back: it is seen again when its time is up."""
        self._closed = True
        if self._polling is not None:
            self._polling.cancel()
        self._leave()

    def _leave(self) -> None:
        self._ready.clear()
        self._held.clear()
        self._thread.shutdown(wait=False)

    # ---- at SQS

    @property
    def _room(self) -> int:
        return self._prefetch - len(self._held)

    async def _fill(self, limit: int, deadline: float) -> None:
        """Take what SQS has, ten at a time, and wait for the first of it. Cancelled, it leaves the rest to the next."""
        poll_seconds = self._poll_seconds
        while self._room > 0 and len(self._ready) < limit:
            if self._polling is None:
                self._polling = asyncio.create_task(self._poll(poll_seconds), name="mainspring-sqs-poll")
            await asyncio.wait((self._polling,), timeout=max(0.0, deadline - monotonic()))
            self._check()  # the broker may have been closed meanwhile
            if not self._polling.done():
                return
            done, self._polling = self._polling, None
            if self._take(*done.result()) < BATCH:
                if self._ready or monotonic() >= deadline:
                    return
            else:
                poll_seconds = 0

    async def _poll(self, seconds: int) -> tuple[Any, float]:
        return await self._client.call(
            "receive_message",
            self._thread,
            QueueUrl=self._url,
            MaxNumberOfMessages=min(BATCH, self._room),
            WaitTimeSeconds=seconds,
            VisibilityTimeout=self._takeover_seconds,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
            MessageAttributeNames=["All"],
            # An answer that was lost is given again to the same attempt, instead of being hidden until its time is up.
            ReceiveRequestAttemptId=token_hex(16),
        )

    def _take(self, answer: Mapping[str, Any], at: float) -> int:
        messages = answer.get("Messages", ())
        for message in messages:
            self._taken += 1
            self._held[self._taken] = _Held(message["ReceiptHandle"], at + self._takeover_seconds)
            self._ready.append(delivery_of(self._address, message, self._taken))
        return len(messages)

    async def _keep(self) -> None:
        """Extend what is held, where half of its time is over; raise if the time of any is over."""
        self._check()
        if self._polling is not None and self._polling.done() and self._polling.exception() is None:
            # It ended while a batch was taken: what came is held since then.
            done, self._polling = self._polling, None
            self._take(*done.result())
        now = monotonic()
        if any(held.expires <= now for held in self._held.values()):
            raise self._lost()
        due = [number for number, held in self._held.items() if held.expires - now < self._takeover_seconds / 2]
        if await self._each("change_message_visibility_batch", due, VisibilityTimeout=self._takeover_seconds):
            raise self._lost()
        for number in due:
            self._held[number].expires = now + self._takeover_seconds

    async def _each(self, operation: str, numbers: Iterable[int], **arguments: Any) -> set[int]:
        """Return the numbers of those that SQS did not do it to."""
        given = list(numbers)
        entries = [{"ReceiptHandle": self._held[number].receipt, **arguments} for number in given]
        return {given[index] for index in await self._client.call_in_tens(operation, self._url, entries)}

    def _check(self) -> None:
        if self._closed:
            raise BrokerError("sqs", f"was left, at the queue {self._address!r}", "Subscribe again.")

    def _lost(self) -> BrokerError:
        problem = f"shows others again what was held of the queue {self._address!r}: its time was up"
        return BrokerError("sqs", problem, "It comes again. Raise takeover_seconds if this goes on.")


def delivery_of(address: str, message: Mapping[str, Any], token: int) -> Delivery:
    """Return a message as it came from SQS.

    >>> said = {"ce-type": {"StringValue": "PlaceOrder"}, "headers": {"StringValue": '{"ce-id": "7"}'}}
    >>> found = delivery_of("orders.fifo", {"MessageId": "5f", "Body": "{}", "MessageAttributes": said}, 1)
    >>> found.headers, found.identity
    ({'ce-type': 'PlaceOrder', 'ce-id': '7'}, 'sqs:orders.fifo/5f')
    """
    headers = {name.lower(): _text(value) for name, value in message.get("MessageAttributes", {}).items()}
    body = message["Body"].encode(errors="surrogatepass")
    if headers.pop(ENCODING, "") == BASE64:
        body = _decoded(body)
    headers |= _together(headers.pop(HEADERS, "{}"))
    counted = message.get("Attributes", {}).get("ApproximateReceiveCount", "")
    attempt = int(counted) if counted.isdecimal() and len(counted) <= COUNT_DIGITS else 1
    return Delivery(body, headers, f"sqs:{address}/{message['MessageId']}", None, attempt, token)


def _together(text: str) -> dict[str, str]:
    """Return the headers in one attribute; none where it is something else."""
    try:
        found = json.decode(text, type=dict[str, str])
    except (DecodeError, ValidationError, RecursionError, UnicodeEncodeError):
        return {}
    return {name.lower(): value for name, value in found.items()}


def _decoded(body: bytes) -> bytes:
    try:
        return b64decode(body, validate=True)
    except ValueError:
        return body  # it cannot be read, and is kept as it came


def _text(value: Mapping[str, Any]) -> str:
    if "StringValue" in value:
        return str(value["StringValue"])
    return bytes(value.get("BinaryValue", b"")).decode(errors="replace")
