"""An order whose card is charged by another service, and partners who want to hear of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from mainspring import (
    ChildFailed,
    Complete,
    Decisions,
    Event,
    Fail,
    FanOut,
    Mainspring,
    Publish,
    Received,
    Retry,
    Send,
    SendFailed,
    Workflow,
)
from mainspring.engine.runtime import Runtime
from mainspring.port.clock import Clock

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  the one of Standard Webhooks' own example
QUICK = Retry(max_attempts=3, first=timedelta(milliseconds=1), cap=timedelta(milliseconds=2))


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    amount: int = 4200
    callback: str | None = None
    parts: int = 0


@dataclass(frozen=True)
class ChargeCard:
    order_id: str
    amount: int


@dataclass(frozen=True)
class CardCharged:
    order_id: str


@dataclass(frozen=True)
class AllCharged:
    results: tuple[CardCharged, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class OrderPaid:
    order_id: str
    callback: str | None


@dataclass(frozen=True)
class Ordered:
    callback: str | None = None


Input: TypeAlias = PlaceOrder | CardCharged | AllCharged | SendFailed
Output: TypeAlias = ChargeCard | OrderPaid | CardCharged


class Orders(Workflow[Input, Ordered, Output]):
    begins = PlaceOrder
    initial_state = Ordered()

    def route(self, message: Input) -> str | None:
        return message.order_id if isinstance(message, PlaceOrder | CardCharged) else None

    def evolve(self, state: Ordered, event: Event[Input, Output]) -> Ordered | None:
        match event:
            case Received(PlaceOrder(callback=callback)):
                return Ordered(callback)

    def decide(self, message: Input, state: Ordered) -> Decisions[Input, Output] | None:
        match message:
            case PlaceOrder(order_id, amount, parts=0):
                return [Send(ChargeCard(order_id, amount))]
            case PlaceOrder(order_id, amount, parts=parts):
                return [FanOut([ChargeCard(f"{order_id}-{n}", amount) for n in range(parts)], into=AllCharged)]
            case AllCharged(results, failures):
                return [Fail(failures[0].error)] if failures else [Complete(results[-1])]
            case CardCharged(order_id):
                return [Publish(OrderPaid(order_id, state.callback)), Complete(CardCharged(order_id))]
            case SendFailed(_, _, error, attempts, definite):
                return [Fail(f"after {attempts}, {'definitely' if definite else 'perhaps'}: {error}")]


def shop(folder: Path, clock: Clock | None = None) -> Mainspring:
    app = Mainspring(f"sqlite:///{folder / 'shop.db'}", runtime=Runtime(clock))
    app.add(Orders())
    return app


def result(command: Any, **changed: Any) -> dict[str, Any]:
    """Return what a service answers to a command, in its envelope."""
    return {
        "specversion": "1.0",
        "id": f"charge of {command['data']['order_id']}",
        "source": "/payments",
        "type": "CardCharged",
        "causationid": command["id"],
        "data": {"order_id": command["data"]["order_id"]},
        **changed,
    }
