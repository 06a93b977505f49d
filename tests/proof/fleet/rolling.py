"""The roller: it starts and stops processes, and looks at the database in between."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from mainspring.app.internals import internals_of
from mainspring.port.records import InstanceFilter, Status
from tests.proof.crash.forked import Forked
from tests.proof.fleet.process import Release, app_of
from tests.support.waiting import until

STOP_SECONDS: Final = 60.0
MOST: Final = 10_000
MODULE: Final = "tests.proof.fleet.process"

Which: TypeAlias = Literal["old", "new"]


class Member(NamedTuple):
    """A process of the fleet."""

    name: str
    process: Forked


class Fleet:
    """Workers and senders of two releases on one database."""

    def __init__(self, url: str, change: Release, folder: Path, *, mistaken: bool = False) -> None:
        self._url = url
        self._change: Release = change
        self._log = folder / "fleet.log"
        self._mistaken = mistaken
        self._numbers = count()
        self._members: list[Member] = []
        self.app = app_of(url, change)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Fleet]:
        """Look at the database, and let no process outlive that."""
        await self.app.start(work=False)
        try:
            yield self
        finally:
            for member in self._members:
                member.process.send(signal.SIGKILL)
            for member in self._members:
                member.process.wait(STOP_SECONDS)
            await self.app.stop()

    # ---- processes

    def _start(self, role: str, which: Which) -> Member:
        name = f"{which}-{next(self._numbers)}"
        before: Release = "history before" if self._change == "history" else "before"
        of = before if which == "old" else self._change
        mistake = ("mistaken",) if self._mistaken and which == "old" else ()
        member = Member(name, Forked(MODULE, (role, self._url, of, name, *mistake), self._log))
        self._members.append(member)
        return member

    async def worker(self, which: Which) -> Member:
        """Start a worker, and wait until it works."""
        member = self._start("worker", which)
        await until(lambda: self._is_there(member))
        return member

    async def sender(self, which: Which) -> Member:
        """Start somebody who sends trips of a release."""
        member = self._start("sender", which)
        await until(lambda: self.count(f"{member.name}-"))
        return member

    async def _is_there(self, member: Member) -> bool:
        assert not member.process.ended(), self._log.read_text()
        return any(row.name == member.name for row in await internals_of(self.app).engine.store.workers())

    async def stop(self, member: Member) -> None:
        """Ask a process to stop, and wait until it has."""
        member.process.send(signal.SIGTERM)
        await until(member.process.ended)
        code = member.process.wait(0)
        assert code == 0, (code, self._log.read_text())
        self._members.remove(member)

    # ---- what the database says

    async def count(self, prefix: str, status: Status | None = None) -> int:
        """Return how many trips there are whose ids begin so."""
        where = InstanceFilter(workflow="Trip", status=status, id_prefix=prefix)
        return len(await internals_of(self.app).engine.store.instances(where, MOST))

    async def go_on(self, sender: Member, trips: int) -> None:
        """Wait until so many more trips of a sender have come to their end."""
        prefix = f"{sender.name}-"
        wanted = await self.count(prefix, "completed") + trips

        async def came() -> bool:
            return await self.count(prefix, "completed") >= wanted or await self.is_wrong()

        await until(came)
        if await self.is_wrong():
            raise WrongError

    async def is_wrong(self) -> bool:
        """Tell whether there are any faults."""
        stats = await self.app.stats()
        return "suspended" in stats.instances or stats.dead_letters > 0

    async def faults(self) -> list[str]:
        """Return what no release may do to what another has written."""
        suspended = [f"suspended: {row.error}" for row in await self.app.instances(status="suspended")]
        return suspended + [f"dead letter: {letter.reason}" for letter in await self.app.dead_letters()]


class WrongError(Exception):
    """There is a fault: nothing has to be waited for any more."""


async def rolled(fleet: Fleet, workers: int, trips: int) -> list[str]:
    """Roll a fleet to the next release and back, then finish all; return what is wrong."""
    with suppress(WrongError):
        await _roll(fleet, workers, trips)
    return await fleet.faults()


async def _roll(fleet: Fleet, workers: int, trips: int) -> None:
    old = [await fleet.worker("old") for _ in range(workers)]
    before = await fleet.sender("old")
    await fleet.go_on(before, trips)
    new = [await fleet.worker("new")]
    after = await fleet.sender("new")
    while old:  # forwards
        await fleet.stop(old.pop())
        await fleet.go_on(before, trips)
        await fleet.go_on(after, trips)
        if old:
            new.append(await fleet.worker("new"))
    while new:  # and back
        old.append(await fleet.worker("old"))
        await fleet.stop(new.pop())
        if new:
            await fleet.go_on(after, trips)
        await fleet.go_on(before, trips)
    # Only workers of the release before: what the next one has begun waits, and stands in nobody's way.
    strange = await fleet.count(f"{after.name}-") + trips
    await until(lambda: _has(fleet, after, strange))
    await fleet.go_on(before, trips)
    await fleet.stop(after)
    await fleet.stop(before)
    await fleet.worker("new")
    for each in old:
        await fleet.stop(each)

    async def all_done() -> bool:
        return await fleet.count("", "completed") == await fleet.count("") or await fleet.is_wrong()

    await until(all_done)


async def _has(fleet: Fleet, sender: Member, trips: int) -> bool:
    return await fleet.count(f"{sender.name}-") >= trips
