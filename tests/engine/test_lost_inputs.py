"""Inputs that came into a worker's hands by an answer that was lost are taken all the same, in their turn."""

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import Decisions, Event, Received, Workflow
from mainspring.app.internals import internals_of
from mainspring.errors import StoreUnreachableError, UnknownOutcomeError
from mainspring.port.records import Claims, Unit
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Add:
    id: str
    number: int


@dataclass(frozen=True)
class Numbers:
    added: tuple[int, ...] = ()


class Adding(Workflow[Add, Numbers, Add]):
    initial_state = Numbers()
    mode = "inbox"

    def route(self, message: Add) -> str | None:
        return message.id

    def evolve(self, state: Numbers, event: Event[Add, Add]) -> Numbers | None:
        match event:
            case Received(Add(_, number)):
                return Numbers((*state.added, number))

    def decide(self, message: Add, state: Numbers) -> Decisions[Add, Add] | None:
        # Out of its turn it is a mistake, which would suspend the instance.
        return [] if message.number == len(state.added) + 1 else None


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.engine.engine.HEARTBEAT_SECONDS", 0.02)
    for station in ("claiming.claimer", "committing.committer", "stepping.inbox"):
        monkeypatch.setattr(f"mainspring.engine.{station}.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.02)


def test_an_input_whose_acceptance_got_no_answer_is_taken_and_not_overtaken(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Adding())
        async with app:
            store = internals_of(app).engine.store
            commit = store.commit

            async def lost(worker: int, units: list[Unit]) -> Any:
                monkeypatch.setattr(store, "commit", commit)
                await commit(worker, units)
                raise UnknownOutcomeError("the store")

            monkeypatch.setattr(store, "commit", lost)
            with pytest.raises(UnknownOutcomeError):
                await app.send(Add("a-1", 1), id="m-1")
            assert (await app.send(Add("a-1", 1), id="m-1")).status == "duplicate"
            await app.send(Add("a-1", 2))
            await until(lambda: has_added(app, (1, 2)))

    run(main)


def test_inputs_of_a_claim_that_got_no_answer_are_taken_in_their_order(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        sender, app = make_app(), make_app()
        sender.add(Adding())
        app.add(Adding())
        await sender.start(work=False)
        await sender.send(Add("a-1", 1))
        async with app:
            store = internals_of(app).engine.store
            claim = store.claim
            lost: list[int] = []

            async def losing(*given: Any) -> Claims:
                claims = await claim(*given)
                if claims.inputs and not lost:
                    lost.append(claims.inputs[0].position)
                    raise StoreUnreachableError("the store", "the line is cut")
                return claims

            monkeypatch.setattr(store, "claim", losing)
            await sender.send(Add("a-1", 2))
            await sender.send(Add("a-1", 3))
            await until(lambda: has_added(app, (1, 2, 3)))
        await sender.stop()

    run(main)


async def has_added(app: Any, numbers: tuple[int, ...]) -> bool:
    rows = await app.instances(workflow="Adding")
    if not rows:
        return False
    state: Numbers = await app.instance(Adding, "a-1").state()
    assert state.added == numbers[: len(state.added)]
    return state.added == numbers
