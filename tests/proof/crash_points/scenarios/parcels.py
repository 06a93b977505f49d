"""Migration of an instance: a parcel that began under the first version of its workflow ends under the second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mainspring import Complete, Context, Decisions, Event, Mainspring, Received, Send, Workflow
from mainspring.errors import OperationError
from tests.proof.crash.files import Place
from tests.proof.crash.tables import Tables
from tests.proof.crash.workload import Workload
from tests.proof.crash_points.client import Client
from tests.proof.crash_points.handler_effects import HandlerEffects
from tests.proof.crash_points.scenario import Found, Scenario


@dataclass(frozen=True)
class Bring:
    parcel: str


@dataclass(frozen=True)
class Address:
    parcel: str


@dataclass(frozen=True)
class Weigh:
    parcel: str


@dataclass(frozen=True)
class Weighed:
    parcel: str


@dataclass(frozen=True)
class Waiting:
    inputs: int = 0


class Parcel(Workflow[Bring | Address, Waiting, Weigh]):
    """The first version: sends at once what has an address."""

    begins = Bring
    initial_state = Waiting()

    def route(self, message: Bring | Address) -> str | None:
        return message.parcel

    def evolve(self, state: Waiting, event: Event[Any, Any]) -> Waiting | None:
        return Waiting(state.inputs + 1) if isinstance(event, Received) else None

    def decide(self, message: Bring | Address, state: Waiting) -> Decisions[Any, Any] | None:
        return [] if isinstance(message, Bring) else [Complete()]


@dataclass(frozen=True)
class Scaled:
    inputs: int = 0


class WeighedParcel(Workflow[Bring | Address | Weighed, Scaled, Weigh]):
    """The second one: weighs before it sends, and has another state."""

    name = "Parcel"
    version = 2
    begins = Bring
    initial_state = Scaled()

    def route(self, message: Bring | Address | Weighed) -> str | None:
        return message.parcel

    def evolve(self, state: Scaled, event: Event[Any, Any]) -> Scaled | None:
        return Scaled(state.inputs + 1) if isinstance(event, Received) else None

    def decide(self, message: Bring | Address | Weighed, state: Scaled) -> Decisions[Any, Any] | None:
        match message:
            case Bring():
                return []
            case Address(parcel):
                return [Send(Weigh(parcel))]
            case Weighed():
                return [Complete()]


def _wire(app: Mainspring, effects: HandlerEffects) -> None:
    app.add(Parcel())
    if effects.before:
        app.external(Weigh)
        return
    app.add(WeighedParcel())

    @app.handler
    async def weigh(command: Weigh, context: Context) -> Weighed:
        with effects.call(context):
            effects.make(context)
            return Weighed(command.parcel)


async def _brought(client: Client) -> None:
    await client.ask("bring", "Parcel/p-1", Bring("p-1"))


async def _migration(client: Client) -> None:
    parcel = client.app.instance(Parcel, "p-1")

    async def migrate() -> None:
        try:
            await parcel.migrate(WeighedParcel.version, actor="ann")
        except OperationError:  # it was done in an earlier life, or by an asking that was given up
            if (await parcel.row()).workflow_version != WeighedParcel.version:
                raise

    await client.act("migrate", migrate)
    await client.ask("address", "Parcel/p-1", Address("p-1"))
    await client.ended("Parcel/p-1")
    await client.quiet()


def _versions(tables: Tables, _place: Place) -> Found:
    return {"versions": [list(row) for row in tables.rows("SELECT id, definition_version FROM instances")]}


MIGRATION_OF_INSTANCE: Final = Scenario(
    "migration-of-instance",
    Workload(
        workflows={"Parcel": Parcel()},
        messages={cls.__name__: cls for cls in (Bring, Address, Weigh, Weighed)},
        answered=frozenset({"Weigh"}),
        caps={"Weigh": 20},
        come_to_rest=frozenset({"Parcel"}),
        versions={("Parcel", 2): WeighedParcel()},
    ),
    _wire,
    _migration,
    before=_brought,
    found=_versions,
)
