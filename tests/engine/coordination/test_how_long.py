"""How long after it was asked for each answer came, by the execution log (C8)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import (
    Ask,
    ChildCompleted,
    Complete,
    Decisions,
    DoNotRetryError,
    Event,
    FanOut,
    Mainspring,
    Reply,
    Schedule,
    Send,
    StartChild,
    Workflow,
)
from mainspring.core.execution import LogLine
from mainspring.testing.clock import VirtualClock
from tests.edges.web.support import served
from tests.engine.coordination.family import Half, Number, PartsDone, Proceed, Square, Squaring
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Run:
    id: str
    what: str


@dataclass(frozen=True)
class Late:
    id: str


@dataclass(frozen=True)
class Inquire:
    id: str


@dataclass(frozen=True)
class Tell:
    id: str
    to: str


@dataclass(frozen=True)
class Nothing:
    pass


Input = Run | Late | Number | PartsDone | ChildCompleted


class Errand(Workflow[Input, Nothing, Half | Square | Inquire]):
    """Asks one thing of somebody, and ends with the answer."""

    begins = Run
    initial_state = Nothing()

    def route(self, message: Input) -> str | None:
        return message.id if isinstance(message, Run | Late) else None

    def evolve(self, state: Nothing, event: Event[Input, Any]) -> Nothing | None:
        return None

    def decide(self, message: Input, state: Nothing) -> Decisions[Input, Any] | None:
        match message:
            case Run(_, "handler"):
                return [Send(Half(2))]
            case Run(id, "timer"):
                return [Schedule(Late(id), after=60 * SECOND)]
            case Run(_, "task"):
                return [Ask("Which one", Number, role="clerk")]
            case Run(id, "child"):
                return [StartChild(Square(f"{id}.1", 0))]
            case Run(id, "fan-out"):
                return [FanOut([Square(f"{id}.1", 0)], into=PartsDone)]
            case Run(id, "reply"):
                return [Send(Inquire(id))]
            case _:
                return [Complete()]


class Office(Workflow[Inquire | Tell, Nothing, Number]):
    """Replies when it is told to."""

    begins = Inquire
    initial_state = Nothing()

    def route(self, message: Inquire | Tell) -> str | None:
        return message.id

    def evolve(self, state: Nothing, event: Event[Any, Any]) -> Nothing | None:
        return None

    def decide(self, message: Inquire | Tell, state: Nothing) -> Decisions[Any, Number] | None:
        return [Reply(Number(7), message.to)] if isinstance(message, Tell) else []


def errands(app: Mainspring, clock: VirtualClock, fails: bool = False) -> Mainspring:
    async def half(command: Half) -> Number:
        clock.advance(5)
        if fails:
            raise DoNotRetryError("not today")
        return Number(command.number // 2)

    app.add(Errand(), Office(), Squaring())
    app.handler(half)
    return app


async def begun(app: Mainspring, workflow: type[Any], id: str) -> None:
    async def is_there() -> bool:
        return any(row.id == id for row in await app.instances(workflow=workflow.__name__))

    await until(is_there)


async def by_itself(app: Mainspring) -> None:
    """The clock is all that it waits for."""


async def by_a_person(app: Mainspring) -> None:
    await until(lambda: _has_task(app))
    await app.tasks.complete("Errand/e-1/3", Number(1), actor="bob", roles=["clerk"])


async def _has_task(app: Mainspring) -> bool:
    return bool(await app.tasks.list(limit=1))


async def by_a_child(app: Mainspring) -> None:
    await begun(app, Squaring, "e-1.1")
    await app.send(Proceed("e-1.1"))


async def by_an_office(app: Mainspring) -> None:
    await begun(app, Office, "e-1")
    await app.send(Tell("e-1", "Errand/e-1/3"))


ANSWERS: list[tuple[str, int, Callable[[Mainspring], Awaitable[None]], tuple[int | None, int, int | None]]] = [
    ("handler", 0, by_itself, (5, 5, None)),
    ("timer", 67, by_itself, (None, 67, 7)),
    ("task", 8, by_a_person, (None, 8, None)),
    ("child", 8, by_a_child, (None, 8, None)),
    ("fan-out", 8, by_a_child, (None, 8, None)),
    ("reply", 8, by_an_office, (None, 8, None)),
]


async def answered(app: Mainspring, clock: VirtualClock, what: str, seconds: int, answer: Any) -> list[LogLine]:
    receipt = await app.send(Run("e-1", what))
    clock.advance(seconds)
    await answer(app)
    await receipt.result()
    return await receipt.log()


@pytest.mark.parametrize(("what", "seconds", "answer", "told"), ANSWERS, ids=[what for what, *_ in ANSWERS])
def test_each_answer_says_how_long_after_it_was_asked_for_it_came(
    make_app: MakeApp, what: str, seconds: int, answer: Any, told: Any
) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with errands(make_app(clock), clock) as app:
            started, stepped, completed = await answered(app, clock, what, seconds, answer)
            assert _times(stepped) == tuple(None if span is None else span * SECOND for span in told)
            assert _times(started) == _times(completed) == (None, None, None)

    run(main)


def _times(line: LogLine) -> tuple[timedelta | None, ...]:
    return line.duration, line.answered_after, line.waited


def test_a_command_that_failed_for_good_says_how_long_after_it_was_sent(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with errands(make_app(clock), clock, fails=True) as app:
            receipt = await app.send(Run("e-1", "handler"))

            async def is_suspended() -> bool:
                return (await receipt.row()).status == "suspended"

            await until(is_suspended)
            faulted = (await receipt.log())[-1]
            assert (faulted.what, faulted.answered_after) == ("Faulted", 5 * SECOND)

    run(main)


def test_a_page_of_the_log_knows_what_was_asked_before_it(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = errands(make_app(clock), clock)
        async with served(app) as client:
            await answered(app, clock, "timer", 67, by_itself)
            whole: dict[str, Any] = (await client.get("/api/log/Errand/e-1")).json()
            [line] = [line for line in whole["items"] if line["what"] == "Stepped"]
            assert (line["duration_seconds"], line["answered_after_seconds"], line["waited_seconds"]) == (None, 67, 7)
            page: dict[str, Any] = (await client.get("/api/log/Errand/e-1?limit=1&after=3")).json()
            assert page["items"] == [line]

    run(main)


def test_a_reply_that_names_what_it_answers_comes_again_after_a_reset(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with errands(make_app(clock), clock) as app:
            await answered(app, clock, "reply", 8, by_an_office)
            instance = app.instance(Errand, "e-1")
            await instance.reset(3)
            await instance.result()
            assert [line.about for line in await instance.log() if line.what == "Stepped"] == ["Number", "Number"]

    run(main)
