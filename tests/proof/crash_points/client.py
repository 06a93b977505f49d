"""A client with a ledger outside the process: what it was told in an earlier life it does not ask again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
from msgspec import json

from mainspring import Mainspring
from mainspring.errors import DuplicateIdError
from tests.proof.crash.files import Lines, Place, now_us, read_lines
from tests.proof.crash.tables import SCHEMA

LOOK_SECONDS: Final = 0.002
PATIENCE_SECONDS: Final = 60.0
# Timers that are due later than this are not waited for.
SOON_US: Final = 60_000_000

# As it was before anybody counts: looking is no crash point.
_connect: Any = asyncpg.connect  # pyright: ignore[reportUnknownMemberType]  it has no types


class Look(Protocol):
    """A connection of the client's own, that no crash point is counted at."""

    async def rows(self, statement: str) -> Sequence[Sequence[Any]]: ...


class _File:
    def __init__(self, database: Path) -> None:
        self._connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
        self._connection.set_busy_timeout(10_000)

    async def rows(self, statement: str) -> Sequence[Sequence[Any]]:
        return list(self._connection.execute(statement))


class _Server:
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    async def rows(self, statement: str) -> Sequence[Sequence[Any]]:
        return await self._raw.fetch(statement)


async def look_at(place: Place) -> Look:
    """Open it. It ends with the process."""
    if place.url.startswith("sqlite:"):
        return _File(place.database)
    settings = {"search_path": SCHEMA, "application_name": "observer"}
    return _Server(await _connect(place.url, server_settings=settings))


class Client:
    """Tells its script to an app. Each asking has a line in the ledger before and after."""

    def __init__(self, app: Mainspring, place: Place, look: Look, patience_seconds: float) -> None:
        self.app = app
        self.place = place
        self._look = look
        self._patience_seconds = patience_seconds
        self._ledger = Lines(place.ledger)
        self._acts = Lines(acts_of(place))
        self._told = Counter(line["told"] for line in read_lines(place.ledger) if "told" in line)
        self._done = {line["done"] for line in read_lines(acts_of(place))}

    async def ask(self, id: str, to: str, message: Any) -> None:
        """Send a message, unless the answer to this asking is known: a script may ask twice with one id."""
        if self._told[id]:
            self._told[id] -= 1
            return
        self._ledger.add(sync=False, ask=id, to=to, type=type(message).__name__, body=json.encode(message).decode())
        try:
            status = (await self.app.send(message, id=id)).status
        except DuplicateIdError:
            self._ledger.add(sync=False, told=id, answer="refused")
        else:
            self._ledger.add(sync=False, told=id, answer="ok", status=status)

    async def request(self, id: str, to: str, message: Any) -> None:
        """Send a message and wait for its reply, which is written down as what was done."""
        if self._told[id]:
            return
        self._ledger.add(sync=False, ask=id, to=to, type=type(message).__name__, body=json.encode(message).decode())
        reply = await self.app.request(message, id=id, timeout=timedelta(seconds=self._patience_seconds))
        self._acts.add(sync=False, done=f"reply to {id}", answer=repr(reply))
        self._ledger.add(sync=False, told=id, answer="ok", status="replied")

    async def act(self, name: str, acting: Callable[[], Awaitable[Any]]) -> None:
        """Do what is no message, unless it is known to be done; what came of it is written down."""
        if name not in self._done:
            self._acts.add(sync=False, done=name, answer=await acting())

    async def until(self, statement: str) -> None:
        """Wait until a statement's first value is true; fail if that does not come."""
        ends = time.monotonic() + self._patience_seconds
        while not (found := await self._look.rows(statement)) or not found[0][0]:
            if time.monotonic() > ends:
                raise TimeoutError(statement)
            await asyncio.sleep(LOOK_SECONDS)  # between two looks at the tables

    async def quiet(self) -> None:
        """Wait until nothing waits that is due soon."""
        owed = f"SELECT count(*) FROM outbox WHERE due_us < {now_us() + SOON_US}"  # noqa: S608  a number
        await self.until(f"SELECT (SELECT count(*) FROM inbox) + ({owed}) = 0")  # noqa: S608  what stands above

    async def ended(self, ref: str) -> None:
        """Wait until an instance has ended."""
        workflow, _, id = ref.partition("/")
        ends = "('completed', 'failed', 'cancelled')"
        await self.until(
            f"SELECT 1 FROM instances WHERE workflow = '{workflow}' AND id = '{id}' AND status IN {ends}"  # noqa: S608  our own names
        )


def acts_of(place: Place) -> Path:
    """Return the file of what was done besides sending."""
    return place.folder / "acts.jsonl"
