"""A second app into which marked secrets go: by what stands around workflows, as schedules, brokers and pools do.

A module of its own: the processes of the pool import it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
from msgspec import json

from mainspring import (
    CancelSchedule,
    DeadlinePassed,
    Decisions,
    DoNotRetryError,
    Event,
    Fail,
    Mainspring,
    Publish,
    Received,
    Schedule,
    Send,
    Workflow,
)
from mainspring.app.internals import internals_of
from mainspring.brokers import Brokers
from mainspring.brokers.memory import MemoryBroker
from mainspring.brokers.port import Outgoing
from mainspring.port.records import InstanceFilter, Ref
from tests.proof.secrets.vault import secret
from tests.support.waiting import until


@dataclass(frozen=True)
class Put:
    id: str
    card: str


@dataclass(frozen=True)
class Weighed:
    id: str
    card: str


@dataclass(frozen=True)
class Weigh:
    """Is weighed together with others."""

    id: str
    card: str


@dataclass(frozen=True)
class Compute:
    """Is computed in another process."""

    id: str
    card: str


@dataclass(frozen=True)
class Seen:
    id: str
    card: str


@dataclass(frozen=True)
class Rest:
    id: str


@dataclass(frozen=True)
class Held:
    card: str = ""


class Safe(Workflow[Put | Weighed | DeadlinePassed, Held, Weigh | Compute | Seen]):
    """Lets what is put into it go on by the way that its id names."""

    begins = Put
    initial_state = Held()
    deadline = timedelta(days=1)

    def route(self, message: Any) -> str | None:
        return None if isinstance(message, DeadlinePassed) else message.id

    def evolve(self, state: Held, event: Event[Any, Any]) -> Held | None:
        return Held(event.message.card) if isinstance(event, Received) and isinstance(event.message, Put) else None

    def decide(self, message: Any, state: Held) -> Decisions[Any, Any] | None:
        match message:
            case Put(id, card) if "batch" in id:
                return [Send(Weigh(id, card))]
            case Put(id, card) if "process" in id:
                return [Send(Compute(id, card))]
            case Put("is late"):
                return [CancelSchedule(DeadlinePassed), Schedule(DeadlinePassed(), after=timedelta(0))]
            case Put("is published" as id, card):
                return [Publish(Seen(id, card))]
            case DeadlinePassed():
                return [Fail(f"{state.card} is late")]
            case _:
                return []


def compute(command: Compute) -> Weighed:
    """Run in another process."""
    if "fails" in command.id:
        raise DoNotRetryError(f"{command.card} is no good")
    return Weighed(command.id, command.card)


PUT: Final = (
    *("goes through a batch", "fails in a batch", "goes through a process", "fails in a process", "is published"),
    "is late",
)
BY_BROKER: Final = ("comes from a broker", "is undelivered")
REASONS: Final = ("pauses a handler", "pauses a source")
WAYS: Final = (*PUT, *BY_BROKER, *REASONS, "is scheduled")
POSTED: Final = "is posted"


class Strongroom:
    """The app and its broker."""

    def __init__(self, app: Mainspring) -> None:
        self.app, self.broker = app, MemoryBroker()
        app.add(Safe())

        @app.handler(batch=10)
        async def weigh(commands: list[Weigh]) -> list[Weighed | Exception]:  # pyright: ignore[reportUnusedFunction]
            return [
                DoNotRetryError(f"{each.card} is no good") if "fails" in each.id else Weighed(each.id, each.card)
                for each in commands
            ]

        @app.handler
        async def rest(command: Rest) -> None: ...  # pyright: ignore[reportUnusedFunction]

        app.handler(executor="process")(compute)
        app.schedules.add("nightly", cron="0 3 1 1 *", message=Put("is scheduled", secret("is scheduled")))
        brokers = Brokers(app, "strongroom")
        brokers.add("main", self.broker)
        brokers.endpoint("in", "main", "in")
        brokers.endpoint("out", "main", "out")
        brokers.receive("in", Put)
        brokers.publish(Seen, to="out")

    async def go(self) -> None:
        """Let a secret go each way, and return when all have arrived."""
        app = self.app
        for way in PUT:
            await app.send(Put(way, secret(way)))
        head = {"ce-source": "/outside", "ce-type": "Put", "content-type": "application/json"}
        taken, refused = (secret(way) for way in BY_BROKER)
        await self.broker.publish(
            [
                Outgoing("in", "b-1", json.encode(Put(BY_BROKER[0], taken)), head | {"ce-id": "b-1"}),
                Outgoing("in", "b-2", f"[{refused}".encode(), head | {"ce-id": "b-2", "note": refused}),
            ]
        )
        await app.schedules.run_now("nightly", actor="ann")
        await until(self._arrived)
        await app.pauses.pause(Rest, secret(REASONS[0]), actor="ann")
        await internals_of(app).services.sources["in"].pause(secret(REASONS[1]), actor="ann")

    async def _arrived(self) -> bool:
        rows = {row.id: row for row in await internals_of(self.app).engine.store.instances(InstanceFilter(), 1_000)}
        letters = {letter.instance.partition("/")[2] for letter in await self.app.dead_letters()}
        there = {"comes from a broker", "is scheduled", *PUT} <= rows.keys()
        return (
            there
            and letters >= {"fails in a batch", "fails in a process", "in"}
            and rows["is late"].status == "failed"
            and all([await self._weighed(way) for way in ("goes through a batch", "goes through a process")])
            and bool(self.broker.log("out"))
        )

    async def _weighed(self, id: str) -> bool:
        return any(
            row.type == "Weighed" for row in await internals_of(self.app).engine.store.stream(Ref("Safe", id), 0, 100)
        )


async def post(app: Mainspring, url: str) -> None:
    """Write a secret as other programs do: it lies there until a worker takes it."""
    address, _, schema = url.partition("schema=")
    library: Any = asyncpg
    connection = await library.connect(address.rstrip("?&"), server_settings={"search_path": schema})
    try:
        async with connection.transaction():
            await app.post(Put(POSTED, secret(POSTED)), connection)
    finally:
        await connection.close()
