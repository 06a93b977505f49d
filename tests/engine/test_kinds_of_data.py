"""Messages and states that are no dataclasses go the whole way too: stored, handled, answered, and read by another."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow
from tests.support.apps import MakeApp
from tests.support.running import run


class Claim(BaseModel):
    model_config = ConfigDict(frozen=True)

    claim_id: str
    amount: Decimal


class Assess(Struct, frozen=True):
    claim_id: str
    amount: Decimal


class Assessed(BaseModel):
    model_config = ConfigDict(frozen=True)

    claim_id: str
    due: Decimal


class Open(Struct, frozen=True):
    amount: Decimal = Decimal(0)


class Settled(BaseModel):
    model_config = ConfigDict(frozen=True)

    due: Decimal


ClaimInput = Claim | Assessed


class Claims(Workflow[ClaimInput, Open | Settled, Assess | Assessed]):
    begins = Claim
    initial_state = Open()

    def route(self, message: ClaimInput) -> str | None:
        return message.claim_id

    def decide(self, message: ClaimInput, state: Open | Settled) -> Decisions[ClaimInput, Assess | Assessed] | None:
        match message, state:
            case Claim(claim_id=claim_id, amount=amount), Open():
                return [Send(Assess(claim_id, amount))]
            case Assessed(), Open():
                return [Complete(message)]

    def evolve(self, state: Open | Settled, event: Event[ClaimInput, Assess | Assessed]) -> Open | Settled | None:
        match event:
            case Received(Claim(amount=amount)):
                return Open(amount)
            case Received(Assessed(due=due)):
                return Settled(due=due)


def claims(app: Mainspring) -> Mainspring:
    app.add(Claims())

    @app.handler
    async def assess(command: Assess) -> Assessed:  # pyright: ignore[reportUnusedFunction]  the app calls it
        return Assessed(claim_id=command.claim_id, due=command.amount / 2)

    return app


def test_models_and_structs_are_messages_and_states_like_any_other(make_app: MakeApp) -> None:
    claim, assessed = Claim(claim_id="c-1", amount=Decimal("10.50")), Assessed(claim_id="c-1", due=Decimal("5.25"))

    async def main() -> None:
        async with claims(make_app()) as app:
            assert await (await app.send(claim, id="m-1")).result() == assessed
        async with claims(make_app()) as app:
            instance = app.instance(Claims, "c-1")
            assert await instance.state() == Settled(due=Decimal("5.25"))
            messages = [getattr(entry.event, "message", None) for entry in await instance.stream()]
            assert messages == [None, claim, Assess("c-1", Decimal("10.50")), assessed, None]
            assert (await app.send(claim, id="m-1")).status == "duplicate"

    run(main)
