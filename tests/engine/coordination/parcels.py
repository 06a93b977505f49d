"""A parcel's way in three versions: the second weighs before it sends, the third understands nothing of the past."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring import Complete, Decisions, Event, Mainspring, Publish, Received, Schedule, Send, Workflow, message


def with_weight(body: dict[str, Any]) -> dict[str, Any]:
    """Version 1 did not say what a parcel weighs."""
    return body | {"grams": 0}


@message(version=2, aliases=["ParcelBrought"], upcasters=[with_weight])
@dataclass(frozen=True)
class BringParcel:
    parcel_id: str
    grams: int


@dataclass(frozen=True)
class Addressed:
    parcel_id: str


@dataclass(frozen=True)
class Weighed:
    parcel_id: str
    grams: int


@dataclass(frozen=True)
class Forgotten:
    parcel_id: str


@dataclass(frozen=True)
class Weigh:
    parcel_id: str


@dataclass(frozen=True)
class ParcelSent:
    parcel_id: str
    grams: int


@dataclass(frozen=True)
class Waiting:
    grams: int = 0
    weighed: bool = False


class Parcel(Workflow[BringParcel | Addressed | Forgotten, Waiting, ParcelSent]):
    name = "Parcel"
    begins = BringParcel
    initial_state = Waiting()

    def route(self, message: BringParcel | Addressed | Forgotten) -> str | None:
        return message.parcel_id

    def decide(
        self, message: BringParcel | Addressed | Forgotten, state: Waiting
    ) -> Decisions[BringParcel | Addressed | Forgotten, ParcelSent] | None:
        match message:
            case BringParcel(parcel):
                return [Schedule(Forgotten(parcel), after=timedelta(days=30))]
            case Addressed(parcel):
                return [Publish(ParcelSent(parcel, state.grams)), Complete(ParcelSent(parcel, state.grams))]
            case Forgotten():
                return [Complete()]

    def evolve(self, state: Waiting, event: Event[BringParcel | Addressed | Forgotten, ParcelSent]) -> Waiting | None:
        match event:
            case Received(BringParcel(grams=grams)):
                return Waiting(grams)


InputV2 = BringParcel | Addressed | Weighed | Forgotten


class ParcelV2(Workflow[InputV2, Waiting, Weigh | ParcelSent]):
    name = "Parcel"
    version = 2
    begins = BringParcel
    initial_state = Waiting()

    def route(self, message: InputV2) -> str | None:
        return message.parcel_id

    def decide(self, message: InputV2, state: Waiting) -> Decisions[InputV2, Weigh | ParcelSent] | None:
        match message:
            case BringParcel(parcel):
                return [Schedule(Forgotten(parcel), after=timedelta(days=30))]
            case Addressed(parcel):
                return [Send(Weigh(parcel))]
            case Weighed(parcel, grams):
                return [Complete(ParcelSent(parcel, grams))]
            case Forgotten():
                return [Complete()]

    def evolve(self, state: Waiting, event: Event[InputV2, Weigh | ParcelSent]) -> Waiting | None:
        match event:
            case Received(BringParcel(grams=grams)):
                return Waiting(grams)
            case Received(Weighed(grams=grams)):
                return Waiting(grams, weighed=True)


class ParcelV3(ParcelV2):
    """Forgot what versions before it recorded."""

    name = "Parcel"
    version = 3

    def evolve(self, state: Waiting, event: Event[InputV2, Weigh | ParcelSent]) -> Waiting | None:
        match event:
            case Received(BringParcel(grams=0)):
                raise ValueError("a parcel without weight")
        return super().evolve(state, event)


class ParcelV4(Workflow[BringParcel | Addressed, Waiting, ParcelSent]):
    """Knows no timer any more."""

    name = "Parcel"
    version = 4
    begins = BringParcel
    initial_state = Waiting()

    def route(self, message: BringParcel | Addressed) -> str | None:
        return message.parcel_id

    def decide(
        self, message: BringParcel | Addressed, state: Waiting
    ) -> Decisions[BringParcel | Addressed, ParcelSent] | None:
        return []

    def evolve(self, state: Waiting, event: Event[BringParcel | Addressed, ParcelSent]) -> Waiting | None:
        return None


def parcels(app: Mainspring, *workflows: Workflow[Any, Any, Any], grams: int = 700) -> Mainspring:
    """Return an app with these versions; what it weighs has so many grams."""
    app.add(*workflows)

    async def weigh(command: Weigh) -> Weighed:
        return Weighed(command.parcel_id, grams)

    if any(isinstance(workflow, ParcelV2) for workflow in workflows):
        app.handler(weigh)
    return app
