"""A child whose start waits because its workflow is paused does not begin for a parent that has ended meanwhile."""

from dataclasses import dataclass

import pytest

from mainspring import (
    ChildCompleted,
    ChildFailed,
    Complete,
    Decisions,
    Event,
    FanOut,
    Mainspring,
    StartChild,
    Workflow,
)
from mainspring.port.records import Ref
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Begin:
    id: str
    parts: int = 0


@dataclass(frozen=True)
class Help:
    id: str


@dataclass(frozen=True)
class All:
    results: tuple[ChildCompleted, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class State: ...


class Parent(Workflow[Begin | ChildCompleted | ChildFailed | All, State, Help]):
    begins = Begin
    initial_state = State()

    def route(self, message: Begin | ChildCompleted | ChildFailed | All) -> str | None:
        return message.id if isinstance(message, Begin) else None

    def evolve(self, state: State, event: Event[Begin | ChildCompleted | ChildFailed | All, Help]) -> State | None:
        return None

    def decide(
        self, message: Begin | ChildCompleted | ChildFailed | All, state: State
    ) -> Decisions[Begin | ChildCompleted | ChildFailed | All, Help] | None:
        match message:
            case Begin(id, 0):
                return [StartChild(Help(f"{id}-0"))]
            case Begin(id, parts):
                return [FanOut([Help(f"{id}-{part}") for part in range(parts)], into=All)]
            case _:
                return [Complete()]


class Helper(Workflow[Help, State, Help]):
    begins = Help
    initial_state = State()

    def route(self, message: Help) -> str | None:
        return message.id

    def evolve(self, state: State, event: Event[Help, Help]) -> State | None:
        return None

    def decide(self, message: Help, state: State) -> Decisions[Help, Help] | None:
        return [Complete()]


async def _waiting(app: Mainspring, count: int) -> bool:
    return sum([one.count for one in await app.engine.store.waiting(2**62) if one.workflow == "Helper"]) == count


@pytest.mark.parametrize("parts", [0, 3])
def test_the_children_of_a_parent_that_was_cancelled_never_begin(make_app: MakeApp, parts: int) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Parent())
        app.add(Helper())
        async with app:
            await app.pauses.pause(Helper)
            await app.send(Begin("p", parts))
            await until(lambda: _waiting(app, parts or 1))
            await app.instance(Parent, "p").cancel("enough")
            await until(lambda: _waiting(app, 0))
            await app.pauses.resume(Helper)
            await app.send(Help("other"))

            async def other() -> bool:
                return bool((await app.engine.store.load([Ref("Helper", "other")], 0))[0])

            await until(other)
            assert [row.id for row in await app.instances(workflow="Helper")] == ["other"]
            assert await app.dead_letters() == []

    run(main)
