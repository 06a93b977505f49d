"""A workflow whose messages come from a broker, and whose news goes to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mainspring import Complete, Decisions, Event, Publish, Received, Workflow

TAKEN: Final = "parcels"
REPORTED: Final = "reports"
SENDER: Final = "/door"
SERVICE: Final = "/simulated"


@dataclass(frozen=True)
class Ship:
    consignment: str
    scans: int


@dataclass(frozen=True)
class Scan:
    consignment: str
    number: int


@dataclass(frozen=True)
class Delivered:
    consignment: str
    scans: tuple[int, ...]


@dataclass(frozen=True)
class OnItsWay:
    expected: int = 0
    scans: tuple[int, ...] = ()


class Consignment(Workflow[Ship | Scan, OnItsWay, Delivered]):
    """Is scanned so often, tells that it has arrived, and ends."""

    begins = Ship
    initial_state = OnItsWay()

    def route(self, message: Ship | Scan) -> str | None:
        return message.consignment

    def evolve(self, state: OnItsWay, event: Event[Any, Any]) -> OnItsWay | None:
        match event:
            case Received(Ship(_, scans)):
                return OnItsWay(scans)
            case Received(Scan(_, number)):
                return OnItsWay(state.expected, (*state.scans, number))

    def decide(self, message: Ship | Scan, state: OnItsWay) -> Decisions[Any, Any] | None:
        match message:
            case Scan(consignment, number) if len(state.scans) + 1 == state.expected:
                return [Publish(Delivered(consignment, (*state.scans, number))), Complete()]
            case Ship() | Scan():
                return []


MESSAGES: Final = (Ship, Scan, Delivered)
