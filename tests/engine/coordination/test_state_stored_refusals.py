"""What cannot be done without history is refused: at the definition, at the decision, or when it is asked for (A14)."""

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import (
    ChildFailed,
    Compensate,
    Complete,
    Decision,
    Decisions,
    Event,
    FanOut,
    FeedEntry,
    Send,
    StartChild,
    Workflow,
)
from mainspring.core.definition import definition_of
from mainspring.errors import DefinitionError, InvalidDecisionError, OperationError, WiringError
from mainspring.testing import given
from tests.engine.coordination.meters import Bill, Install, Read, Reading, StateMeter, Total, metering
from tests.support.apps import MakeApp
from tests.support.running import run


def test_what_needs_the_history_is_refused(make_app: MakeApp) -> None:
    class Newer(StateMeter):
        name = "StateMeter"
        version = 2

    async def main() -> None:
        app = metering(make_app(), StateMeter())
        app.add(Newer())
        async with metering(make_app(), StateMeter()) as old:
            await old.send_many([Install("m-1"), Read("m-1", 1)])
        async with app:
            instance = app.instance(StateMeter, "m-1")
            with pytest.raises(OperationError, match="cannot be reset: its history is not kept"):
                await instance.reset(3)
            with pytest.raises(OperationError, match="cannot migrate to version 2: its history is not kept"):
                await instance.migrate(2, dry_run=True)
            await instance.suspend("look", actor="ann")
            await instance.resume(actor="ann")
            await app.send(Read("m-1", 1))
            await instance.cancel("gone", actor="ann")
            assert [line.what for line in await instance.log() if line.actor] == ["Suspended", "Resumed", "Cancelled"]
            assert await instance.state() == Reading(2, 2, 0)

    run(main)


def test_a_projection_does_not_follow_what_may_be_gone(make_app: MakeApp) -> None:
    async def main() -> None:
        app = metering(make_app(), StateMeter())

        @app.projections.add(key=lambda entry: entry.instance)
        def readings(document: Total | None, entry: FeedEntry) -> Total | None:
            raise AssertionError("nobody may see it")

        async with app:
            await app.send_many([Install("m-1"), Read("m-1", 1)])
            await app.projections("readings").caught_up()
        named = metering(make_app(), StateMeter())

        @named.projections.add(key=lambda entry: entry.instance, workflows=[StateMeter])
        def totals(document: Total | None, entry: FeedEntry) -> Total | None:
            return None

        with pytest.raises(WiringError, match="follows StateMeter, whose history is not kept"):
            await named.start()

    run(main)


@dataclass(frozen=True)
class Summed:
    results: tuple[Total, ...]
    failures: tuple[ChildFailed, ...]


def _deciding(decided: Decision[Any, Any], **attributes: Any) -> type[Workflow[Any, Any, Any]]:
    class Deciding(Workflow[Install | Summed, Reading, Bill]):
        begins = Install
        initial_state = Reading()

        def route(self, message: Install | Summed) -> str | None:
            return "i"

        def evolve(self, state: Reading, event: Event[Install | Summed, Bill]) -> Reading | None:
            return None

        def decide(self, message: Install | Summed, state: Reading) -> Decisions[Install | Summed, Bill] | None:
            return [decided]

    for name, value in ({"history": "state"} | attributes).items():
        setattr(Deciding, name, value)
    return Deciding


@pytest.mark.parametrize(
    "decided",
    [
        Send(Bill("m-1", 1), compensate=Bill("m-1", -1)),
        StartChild(Bill("m-1", 1)),
        FanOut([Bill("m-1", 1)], into=Summed),
        Compensate("too dear"),
    ],
    ids=lambda decided: type(decided).__name__,
)
def test_decisions_that_need_the_history_are_refused(decided: Decision[Any, Any]) -> None:
    refusal = f"decided {type(decided).__name__}.* its history is not kept"
    given(_deciding(decided)()).when(Install("m-1")).then_raises(InvalidDecisionError, refusal)


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"history": "none"}, "has history = 'none'"),
        ({"again": "anew"}, "only a history tells"),
        ({"snapshot_every": None}, "nothing of it would be stored"),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(attributes: dict[str, Any], problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        definition_of(_deciding(Complete(), **attributes))
