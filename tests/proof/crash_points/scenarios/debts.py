"""Transaction: a handler that writes to a table of the app's own, together with its result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from mainspring import Complete, Context, Decisions, Event, Mainspring, Received, Retry, Send, Workflow
from tests.proof.crash.tables import prepare
from tests.proof.crash.workload import Workload
from tests.proof.crash_points.client import Client
from tests.proof.crash_points.handler_effects import HandlerEffects
from tests.proof.crash_points.scenario import Scenario

CAPS: Final = {"Pay": 20}
PAY: Final = timedelta(seconds=5)
BACKOFF: Final = timedelta(milliseconds=2)


@dataclass(frozen=True)
class Owe:
    debt: str


@dataclass(frozen=True)
class Pay:
    debt: str


@dataclass(frozen=True)
class Paid:
    debt: str


@dataclass(frozen=True)
class Settled:
    is_paid: bool = False


class Debt(Workflow[Owe | Paid, Settled, Pay]):
    """Is paid once, and ends."""

    begins = Owe
    initial_state = Settled()

    def route(self, message: Owe | Paid) -> str | None:
        return message.debt

    def evolve(self, state: Settled, event: Event[Any, Any]) -> Settled | None:
        return Settled(is_paid=True) if isinstance(event, Received) and isinstance(event.message, Paid) else None

    def decide(self, message: Owe | Paid, state: Settled) -> Decisions[Any, Any] | None:
        return [Send(Pay(message.debt))] if isinstance(message, Owe) else [Complete()]


def _wire(app: Mainspring, _effects: HandlerEffects) -> None:
    app.add(Debt())

    # Its evidence is its table. It keeps no key: that each is paid once is the transaction's doing alone.
    @app.handler(transaction=PAY, retry=Retry(max_attempts=CAPS["Pay"], first=BACKOFF), breaker=None)
    async def pay(command: Pay, context: Context) -> Paid:
        await context.connection.execute("INSERT INTO payments (command) VALUES ($1)", context.idempotency_key)
        return Paid(command.debt)


async def _transaction(client: Client) -> None:
    for debt in ("d-1", "d-2"):
        await client.ask(f"owe-{debt}", f"Debt/{debt}", Owe(debt))
        await client.ended(f"Debt/{debt}")
    await client.quiet()


TRANSACTION: Final = Scenario(
    "transaction",
    Workload(
        workflows={"Debt": Debt()},
        messages={cls.__name__: cls for cls in (Owe, Pay, Paid)},
        answered=frozenset({"Pay"}),
        caps=CAPS,
        paying=frozenset({"Pay"}),
        come_to_rest=frozenset({"Debt"}),
    ),
    _wire,
    _transaction,
    age=prepare,
)
