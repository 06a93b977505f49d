"""What measuring over HTTP stands on: a full store, a server in a process of its own, a client that costs little."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Never

import apsw

from bench import apps
from bench.checks import NotDoneError
from bench.fill import fill
from bench.served import VARIABLE
from bench.settings import Settings
from mainspring import Event, Mainspring, Received, Workflow
from mainspring.app.internals import internals_of
from mainspring.port.records import DeadLetter, Unit

ASLEEP = timedelta(days=30)
LONG_STREAM = 10_000
LONG = "Ticks/long"
TROUBLED_ONE_IN = 10_007
AWAKE_ONE_IN = 50_021
CUSTOMERS = 1_000
TASKS = 10_000
LETTERS = 10_000
LETTERS_AT_ONCE = 1_000
STOP_SECONDS = 30.0


# ---- one workflow more, whose streams are long


@dataclass(frozen=True)
class Tick:
    clock: str


@dataclass(frozen=True)
class Ticked:
    times: int = 0


class Ticks(Workflow[Tick, Ticked, Never]):
    """Counts."""

    initial_state = Ticked()

    def route(self, message: Tick) -> str | None:
        return message.clock

    def decide(self, message: Tick, state: Ticked) -> list[Never]:
        return []

    def evolve(self, state: Ticked, event: Event[Tick, Never]) -> Ticked | None:
        match event:
            case Received(Tick()):
                return Ticked(state.times + 1)


def app_at(url: str) -> Mainspring:
    """Orders, many that sleep, and a stream that is long."""
    app = apps.everything(url)
    app.add(Ticks())
    return app


# ---- a full store


async def fill_all(settings: Settings) -> None:
    """Leave n instances that sleep, some in trouble, all with attributes; tasks, dead letters, and a long stream."""
    await fill(settings, datetime.now(UTC) + ASLEEP)
    _vary(settings)
    app = app_at(settings.url)
    await app.start(work=False)
    try:
        clock = LONG.partition("/")[2]
        for _ in range(0, LONG_STREAM, settings.chunk):
            await app.send_many([Tick(clock) for _ in range(min(settings.chunk, LONG_STREAM))])
        for first in range(0, min(LETTERS, settings.n), LETTERS_AT_ONCE):
            letters = tuple(_letter(number) for number in range(first, first + LETTERS_AT_ONCE))
            await internals_of(app).engine.store.commit(0, [Unit("Orders", "none", dead_letters=letters)])
    finally:
        await app.stop()


def _letter(number: int) -> DeadLetter:
    error = f"TimeoutError: no answer after {number} s"
    body = b'{"order":{"id":"order-%07d"}}' % number
    context = b'{"correlation_id":"c"}'
    return DeadLetter(
        "Orders", "none", f"m-{number}", "command", "Charge", 1, body, 0, context, "gave up", error, attempts=20
    )


def _vary(settings: Settings) -> None:
    """Let the copies differ. They have no checksums of their own, so that they may."""
    opened: Any = apsw.Connection(str(settings.path / "bench.db"))
    with opened:
        opened.execute(
            "UPDATE instances SET status = 'suspended', error = 'ValueError: no price for ' || id WHERE key % ? = 0",
            (TROUBLED_ONE_IN,),
        )
        opened.execute("UPDATE instances SET state = 'Awake' WHERE key % ? = 0", (AWAKE_ONE_IN,))
        opened.execute(
            "INSERT INTO attributes SELECT key, 'amount', 'number', NULL, key FROM instances WHERE workflow = 'Sleeper'"
        )
        opened.execute(
            "INSERT INTO attributes SELECT key, 'customer', 'text', 'c-' || (key % ?), NULL FROM instances"
            " WHERE workflow = 'Sleeper'",
            (CUSTOMERS,),
        )
        opened.execute(
            "INSERT INTO tasks"
            " (instance, version, key, title, answers, opened_us, role, excludes, data, due_us, status)"
            " SELECT key, 99, 'check', 'Check ' || id, '[\"Tick\"]', 0, iif(key % 100 = 0, 'boss', 'clerk'), '[]',"
            " x'7b7d', key, 'open' FROM instances WHERE key <= ?",
            (TASKS,),
        )
    opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    opened.close()


# ---- a server


class Served:
    """A server of the studio and its API in a process of its own, and where it is."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.pid = process.pid
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        host, _, port = line.rpartition(":")
        if not port.isdigit():
            raise NotDoneError(f"the server said {line!r} instead of its address")
        self.host, self.port = host, int(port)


@contextmanager
def serving(settings: Settings) -> Generator[Served]:
    """Serve the app of a full store."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.http_parts"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {VARIABLE: settings.url},
        cwd=Path(__file__).parent.parent,
    )
    try:
        yield Served(process)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def serve() -> None:
    """Serve until told to stop: what `serving` starts."""
    import signal  # noqa: PLC0415  of this process only

    from mainspring.app.tuning import tune_process  # noqa: PLC0415  as above
    from mainspring.web.server import Server, bound  # noqa: PLC0415  as above
    from mainspring.web.studio import studio  # noqa: PLC0415  as above

    async def main() -> None:
        app = app_at(os.environ[VARIABLE])
        server = Server(studio(app))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
        with bound("127.0.0.1", 0) as socket:
            sys.stdout.write("{}:{}\n".format(*socket.getsockname()))
            sys.stdout.flush()
            await server.run_on(socket)

    tune_process()
    asyncio.run(main())


# ---- a client


class Connection:
    """One connection that is kept: what it takes of the processor is a small part of what the server takes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
        self._writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
        headers = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(headers.partition("content-length: ")[2].partition("\r\n")[0])
        return int(headers.split(" ", 2)[1]), await self._reader.readexactly(length)


@asynccontextmanager
async def connected(served: Served, count: int) -> AsyncGenerator[list[Connection]]:
    """Open connections, and close them behind."""
    opened = [await asyncio.open_connection(served.host, served.port, limit=2**24) for _ in range(count)]
    try:
        yield [Connection(*each) for each in opened]
    finally:
        for _, writer in opened:
            writer.close()


if __name__ == "__main__":
    serve()
