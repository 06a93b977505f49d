"""Nobody keeps others out by what they send, how slowly, on how many connections: real sockets, on loopback."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mainspring.errors import SettingError
from mainspring.web.access import Access, ProxyHeaders
from mainspring.web.api import api
from mainspring.web.connections import PIPELINED, Limits, Room, read_limits
from mainspring.web.server import Server, bound
from tests.edges.web.support import counters
from tests.support.running import run
from tests.support.waiting import until

HEALTH = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
STATS = HEALTH.replace(b"health", b"stats")
UNFINISHED = b"GET /api/health HTTP/1.1\r\nHost: loc"
NO_BODY = b"POST /api/messages/Count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n{"
LONG = b"GET /api/results/Counter/c-1?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for those whose time is over more often than every second, and stop without patience for who still asks."""
    monkeypatch.setattr("mainspring.web.server.SWEEP_TICKS", 2)
    monkeypatch.setattr("mainspring.web.server.STOP_SECONDS", 0.1)


class Line:
    """A connection, as whoever means no good has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, bytes]:
        """Return the status and the body of the next answer; 0: there is none, it was closed."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return int(head.split()[1]), await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, b""

    async def ask(self, data: bytes) -> tuple[int, bytes]:
        self.send(data)
        return await self.answer()

    @property
    def closed(self) -> bool:
        return self.reader.at_eof() or self.reader.exception() is not None


class Served:
    """A server with an app, and lines to it."""

    def __init__(self, server: Server, port: int) -> None:
        self.server, self.port = server, port
        self.lines: list[Line] = []

    async def connect(self, source: str = "127.0.0.1") -> Line:
        made = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))
        self.lines.append(Line(*made))
        return self.lines[-1]

    async def several(self, n: int, data: bytes, source: str = "127.0.0.1") -> list[Line]:
        """Open so many lines that send the same, all of which are in."""
        seen = len(self.server.server_state.connections)
        lines = [await self.connect(source) for _ in range(n)]
        for line in lines:
            line.send(data)
        await until(lambda: len(self.server.server_state.connections) >= seen + n)
        return lines


@asynccontextmanager
async def serving(folder: Path, limits: Limits, **settings: Any) -> AsyncGenerator[Served]:
    app = counters(folder)
    async with app:
        server = Server(api(app, start=False, **settings), limits)
        with bound("127.0.0.1", 0) as listening:
            ready = asyncio.Event()
            running = asyncio.create_task(server.run_on(listening, ready))
            await ready.wait()
            served = Served(server, listening.getsockname()[1])
            try:
                yield served
            finally:
                for line in served.lines:
                    line.writer.transport.abort()
                server.stop()
                await running


# ---- what is too long


def test_a_header_without_an_end_is_refused_while_it_comes(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, Limits(header_bytes=4_000, header_seconds=3_600)) as served:
            line = await served.connect()
            line.send(HEALTH[:-2] + b"X-Long: ")
            status = asyncio.create_task(line.answer())
            while not status.done():
                line.send(b"x" * 1_000)
                await asyncio.sleep(0)  # the server runs in this loop
            assert (await status)[0] in (431, 0)  # whoever still sends when it is closed may not get to see why
            assert (await (await served.connect()).ask(HEALTH))[0] == 200

    run(main)


def test_headers_over_the_limit_get_a_problem_and_those_within_are_served(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, Limits(header_bytes=4_000)) as served:
            line = await served.connect()
            assert (await line.ask(HEALTH[:-2] + b"X-Long: " + b"x" * 3_900 + b"\r\n\r\n"))[0] == 200
            status, body = await line.ask(HEALTH[:-2] + b"X-Long: " + b"x" * 4_000 + b"\r\n\r\n")
            assert (status, b"at most 4,000 bytes" in body) == (431, True)
            assert await line.ask(HEALTH) == (0, b"")
            line = await served.connect()
            assert (await line.ask(b"GET /" + b"x" * 4_000 + HEALTH[len("GET /api/health") :]))[0] == 431

    run(main)


CHUNKED = b"POST /api/messages/Count HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"


def test_what_stands_behind_a_body_is_no_header(tmp_path: Path) -> None:
    """A proxy that takes away what a client says of itself looks at headers, not at what comes behind the body."""
    access = Access(headers=ProxyHeaders(roles={"ops": "operator"}))
    named = b"x-forwarded-user: ann\r\nx-forwarded-groups: ops\r\n"
    body = b'15\r\n{"counter":   "c-11"}\r\n0\r\n'

    async def main() -> None:
        async with serving(tmp_path, Limits(), access=access) as served:
            line = await served.connect()
            assert (await line.ask(CHUNKED + named + b"\r\n" + body + b"\r\n"))[0] == 200
            assert (await line.ask(CHUNKED + b"\r\n" + body + named + b"x-more: 1\r\n\r\n"))[0] == 401

    run(main)


def test_what_follows_a_wish_to_speak_another_way_is_no_request(tmp_path: Path) -> None:
    """A proxy that hands such a wish on takes what follows for its body, and looks for no headers in it."""
    access = Access(headers=ProxyHeaders(roles={"ops": "operator", "all": "viewer"}))
    inner = HEALTH.replace(b"health", b"stats")[:-2] + b"x-forwarded-user: boss\r\nx-forwarded-groups: ops\r\n\r\n"
    named = b"x-forwarded-user: ann\r\nx-forwarded-groups: all\r\n"
    length = b"content-length: %d\r\n\r\n" % len(inner)
    outer = CHUNKED.replace(b"Transfer-Encoding: chunked\r\n", named + b"connection: upgrade\r\nupgrade: websocket\r\n")

    async def main() -> None:
        async with serving(tmp_path, Limits(), access=access) as served:
            line = await served.connect()
            assert (await line.ask(outer + length))[0] == 403
            line.send(inner)
            assert (await line.answer())[0] == 0

    run(main)


def test_what_stands_behind_a_body_is_bounded_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, Limits(header_bytes=4_000)) as served:
            line = await served.connect()
            line.send(CHUNKED + b"\r\n1\r\n{\r\n0\r\nx-long: ")
            while not line.closed:
                line.send(b"x" * 1_000)
                await asyncio.sleep(0)  # as above

    run(main)


def test_only_so_many_requests_wait_behind_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, Limits()) as served:
            line = await served.connect()
            line.send(HEALTH * PIPELINED)
            assert [(await line.answer())[0] for _ in range(PIPELINED)] == [200] * PIPELINED
            line.send(LONG.replace(b"60", b"0.1") + HEALTH * (PIPELINED + 1))
            assert (await line.answer())[0] == 0

    run(main)


# ---- what is too slow


@pytest.mark.parametrize("data", [b"", UNFINISHED, b"\r\n", NO_BODY, HEALTH, HEALTH + b"\r\n", HEALTH + UNFINISHED])
def test_who_does_not_go_on_is_let_go(tmp_path: Path, data: bytes) -> None:
    limits = Limits(header_seconds=0.05, body_seconds=0.05, idle_seconds=0.05)

    async def main() -> None:
        async with serving(tmp_path, limits) as served:
            line = await served.connect()
            line.send(data)
            await until(lambda: not served.server.server_state.connections)
            assert len((await line.reader.read()).split(b"HTTP/1.1 200")) == 1 + data.count(HEALTH)

    run(main)


def test_who_drips_does_not_stay_any_longer(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, Limits(header_seconds=0.5)) as served:
            line = await served.connect()
            line.send(HEALTH[:-2])
            while not line.closed:
                line.send(b"x: y\r\n")
                await asyncio.sleep(0.05)  # the drip

    run(main)


def test_who_waits_for_us_is_not_let_go(tmp_path: Path) -> None:
    limits = Limits(header_seconds=0.05, body_seconds=0.05, idle_seconds=0.05)

    async def main() -> None:
        async with serving(tmp_path, limits) as served:
            line = await served.connect()
            counted = b'{"counter":  "c-17"}'
            assert (await line.ask(NO_BODY[:-1] + counted))[0] == 200
            asked = LONG.replace(b"c-1", b"c-17").replace(b"60", b"1")  # longer than any limit, and than a sweep
            # Nor does the begin of the next one end it.
            lines = [await served.connect(), await served.connect()]
            answers = await asyncio.gather(lines[0].ask(asked), lines[1].ask(asked + UNFINISHED))
            assert [status for status, _ in answers] == [504, 504]

    run(main)


def test_who_reads_no_answer_is_let_go(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, Limits(unread_seconds=0.05)) as served:
            raw = socket.create_connection(("127.0.0.1", served.port))
            raw.setblocking(False)
            with raw:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                everything = HEALTH.replace(b"health", b"openapi.json")
                connections = served.server.server_state.connections
                await until(lambda: connections)
                sent = 0
                while connections:
                    with suppress(BlockingIOError, ConnectionError):
                        sent += raw.send(everything)
                    await asyncio.sleep(0.001)  # the server runs in this loop
                assert sent

    run(main)


# ---- too many


@pytest.mark.parametrize("data", [b"", UNFINISHED, NO_BODY, HEALTH])
def test_who_says_nothing_makes_room_for_who_does(tmp_path: Path, data: bytes) -> None:
    at_once = {"connections": 10, "connections_per_client": 10, "reserved_connections": 2}
    limits = Limits(**at_once, header_seconds=3_600, body_seconds=3_600)

    async def main() -> None:
        async with serving(tmp_path, limits) as served:
            lines = await served.several(10, data)
            if data == HEALTH:
                assert [(await line.answer())[0] for line in lines] == [200] * 10
            line = await served.connect()
            assert (await line.ask(HEALTH))[0] == 200
            assert (await line.ask(STATS))[0] == 200
            await until(lambda: sum(line.closed for line in lines) == 1)

    run(main)


def test_a_client_takes_no_room_from_others(tmp_path: Path) -> None:
    limits = Limits(connections=10, connections_per_client=5, reserved_connections=2, header_seconds=3_600)

    async def main() -> None:
        async with serving(tmp_path, limits) as served:
            other = await served.connect("127.0.0.2")
            assert (await other.ask(HEALTH))[0] == 200
            lines = [await served.connect() for _ in range(50)]
            await until(lambda: sum(line.closed for line in lines) == 45)
            assert (await other.ask(STATS))[0] == 200

    run(main)


def test_where_all_are_at_work_there_is_room_for_whoever_asks_about_health(tmp_path: Path) -> None:
    limits = Limits(connections=5, connections_per_client=5, reserved_connections=3)

    async def main() -> None:
        async with serving(tmp_path, limits) as served:
            first = await served.connect()
            await first.ask(NO_BODY[:-1] + b'{"counter":   "c-1"}')
            first.writer.close()
            await until(lambda: not served.server.server_state.connections)
            lines = await served.several(5, LONG)
            await until(lambda: len(served.server.server_state.tasks) == 5)
            for path, expected in ((HEALTH, 200), (HEALTH.replace(b"health", b"ready"), 200), (STATS, 503)):
                line = await served.connect()
                status, body = await line.ask(path)
                assert (status, b"NoRoom" in body) == (expected, expected == 503)
                assert await line.ask(HEALTH) == (0, b"")  # it may find a place of its own when it comes again
            # Who fills the reserve makes room there too.
            for _ in range(20):
                await served.connect()
            assert (await (await served.connect()).ask(HEALTH))[0] == 200
            assert not any(line.closed for line in lines)

    run(main)


def test_a_flood_of_nonsense_is_some_lines_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another server of this process, as tests of the studio share one, would count the same lines for itself.
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "filters", [])

    async def main() -> None:
        async with serving(tmp_path, Limits()) as served:
            for _ in range(200):
                line = await served.connect()
                line.send(b"nonsense\r\n\r\n")
                await line.reader.read()

    caplog.set_level(logging.WARNING)
    run(main)
    told = [record for record in caplog.records if record.name == "uvicorn.error"]
    assert len(told) == 30
    assert "more of them within 60 s are left out" in told[-1].getMessage()


# ---- the limits themselves


def test_limits_are_read_by_their_names() -> None:
    assert read_limits(["connections=2000", "header_seconds=2.5"]) == Limits(connections=2_000, header_seconds=2.5)
    for wrong in ("connections", "connections=many", "conections=1", "header_bytes=1.5"):
        with pytest.raises(SettingError, match="NAME=NUMBER"):
            read_limits([wrong])
    for wrong in ("connections=0", "body_seconds=-1", "header_seconds=nan"):
        with pytest.raises(SettingError, match="above 0"):
            read_limits([wrong])


def test_connections_leave_half_of_the_files_to_others() -> None:
    assert (Room(Limits(), files=1_024).places, Room(Limits(), files=20_000).places) == (480, 1_000)
    assert Room(Limits(), files=16).places == 1
