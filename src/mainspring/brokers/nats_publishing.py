"""Publishing to JetStream: many messages at once, each confirmed by an answer of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct, json
from nats.aio.client import Client
from nats.aio.msg import Msg

from mainspring.brokers.nats_subscription import MESSAGE_ID, STATUS
from mainspring.brokers.port import Outgoing
from mainspring.errors import BrokerError, DoNotRetryError
from mainspring.errors.reading import UNREADABLE

CONFIRM_SECONDS: Final = 10.0
NO_RESPONDERS: Final = "503"
# These codes say that a request can never succeed; all else may pass.
TOO_LARGE: Final = 10_054


class _Refusal(Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Answer(Struct, frozen=True):
    stream: str | None = None
    error: _Refusal | None = None


_answer: Final = json.Decoder(_Answer).decode


class Confirmations:
    """Publishes over a connection, and matches what comes back. nats-py's own way costs a system call for each."""

    def __init__(self, client: Client) -> None:
        self._client: Any = client
        self._inbox = client.new_inbox()
        self._made = 0
        self._waiting: dict[str, tuple[asyncio.Future[Exception | None], str]] = {}

    async def open(self) -> None:
        """Listen for confirmations."""
        await self._client.subscribe(f"{self._inbox}.*", cb=self._came)

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        """Publish messages in their order, and return what became of each."""
        loop = asyncio.get_running_loop()
        sent = {self._next(): message for message in messages}
        futures: dict[str, asyncio.Future[Exception | None]] = {reply: loop.create_future() for reply in sent}
        self._waiting |= {reply: (futures[reply], message.address) for reply, message in sent.items()}
        try:
            for reply, message in sent.items():
                await self._send(reply, message, futures[reply])
            if futures:
                await asyncio.wait(futures.values(), timeout=CONFIRM_SECONDS)
            return [future.result() if future.done() else _late() for future in futures.values()]
        finally:
            for reply in sent:
                self._waiting.pop(reply, None)

    def _next(self) -> str:
        self._made += 1
        return f"{self._inbox}.{self._made}"

    async def _send(self, reply: str, message: Outgoing, future: asyncio.Future[Exception | None]) -> None:
        # JetStream knows ids for a whole stream, and several of our addresses may be in one.
        headers = {**message.headers, MESSAGE_ID: quote(f"{message.address}#{message.id}", safe="#/:@")}
        size = _header_bytes(headers) + len(message.body)
        if size > self._client.max_payload:
            # The client counts the payload alone, and the server ends the connection of a client that sends too much.
            future.set_result(DoNotRetryError(f"NATS takes no message of {size:,} bytes"))
            return
        try:
            await self._client.publish(message.address, message.body, reply=reply, headers=headers)
        except Exception as error:  # noqa: BLE001  the others are sent all the same
            future.set_result(error)

    async def _came(self, msg: Msg) -> None:
        future, address = self._waiting.get(msg.subject, (None, ""))
        if future is not None and not future.done():
            future.set_result(_outcome(msg, address))


def _outcome(msg: Msg, address: str) -> Exception | None:
    """Return None if a stream has it, else why not."""
    if (msg.headers or {}).get(STATUS) == NO_RESPONDERS:
        return no_stream(address)
    try:
        answer = _answer(msg.data)
    except UNREADABLE as error:
        return BrokerError("nats", f"gave an answer that cannot be read: {error}", "Look at what listens there.")
    if answer.error is not None and answer.error.err_code == TOO_LARGE:
        return DoNotRetryError(f"NATS refused it: {answer.error.description}")
    if answer.error is not None:
        problem = f"refused a message: {answer.error.description}"
        return BrokerError("nats", problem, "Look at the stream.", of_message=True)
    if answer.stream is None:
        return BrokerError("nats", "has no stream that confirms", "Something else listens at that subject.")
    return None


def _header_bytes(headers: Mapping[str, str]) -> int:
    """Return how many bytes headers take on the wire: a line for the version, one for each, an empty one.

    >>> _header_bytes({"ce-id": "7"})
    22
    """
    lines = ("NATS/1.0", *(f"{name}: {value}" for name, value in headers.items()), "")
    return sum(len(line.encode()) + len("\r\n") for line in lines)


def no_stream(address: str) -> BrokerError:
    """Return what to say where no stream holds a subject."""
    fix = "Create one that holds it, or name `streams`."
    return BrokerError("nats", f"has no stream for {address}", fix, of_message=True)


def _late() -> BrokerError:
    return BrokerError("nats", "did not confirm a message in time", "It is sent again under the same id.")
