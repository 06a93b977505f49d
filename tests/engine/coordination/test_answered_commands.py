"""The command that an input answers, in its envelope: the same in the step, behind a restart, and in every replay."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import (
    ChildCompleted,
    ChildFailed,
    Complete,
    Decisions,
    DoNotRetryError,
    Envelope,
    Event,
    FanOut,
    Kind,
    Mainspring,
    Publish,
    Published,
    Received,
    Reply,
    Send,
    SendFailed,
    StartChild,
    Workflow,
)
from mainspring.analysis.export.redaction import MARKER, Redaction
from mainspring.analysis.replay.as_test import as_test
from mainspring.analysis.replay.counterfactual import counterfactual
from mainspring.analysis.replay.retelling import Edit
from mainspring.analysis.replay.travel import travel
from mainspring.analysis.what_if.check import check
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.redecision import redecided_rows
from mainspring.engine.recording.walk import Moment
from mainspring.port.records import EventRow, Ref
from mainspring.testing import envelope, given
from tests.engine.coordination.family import Booking, Square
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Count:
    id: str
    what: tuple[str, ...]


@dataclass(frozen=True)
class Weigh:
    what: str


@dataclass(frozen=True)
class Inquire:
    id: str


@dataclass(frozen=True)
class Weighed:
    """Says nothing of what it answers."""


@dataclass(frozen=True)
class AllWeighed:
    results: tuple[Weighed, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class Told:
    kind: str
    command: dict[str, Any] | None


@dataclass(frozen=True)
class Open:
    left: int = 0


Input = Count | Weighed | ChildCompleted | SendFailed | AllWeighed


class Scales(Workflow[Input, Open, Weigh | Square | Inquire | Told]):
    """Asks for one thing after the other, and publishes what each answer is an answer to."""

    begins = Count
    initial_state = Open()

    def route(self, message: Input) -> str | None:
        return message.id if isinstance(message, Count) else None

    def evolve(self, state: Open, event: Event[Input, Any]) -> Open | None:
        match event:
            case Received(Count(_, what)):
                return Open(len(what))
            case Received():
                return Open(state.left - 1)

    def decide(self, envelope: Envelope[Input], state: Open) -> Decisions[Input, Any] | None:
        match envelope.message:
            case Count(id, what):
                return [_asked(id, each) for each in what]
            case _:
                end = [Complete()] if state.left == 1 else []
                return [Publish(Told(envelope.kind.value, envelope.command)), *end]


def _asked(id: str, what: str) -> Any:
    match what:
        case "child":
            return StartChild(Square(f"{id}.1", 1))
        case "reply":
            return Send(Inquire(id))
        case "fan-out":
            return FanOut([Weigh("part")], into=AllWeighed)
        case _:
            return Send(Weigh(what))


class Forgetful(Scales):
    history = "state"


class Silent(Workflow[Square, Booking, Weigh]):
    """A child without a result."""

    begins = Square
    initial_state = Booking()

    def route(self, message: Square) -> str | None:
        return message.id

    def evolve(self, state: Booking, event: Event[Any, Any]) -> Booking | None:
        return None

    def decide(self, message: Square, state: Booking) -> Decisions[Any, Weigh] | None:
        return [Complete()]


class Clerk(Workflow[Inquire, Booking, Weighed]):
    """Replies at once."""

    begins = Inquire
    initial_state = Booking()

    def route(self, message: Inquire) -> str | None:
        return message.id

    def evolve(self, state: Booking, event: Event[Any, Any]) -> Booking | None:
        return None

    def decide(self, message: Inquire, state: Booking) -> Decisions[Any, Weighed] | None:
        return [Reply(Weighed())]


def weighing(app: Mainspring, workflow: type[Scales] = Scales, gate: asyncio.Event | None = None) -> Mainspring:
    async def weigh(command: Weigh) -> Weighed | list[Weighed]:
        if gate is not None:
            await gate.wait()
        if command.what == "broken":
            raise DoNotRetryError("it is broken")
        return [Weighed(), Weighed()] if command.what == "twins" else Weighed()

    app.add(workflow(), Silent(), Clerk())
    app.handler(weigh)
    return app


ALL = ("apple", "pear", "broken", "child", "reply", "fan-out")
ANSWERED: list[Told] = [
    Told("result", {"what": "apple"}),
    Told("result", {"what": "pear"}),
    Told("result", {"what": "broken"}),
    Told("result", {"id": "s-1.1", "number": 1}),
    Told("reply", {"id": "s-1"}),
    Told("result", None),
]


async def told(app: Mainspring) -> list[Told]:
    stream: list[Any] = await app.instance(Scales, "s-1").stream()
    return sorted((e.event.message for e in stream if isinstance(e.event, Published)), key=str)


async def replayed(app: Mainspring) -> tuple[Ref, list[EventRow]]:
    """Hold every replay against what was recorded."""
    ref = Ref("Scales", "s-1")
    rows, entry = (
        await whole_stream(internals_of(app).engine.store, ref),
        internals_of(app).registry.workflows["Scales"],
    )
    assert not any(step.changed for step in redecided_rows(entry, ref, rows))
    assert (await check(app)).safe
    for row in rows:
        if row.event in ("InitiatedBy", "Received"):
            edit = Edit("replace", row.version, entry.recorder.message(row.type or "", 1, row.body or b""))
            story = counterfactual(entry, ref, rows, edit, rows[-1].time_us)
            assert (story.differs_at, story.error) == (None, None)
    return ref, rows


def test_an_answer_knows_its_command_in_the_step_and_in_every_replay(make_app: MakeApp) -> None:
    async def main() -> None:
        async with weighing(make_app()) as app:
            await (await app.send(Count("s-1", ALL))).result()
            assert await told(app) == sorted(ANSWERED, key=str)
            await replayed(app)

    run(main)


@pytest.mark.parametrize("restarted", [False, True])
def test_an_answer_that_waited_knows_its_command(make_app: MakeApp, restarted: bool) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        async with weighing(make_app(), gate=gate) as app:
            await app.send(Count("s-1", ALL))
            instance = app.instance(Scales, "s-1")
            await instance.suspend()
            gate.set()

            async def all_wait() -> bool:
                return len(await instance.waiting()) == len(ALL) - len(await told(app))

            await until(all_wait)
            if not restarted:
                await instance.resume()
                await instance.result()
        async with weighing(make_app()) as app:
            instance = app.instance(Scales, "s-1")
            if restarted:
                await instance.resume()
            await instance.result()
            assert await told(app) == sorted(ANSWERED, key=str)
            await replayed(app)

    run(main)


def test_each_of_several_results_knows_their_one_command(make_app: MakeApp) -> None:
    """They go through the inbox, and are taken up in the same worker."""

    async def main() -> None:
        async with weighing(make_app()) as app:
            await app.send(Count("s-1", ("twins", "apple", "pear")))
            await app.instance(Scales, "s-1").result()
            seen = await told(app)
            assert seen.count(Told("result", {"what": "twins"})) in (1, 2)
            assert all(each.command is not None for each in seen)

    run(main)


def test_where_no_history_is_kept_no_answer_knows_its_command(make_app: MakeApp) -> None:
    """Else it would depend on the way that the answer takes."""

    async def main() -> None:
        heard: list[Told] = []
        app = weighing(make_app(), Forgetful)

        @app.subscribe
        async def hear(event: Told) -> None:
            heard.append(event)

        async with app:
            await (await app.send(Count("s-1", ("apple", "pear")))).result()
            await until(lambda: len(heard) == 2)
            assert heard == [Told("result", None)] * 2

    run(main)


def test_a_rehearsal_knows_the_only_command_and_is_told_of_others() -> None:
    one = given(Scales(), Count("s-1", ("apple",)))
    one.when(Weighed(), kind=Kind.RESULT).then(Publish(Told("result", {"what": "apple"})), Complete())
    several = given(Scales(), Count("s-1", ("apple", "pear")))
    several.when(Weighed(), kind=Kind.RESULT).then(Publish(Told("result", None)))
    again = given(Scales(), Count("s-1", ("apple", "pear")))
    told = envelope(Weighed(), kind=Kind.RESULT, command=Weigh("pear"))
    again.when(told).then(Publish(Told("result", {"what": "pear"})))


@pytest.mark.parametrize("command", [Weigh("pear"), {"what": "pear"}])
def test_a_test_says_what_a_result_answers_and_a_failure_says_so_itself(command: object) -> None:
    result = given(Scales(), Count("s-1", ("apple", "pear"))).when(Weighed(), command=command)
    result.then(Publish(Told("result", {"what": "pear"})))
    failed = SendFailed("Weigh", "Scales/s-1/4", "no scales", 1, command={"what": "pear"})
    failure = given(Scales(), Count("s-1", ("apple", "pear"))).when(failed)
    failure.then(Publish(Told("result", {"what": "pear"})))


@pytest.mark.parametrize(("redact", "hidden"), [((), False), (("card",), True)])
def test_a_step_as_a_test_says_what_its_input_answers(make_app: MakeApp, redact: tuple[str, ...], hidden: bool) -> None:
    async def main() -> None:
        async with weighing(make_app()) as app:
            await (await app.send(Count("s-1", ("apple", "pear")))).result()
            entry = internals_of(app).registry.workflows["Scales"]
            moments = [
                each
                async for each in travel(internals_of(app).engine.store, entry, Ref("Scales", "s-1"))
                if isinstance(each, Moment) and each.is_step
            ]
            text = as_test(entry, moments[:-1], moments[-1], Redaction(payloads=True, fields=redact))
            assert (f"command={MARKER!r}" in text) is hidden
            if not hidden:
                made: dict[str, Any] = {}
                exec(text, made)  # noqa: S102  what people are given to run
                next(value for name, value in made.items() if name.startswith("test_"))()

    run(main)
