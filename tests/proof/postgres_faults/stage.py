"""The stage of a fault: a database, workers and a client on it, and how it ends: quiet, and judged."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring import Mainspring
from mainspring.errors import StoreUnreachableError
from tests.proof.crash.checker import Checker, Verdict
from tests.proof.crash.client import Client
from tests.proof.crash.evidence import Evidence, quiet, read, sample
from tests.proof.crash.files import Lines, Place
from tests.proof.crash.journey import JOURNEY
from tests.proof.crash.tables import AWAY, prepare
from tests.proof.crash.worker import app_of, clock_watched, started
from tests.support.postgres.proxy import Cable
from tests.support.postgres.server import Server

WORKERS: Final = 3
TRAVELLERS: Final = 3
# The design's bound after the last fault is lease + longest backoff + 30 s; a busy machine has two minutes more.
QUIET_SECONDS: Final = 182.0
LOOK_SECONDS: Final = 0.1
ANSWER_SECONDS: Final = 120.0
ASKINGS: Final = 1_000
END_SESSIONS: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mainspring' AND datname = $1"
)
LOGGER: Final = "mainspring"


class Way(Place):
    """The files of a run, and a way of its own to the store: as another user, or through something between."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._way = url

    @property
    def url(self) -> str:
        return self._way


class Asker(Client):
    """A client that counts what it was told, and asks again as it was whatever it was told nothing certain of."""

    def __init__(self, app: Mainspring, place: Place, chance: random.Random) -> None:
        super().__init__(app, place, chance)
        self.told: Counter[str] = Counter()
        self._news = asyncio.Event()

    async def ask(self, id: str, to: str, message: Any) -> str:
        for _ in range(ASKINGS):
            status = await super().ask(id, to, message)
            self.told[status if status in ("unknown", "refused") else "ok"] += 1
            self._news.set()
            if status != "unknown":
                return status
            await asyncio.sleep(LOOK_SECONDS)  # between two looks, or two askings
        raise TimeoutError(f"{id} was asked {ASKINGS} times, and nobody knows what became of it")

    async def more(self, count: int) -> None:
        """Return when so many more inputs were acknowledged."""
        wanted = self.told["ok"] + count
        async with asyncio.timeout(ANSWER_SECONDS):
            while self.told["ok"] < wanted:
                self._news.clear()
                await self._news.wait()


@dataclass
class Stage:
    """What a fault can reach."""

    server: Server
    folder: Path
    url: str
    chance: random.Random
    client: Asker = field(init=False)
    cable: Cable = field(init=False)
    """What is between, where something is."""
    pair: Any = None
    """The server and its standby, where there is one."""
    cycle: int = 0
    log_begins: dict[Path, int] = field(default_factory=dict[Path, int])
    """From where on a server's log is read: others use the server, too."""

    @property
    def place(self) -> Place:
        """The files, and the straight way to the store."""
        return Way(self.folder, self.url)

    async def look(self) -> None:
        """Keep what stands in the tables now, to be held against the end. A server that is away shows nothing."""
        self.cycle += 1
        try:
            found = await asyncio.to_thread(sample, self.place, self.cycle)
        except AWAY:
            return
        if found is not None:
            Lines(self.place.samples).add(sync=False, **found)

    def log_has(self, text: str) -> int:
        """Return how often the server has written a text into its log, since it was first asked here."""
        path = self.server.folder / "log"
        with path.open("rb") as log:
            log.seek(self.log_begins.setdefault(path, path.stat().st_size))
            return log.read().count(text.encode())

    @asynccontextmanager
    async def operator(self) -> AsyncGenerator[Any]:
        """Connect as an operator would."""
        async with connected(self.url) as connection:
            yield connection

    @property
    def database(self) -> str:
        return urlsplit(self.url).path[1:]


@dataclass(frozen=True)
class Outcome:
    """How it went."""

    happened: Counter[str]
    told: Counter[str]
    quiet_seconds: float | None
    workers: int
    evidence: Evidence
    verdicts: list[Verdict]

    @property
    def complaints(self) -> list[str]:
        """What is wrong: nothing, mostly."""
        found = [f"invariant {f.invariant}: {f.ref or ''} {f.what}" for v in self.verdicts for f in v.faults]
        if self.quiet_seconds is None:
            found.append(f"it was not quiet after {QUIET_SECONDS:g} s")
        if self.workers != WORKERS:
            found.append(f"{self.workers} of {WORKERS} workers were left")
        if not self.happened or not all(self.happened.values()):
            found.append(f"what should have happened did not: {dict(self.happened)}")
        return found


@asynccontextmanager
async def connected(url: str, **settings: Any) -> AsyncGenerator[Any]:
    library: Any = asyncpg
    connection = await library.connect(url, timeout=ANSWER_SECONDS, **settings)
    try:
        yield connection
    finally:
        connection.terminate()


def at_database(url: str, name: str, user: str = "postgres") -> str:
    """Return the URL of another database on the same server."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}", path=f"/{name}"))


async def staged(server: Server, folder: Path, seed: int) -> Stage:
    """Return an empty stage: a database of its own on a server."""
    name = "s" + re.sub(r"\W", "_", folder.name)[-40:].lower()
    async with connected(server.url) as operator:
        await operator.execute(f"CREATE DATABASE {name}")
    place = Place(folder)
    place.use(url := at_database(server.url, name))
    await asyncio.to_thread(prepare, place)
    return Stage(server, folder, url, random.Random(seed))  # noqa: S311  no secret


Trouble = Callable[[Stage], Coroutine[Any, Any, Counter[str]]]


async def perform(stage: Stage, trouble: Trouble, ways: list[str] | None = None) -> Outcome:
    """Let workers work and a client ask while the trouble lasts, then judge. Each may have a way of its own."""
    ways = ways or [stage.url]
    with _logged(stage.place), clock_watched(stage.place):
        async with AsyncExitStack() as stack:
            for number in range(WORKERS):
                app = app_of(Way(stage.folder, ways[number % len(ways)]), number + 1)
                await started(app, work=True)
                stack.push_async_callback(app.stop)
            app = app_of(Way(stage.folder, ways[0]))
            await started(app, work=False)
            stack.push_async_callback(app.stop)
            stage.client = Asker(app, stage.place, stage.chance)
            travels = [asyncio.ensure_future(stage.client.travel(f"j-{n}")) for n in range(TRAVELLERS)]
            try:
                happened = await trouble(stage)
                await stage.client.more(TRAVELLERS)
            finally:
                stage.client.stopping.set()
                await asyncio.gather(*travels)
            quiet_seconds = await _until_quiet(stage.place)
            workers = await _workers(app)
    evidence = await asyncio.to_thread(read, stage.place)
    verdicts = Checker(evidence, JOURNEY).verdicts()
    return Outcome(happened, stage.client.told, quiet_seconds, workers, evidence, verdicts)


async def _until_quiet(place: Place) -> float | None:
    """Return after how many seconds nothing was left to do; None if that did not come."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while (waited := loop.time() - begun) < QUIET_SECONDS:
        if await asyncio.to_thread(quiet, place, JOURNEY.come_to_rest):
            return waited
        await asyncio.sleep(LOOK_SECONDS)  # between two looks at the tables
    return None


async def _workers(app: Mainspring) -> int:
    """Return how many workers there are; one that was relieved comes back with its next heartbeat."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while True:
        try:
            count = (await app.stats()).workers
        except StoreUnreachableError:
            count = 0  # where connections are scarce, others give theirs back when they have been idle for a while
        if count == WORKERS or loop.time() - begun > QUIET_SECONDS:
            return count
        await asyncio.sleep(LOOK_SECONDS)  # between two looks, or two askings


class _logged:  # noqa: N801  reads as a word
    """Write what the library logs into the run's file, where the judge looks for what nobody expected."""

    def __init__(self, place: Place) -> None:
        self._handler = logging.FileHandler(place.log)
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def __enter__(self) -> None:
        logging.getLogger(LOGGER).addHandler(self._handler)

    def __exit__(self, *_: object) -> None:
        logging.getLogger(LOGGER).removeHandler(self._handler)
        self._handler.close()
