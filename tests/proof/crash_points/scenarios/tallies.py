"""Step, projection, purge and the schema's migrations: tallies that go on for a while."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

from msgspec import json

from mainspring import Complete, Context, Decisions, Event, FeedEntry, Mainspring, Received, Schedule, Send, Workflow
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.tables import Tables
from tests.proof.crash.workload import Workload
from tests.proof.crash_points.aging import first_schema
from tests.proof.crash_points.client import Client
from tests.proof.crash_points.handler_effects import HandlerEffects
from tests.proof.crash_points.scenario import Found, Scenario

NOW: Final = timedelta(0)
DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class Open:
    tally: str


@dataclass(frozen=True)
class Add:
    tally: str
    number: int


@dataclass(frozen=True)
class AddLater:
    """The same, through the inbox."""

    tally: str
    number: int


@dataclass(frozen=True)
class Close:
    tally: str


@dataclass(frozen=True)
class Forgotten:
    tally: str


@dataclass(frozen=True)
class Stamp:
    """Is carried out without a result."""

    tally: str
    number: int


@dataclass(frozen=True)
class Total:
    number: int = 0


Input = Open | Add | AddLater | Close | Forgotten


class Tally(Workflow[Input, Total, Stamp | Total]):
    """Adds up, stamps each number, and ends when it is closed."""

    begins = Open
    initial_state = Total()
    mode: ClassVar = {AddLater: "inbox"}
    snapshot_every = 3

    def route(self, message: Input) -> str | None:
        return message.tally

    def evolve(self, state: Total, event: Event[Any, Any]) -> Total | None:
        match event:
            case Received(Add(_, number) | AddLater(_, number)):
                return Total(state.number + number)

    def decide(self, message: Input, state: Total) -> Decisions[Any, Any] | None:
        match message:
            case Open(tally):
                return [Schedule(Forgotten(tally), after=DAY)]
            case Add(tally, number) | AddLater(tally, number):
                return [Send(Stamp(tally, number))]
            case Close() | Forgotten():
                return [Complete(state)]


WORKLOAD: Final = Workload(
    workflows={"Tally": Tally()},
    messages={cls.__name__: cls for cls in (Open, Add, AddLater, Close, Forgotten, Stamp, Total)},
    caps={"Stamp": 20},
    come_to_rest=frozenset({"Tally"}),
)


def wire(app: Mainspring, effects: HandlerEffects) -> None:
    """Add tallies and who stamps."""
    app.add(Tally())

    @app.handler
    async def stamp(_command: Stamp, context: Context) -> None:
        with effects.call(context):
            effects.make(context)


async def opened(client: Client) -> None:
    """Have a tally that goes on."""
    await client.ask("open-1", "Tally/t-1", Open("t-1"))
    await client.ask("add-0", "Tally/t-1", Add("t-1", 1))
    await client.quiet()


async def _step(client: Client) -> None:
    await client.ask("add-1", "Tally/t-1", Add("t-1", 2))
    await client.ask("add-2", "Tally/t-1", AddLater("t-1", 3))
    await client.ask("add-3", "Tally/t-1", Add("t-1", 4))
    await client.ask("close", "Tally/t-1", Close("t-1"))
    await client.ended("Tally/t-1")
    await client.ask("late", "Tally/t-1", Add("t-1", 5))
    await client.quiet()


STEP: Final = Scenario("step", WORKLOAD, wire, _step, before=opened)


# ---- a projection


@dataclass(frozen=True)
class Seen:
    """What a read model knows of a tally."""

    numbers: tuple[int, ...] = ()


def fold(document: Seen | None, entry: FeedEntry) -> Seen | None:
    """Collect the numbers that were added."""
    match entry.event:
        case Received(Add(_, number) | AddLater(_, number)):
            return Seen((*(document or Seen()).numbers, number))
        case _:
            return document


def _wire_projected(app: Mainspring, effects: HandlerEffects) -> None:
    wire(app, effects)
    app.projections.add(name="seen", key=lambda entry: entry.instance)(fold)


async def _projection(client: Client) -> None:
    await client.ask("add-1", "Tally/t-1", Add("t-1", 2))
    await client.act("rebuild", lambda: client.app.projections("seen").rebuild())
    await client.ask("add-2", "Tally/t-1", Add("t-1", 3))
    await client.ask("close", "Tally/t-1", Close("t-1"))
    await client.quiet()
    # One generation is left, and has all of it.
    last = "(SELECT max(position) FROM events)"
    await client.until(f"SELECT count(*) = 1 AND min(status) = 'live' AND min(position) >= {last} FROM checkpoints")  # noqa: S608  as above


def _documents(tables: Tables, _place: Place) -> Found:
    events = tables.rows(
        "SELECT i.id, e.body FROM events AS e JOIN instances AS i ON i.key = e.instance "
        "WHERE e.type IN ('Add', 'AddLater') AND e.event = 'Received' ORDER BY e.position"
    )
    folded: dict[str, list[int]] = {}
    for id, body in events:
        folded.setdefault(id, []).append(json.decode(body)["number"])
    kept = {
        key: json.decode(body)["numbers"]
        for key, body in tables.rows(
            "SELECT d.key, d.body FROM documents AS d JOIN checkpoints AS c "
            "ON c.name = d.projection AND c.generation = d.generation WHERE c.status = 'live'"
        )
    }
    found: Found = {"documents": kept, "all documents": len(tables.rows("SELECT key FROM documents"))}
    return found if kept == folded else found | {"the documents are not the fold of the feed!": folded}


PROJECTION: Final = Scenario("projection", WORKLOAD, _wire_projected, _projection, before=opened, found=_documents)


# ---- a purge


async def _two_closed(client: Client) -> None:
    await opened(client)
    for tally in ("t-2", "t-3"):
        await client.ask(f"open-{tally}", f"Tally/{tally}", Open(tally))
        await client.ask(f"add-{tally}", f"Tally/{tally}", Add(tally, 1))
        await client.ask(f"close-{tally}", f"Tally/{tally}", Close(tally))
    await client.quiet()


async def _purge(client: Client) -> None:
    archive = client.place.folder / "archive.jsonl"
    await client.act("purge", lambda: _purged(client, archive))
    await client.ask("late", "Tally/t-2", Add("t-2", 5))
    await client.ask("open-again", "Tally/t-3", Open("t-3"))
    await client.ask("close", "Tally/t-1", Close("t-1"))
    await client.quiet()


async def _purged(client: Client, archive: Any) -> None:
    await client.app.purge(older_than=NOW, archive=archive)


def _tombstones(tables: Tables, place: Place) -> Found:
    rows = tables.rows("SELECT id, version, status, purged_us IS NULL FROM instances WHERE key > 0 ORDER BY id")
    lines = [line for line in read_lines(place.folder / "archive.jsonl") if "instance" in line]
    archived = {(line["instance"], line["version"]): (line["event"], line.get("body")) for line in lines}
    left = tables.rows(
        "SELECT count(*) FROM events AS e JOIN instances AS i ON i.key = e.instance WHERE i.purged_us IS NOT NULL"
    )
    return {
        "instances": [list(map(str, row)) for row in rows],
        "archived": sorted((*spot, *map(str, what)) for spot, what in archived.items()),
        "events of tombstones": left[0][0],
    }


PURGE: Final = Scenario("purge", WORKLOAD, wire, _purge, before=_two_closed, found=_tombstones)


# ---- the schema's migrations


def _schema(tables: Tables, _place: Place) -> Found:
    return {"migrations": [list(row) for row in tables.rows("SELECT version, name FROM schema_migrations")]}


MIGRATION_OF_SCHEMA: Final = Scenario(
    "migration-of-schema", WORKLOAD, wire, _step, before=opened, age=first_schema, found=_schema
)
