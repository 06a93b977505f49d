"""A child whose start waits in a paused workflow never begins when its parent ends; a reset calls nothing back."""

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
    Send,
    StartChild,
    Workflow,
)
from mainspring.analysis.stuck.awaited import awaited_of
from mainspring.analysis.stuck.held import held_among
from mainspring.analysis.stuck.stuck import reasons_of
from mainspring.app.internals import internals_of
from mainspring.core.events import Kept
from mainspring.port.records import Ref
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Begin:
    id: str
    parts: int = 0
    ask: bool = False


@dataclass(frozen=True)
class Ask:
    id: str


@dataclass(frozen=True)
class Help:
    id: str


@dataclass(frozen=True)
class All:
    results: tuple[ChildCompleted, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class State: ...


Input = Begin | Ask | ChildCompleted | ChildFailed | All


class Parent(Workflow[Input, State, Help]):
    begins = Begin
    initial_state = State()

    def route(self, message: Input) -> str | None:
        return message.id if isinstance(message, Begin | Ask) else None

    def evolve(self, state: State, event: Event[Input, Help]) -> State | None:
        return None

    def decide(self, message: Input, state: State) -> Decisions[Input, Help] | None:
        match message:
            case Begin(ask=True):
                return []
            case Begin(id, 0) | Ask(id):
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


@dataclass(frozen=True)
class Carry:
    id: str


class Asker(Workflow[Help, State, Carry]):
    """A helper that asks a handler."""

    begins = Help
    initial_state = State()

    def route(self, message: Help) -> str | None:
        return message.id

    def evolve(self, state: State, event: Event[Help, Carry]) -> State | None:
        return None

    def decide(self, message: Help, state: State) -> Decisions[Help, Carry] | None:
        return [Send(Carry(message.id))]


async def _waiting(app: Mainspring, count: int) -> bool:
    """Return True if so many starts wait, in anybody's hands: a claim from before the pause may hold them a moment."""
    return (
        sum([len(await internals_of(app).engine.store.inbox(Ref("Helper", f"p-{part}"), 10)) for part in range(3)])
        == count
    )


async def _has_row(app: Mainspring, id: str) -> bool:
    return bool((await internals_of(app).engine.store.load([Ref("Helper", id)], 0))[0])


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

            await until(lambda: _has_row(app, "other"))
            assert [row.id for row in await app.instances(workflow="Helper")] == ["other"]
            assert await app.dead_letters() == []

    run(main)


async def _reset_while_paused(app: Mainspring) -> None:
    """Let a parent start a child that waits, and go back to before it did so."""
    await app.send(Begin("p", ask=True))
    await app.pauses.pause(Helper)
    await app.send(Ask("p"))
    await until(lambda: _waiting(app, 1))
    await app.instance(Parent, "p").reset(2)


def test_a_parent_that_is_reset_does_not_call_back_a_child_that_waits_to_begin(make_app: MakeApp) -> None:
    """As it does not where nothing is paused: what the child comes to is kept, and not decided on."""

    async def main() -> None:
        app = make_app()
        app.add(Parent())
        app.add(Helper())
        async with app:
            await _reset_while_paused(app)
            await app.pauses.resume(Helper)
            parent = app.instance(Parent, "p")

            async def kept() -> bool:
                return any(isinstance(entry.event, Kept) for entry in await parent.stream())

            await until(kept)
            assert (await app.instance(Helper, "p-0").row()).status == "completed"
            assert (await parent.row()).status == "running"

    run(main)


def test_a_child_that_waits_to_begin_ends_with_its_parent_though_that_was_reset(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Parent())
        app.add(Helper())
        async with app:
            await _reset_while_paused(app)
            await app.instance(Parent, "p").cancel("enough")
            await until(lambda: _waiting(app, 0))
            await app.pauses.resume(Helper)
            await app.send(Help("other"))
            await until(lambda: _has_row(app, "other"))
            assert not await _has_row(app, "p-0")

    run(main)


@pytest.mark.parametrize("parts", [0, 3])
def test_a_parent_says_that_what_it_waits_for_is_paused(make_app: MakeApp, parts: int) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Parent())
        app.add(Helper())
        async with app:
            await app.pauses.pause(Helper, "we help nobody", actor="ann")
            await app.send(Begin("p", parts))
            await until(lambda: _waiting(app, parts or 1))
            await _says(app, "Helper/p-0", "the workflow Helper is paused by ann since")
            await app.pauses.resume(Helper)
            await until(lambda: _waiting(app, 0))
            assert await _held(app) == []

    run(main)


def test_a_parent_says_that_a_handler_is_paused_on_which_its_child_waits(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Parent())
        app.add(Asker())

        @app.handler
        async def carry(command: Carry) -> None: ...

        async with app:
            await app.pauses.pause(Carry)
            await app.send(Begin("p"))
            await until(lambda: _outputs(app, 1))
            await _says(app, "Asker/p-0", "the handler Carry is paused since")

    run(main)


def test_a_parent_says_that_the_handler_of_its_fan_out_is_paused(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Parent())

        @app.handler
        async def help_out(command: Help) -> None: ...

        async with app:
            await app.pauses.pause(Help)
            await app.send(Begin("p", 3))
            await until(lambda: _outputs(app, 3))
            await _says(app, "a fan-out", "the handler Help is paused since")

    run(main)


async def _outputs(app: Mainspring, count: int) -> bool:
    return [claim.kind for claim in await internals_of(app).engine.store.outputs(None, False, 9)] == ["send"] * count


async def _says(app: Mainspring, what: str, pause: str) -> None:
    """Assert that `show` and `stuck` of the parent tell of a pause, and for what it waits."""
    (held,) = await _held(app)
    assert held.startswith(f"it waits for {what}, and that for a pause: {pause}")
    (reason,) = await reasons_of(internals_of(app).engine.store, [Ref("Parent", "p")], internals_of(app).registry)
    assert (reason.cause, reason.texts[0]) == ("paused", held)


async def _held(app: Mainspring) -> list[str]:
    ref = Ref("Parent", "p")
    (loaded,) = await internals_of(app).engine.store.load([ref], 0)
    assert loaded is not None
    children = (await awaited_of(internals_of(app).engine.store, loaded.row, internals_of(app).registry)).children
    return await held_among(internals_of(app).engine.store, ref, [], [], children, internals_of(app).registry)
