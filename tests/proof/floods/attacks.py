"""The floods, in a process of their own: `python -m tests.proof.floods.attacks KIND PORT SECONDS CONNECTIONS`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

HEAD: Final = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n"
BODY: Final = b"POST /api/messages/Count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n"
BUSY: Final = b"GET /api/results/Counter/c-1?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n"
STATS: Final = HEAD.replace(b"health", b"stats") + b"\r\n"
PIECE: Final = b"x" * 65_536
DRIP_SECONDS: Final = 0.5
# Two clients have a share of their own each.
SOURCES: Final = ("127.0.0.1", "127.0.0.2")


class Attack:
    """What is sent to a port until some time, on how many connections at once."""

    def __init__(self, port: int, seconds: float, connections: int) -> None:
        self._port, self._connections = port, connections
        self._ends = time.monotonic() + seconds
        self.opened = self.answered = self.sent_bytes = 0

    @property
    def _goes_on(self) -> bool:
        return time.monotonic() < self._ends

    async def _again(
        self, use: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
    ) -> None:
        """Keep so many connections busy, each in the place of one that was closed."""

        async def one(n: int) -> None:
            while self._goes_on:
                writer = None
                try:
                    address = (SOURCES[n % len(SOURCES)], 0)
                    reader, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=address)
                    self.opened += 1
                    await use(reader, writer)
                except (OSError, asyncio.IncompleteReadError):
                    await asyncio.sleep(0.01)  # no port, or refused: whoever floods does not give up
                finally:
                    if writer is not None:
                        writer.transport.abort()

        async with asyncio.timeout_at(asyncio.get_running_loop().time() + self._ends - time.monotonic() + 10):
            await asyncio.gather(*(one(n) for n in range(self._connections)))

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        self.sent_bytes += len(data)
        await writer.drain()

    async def header(self) -> None:
        """One header without an end, as fast as it goes."""

        async def use(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._send(writer, HEAD + b"X-Long: ")
            while self._goes_on:
                await self._send(writer, PIECE)

        await self._again(use)

    async def slow_headers(self) -> None:
        """Headers that drip."""
        await self._dripping(HEAD, b"x-y: z\r\n")

    async def slow_bodies(self) -> None:
        """Bodies that drip."""
        await self._dripping(BODY, b" ")

    async def _dripping(self, head: bytes, drop: bytes) -> None:
        async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._send(writer, head)
            while self._goes_on and not reader.at_eof():
                await self._send(writer, drop)
                await asyncio.sleep(DRIP_SECONDS)  # the drip

        await self._again(use)

    async def silent(self) -> None:
        """Connections that are opened, and closed at once."""

        async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0)  # one after the other, as fast as it goes

        await self._again(use)

    async def busy(self) -> None:
        """Requests that are here whole, and take long."""

        async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._send(writer, BUSY)
            await asyncio.wait_for(reader.read(), self._ends - time.monotonic())

        await self._again(use)

    async def requests(self) -> None:
        """Whole requests, one behind the other on each connection."""

        async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while self._goes_on:
                await self._send(writer, STATS)
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
                self.answered += 1

        await self._again(use)

    async def nonsense(self) -> None:
        """What is no HTTP."""

        async def use(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._send(writer, b"\x16\x03\x01 nonsense\r\n\r\n")
            await reader.read()

        await self._again(use)


KINDS: Final = ("header", "slow_headers", "slow_bodies", "silent", "busy", "requests", "nonsense")


def main() -> None:
    kind, port, seconds, connections = sys.argv[1:]
    attack = Attack(int(port), float(seconds), int(connections))
    asyncio.run(getattr(attack, kind)())
    sys.stdout.write(
        json.dumps({"opened": attack.opened, "answered": attack.answered, "sent_bytes": attack.sent_bytes})
    )


if __name__ == "__main__":
    main()
