"""A server without a network: bytes in, the statuses of its answers out."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import zlib
from typing import Any, Final, Self

import uvicorn
from uvicorn.server import ServerState

from mainspring import Mainspring
from mainspring.testing.samples import Count, Counter, LeaveRequests
from mainspring.web.access import Access
from mainspring.web.api import api
from mainspring.web.connections import Connection, Limits, Room

SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  of a test
ANSWERED_SECONDS: Final = 20.0
TURNS: Final = 5
# What a server may say when it is well: that something has to wait, or did not come in time.
WELL: Final = frozenset({"503", "504"})
_PROBLEM: Final = re.compile(rb"urn:mainspring:error:(\w+)")
_STATUS: Final = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)


class ServerFaultError(Exception):
    """The server has answered with an error of its own, or logged one."""


class _Line(asyncio.Transport):
    """The end of a connection at which the server writes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 40_000), "sockname": ("127.0.0.1", 8_420)})
        self.written = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Exchange(logging.Handler):
    """An app that is served, in a loop of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.app = Mainspring("memory://")
        self.app.add(Counter(), LeaveRequests())
        self._logged: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._state = ServerState()
        self._room = Room(Limits(header_bytes=8_000))

    def __enter__(self) -> Self:
        hook = self.app.hook("doorbell", secrets=SECRET)
        hook(lambda payload: Count(payload["door"]))
        logging.getLogger().addHandler(self)
        self.run(self._begin())
        return self

    async def _begin(self) -> None:
        await self.app.start()
        made = api(self.app, start=False, access=Access(anybody="admin"))
        self._config = uvicorn.Config(made, log_config=None, access_log=False, lifespan="off", ws="none")
        self._config.load()
        self._loop.set_exception_handler(lambda _, context: self._logged.append(str(context)))

    def __exit__(self, *_: object) -> None:
        self.run(self.app.stop())
        logging.getLogger().removeHandler(self)
        self._loop.close()

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    def emit(self, record: logging.LogRecord) -> None:
        self._logged.append(f"{record.name}: {record.getMessage()} {record.exc_info and record.exc_info[1]!r}")

    def send(self, data: bytes) -> str:
        """Send bytes, in pieces, and return the statuses of what was answered."""
        return self.run(self._send(data))

    async def _send(self, data: bytes) -> str:
        line, self._logged = _Line(), []
        connection = Connection(self._config, self._state, {}, self._loop, room=self._room)
        connection.connection_made(line)
        for piece in _pieces(data):
            connection.data_received(piece)
            await asyncio.sleep(0)
            if line.closed:
                break
        if connection.until is None and self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=ANSWERED_SECONDS)
        for _ in range(TURNS):
            await asyncio.sleep(0)  # whoever waits for more is about to hear that there is none
        connection.connection_lost(None)
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=ANSWERED_SECONDS)
        statuses = [status.decode() for status in _STATUS.findall(line.written)]
        wrong = [status for status in statuses if status.startswith("5") and status not in WELL]
        if wrong or self._logged or self._state.tasks:
            raise ServerFaultError(f"{statuses} {self._logged[:3]} {len(self._state.tasks)} under way")
        return " ".join([*statuses, *(name.decode() for name in _PROBLEM.findall(line.written))]) or "none"


def _pieces(data: bytes) -> list[bytes]:
    """Return bytes in pieces as a network makes them, the same for the same bytes."""
    chance = random.Random(zlib.crc32(data))  # noqa: S311  to be the same again
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 3))))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def request(method: bytes, path: bytes, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    """Return a request with a body."""
    more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items()).encode()
    head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % (method, path)
    return b"%s%sContent-Length: %d\r\n\r\n%s" % (head, more, len(body), body)
