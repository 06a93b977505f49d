"""Fan-out: many children or commands, one input when all have ended."""

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import ChildFailed, Complete, Decisions, DoNotRetryError, Event, FanOut, Mainspring, Workflow
from mainspring.core.decisions import FAN_OUT_MOST
from mainspring.errors import InvalidDecisionError
from tests.engine.coordination.family import (
    Adder,
    Half,
    Number,
    PartsDone,
    Proceed,
    Square,
    Squaring,
    Sum,
    Summed,
    adding,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def test_commands_are_joined_in_the_order_in_which_they_were_asked(make_app: MakeApp) -> None:
    async def main() -> None:
        async with adding(make_app()) as app:
            receipt = await app.send(Sum("s-1", (2, 4, 6)))
            assert await receipt.result() == Summed(6, (), "PartsDone")
            [joined] = [entry for entry in await receipt.stream() if entry.kind == "result"]
            assert joined.event.message == PartsDone((Number(1), Number(2), Number(3)), (), "PartsDone")  # type: ignore[union-attr]
            assert joined.message_id == "Adder/s-1/3/1"

    run(main)


def test_children_are_joined_and_failures_say_which(make_app: MakeApp) -> None:
    async def main() -> None:
        async with adding(make_app()) as app:
            receipt = await app.send(Sum("s-1", (1, -2, 3), squares=True))
            assert await receipt.result() == Summed(10, (1,), "squares")
            [joined] = [entry for entry in await receipt.stream() if entry.kind == "result"]
            assert joined.event.message.failures == (ChildFailed("Squaring/s-1--2", "failed", "negative", 1),)  # type: ignore[union-attr]

    run(main)


def test_a_command_that_failed_for_good_is_one_of_the_failures(make_app: MakeApp) -> None:
    async def half(command: Half) -> Number | None:
        if command.number == 3:
            raise DoNotRetryError("odd")
        return Number(command.number // 2) if command.number else None

    async def main() -> None:
        async with adding(make_app(), half) as app:
            receipt = await app.send(Sum("s-1", (2, 3, 0, 4)))
            assert await receipt.result() == Summed(3, (1,), "PartsDone")
            assert await app.dead_letters() == []

    run(main)


def test_nothing_to_fan_out_is_joined_at_once(make_app: MakeApp) -> None:
    async def main() -> None:
        async with adding(make_app()) as app:
            assert await (await app.send(Sum("s-1", ()))).result() == Summed(0, (), "PartsDone")

    run(main)


def test_more_parts_than_a_step_has_room_for_are_started_in_pieces(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.engine.outputs.fan_out.PARTS_PER_STEP", 10)

    async def main() -> None:
        async with adding(make_app()) as app:
            receipt = await app.send(Sum("s-1", tuple(range(1, 96)), squares=True))
            assert await receipt.result() == Summed(sum(n * n for n in range(1, 96)), (), "squares")
            assert len(await receipt.stream()) == 6, "the parent is stepped once, whatever the number of parts"
            row = (await app.instances(workflow="mainspring.FanOut"))[0]
            assert (row.id, row.status, row.state) == ("Adder/s-1/3", "completed", "Counting")

    run(main)


def test_cancelling_the_parent_cancels_the_fan_out_and_its_open_children(make_app: MakeApp) -> None:
    async def main() -> None:
        async with adding(make_app()) as app:
            receipt = await app.send(Sum("s-1", (0, 1, 0), squares=True))
            await until(lambda: _count(app, "Squaring", "running", 1))
            await receipt.cancel("never mind")
            await until(lambda: _count(app, "mainspring.FanOut", "cancelled", 1))
            # Two parts have the same id here: the second is refused, and is no child.
            await until(lambda: _count(app, "Squaring", "cancelled", 1))
            assert len(await app.instances(workflow="Squaring", status="completed")) == 1

    run(main)


def test_a_part_whose_child_waits_keeps_the_join_waiting(make_app: MakeApp) -> None:
    async def main() -> None:
        async with adding(make_app()) as app:
            receipt = await app.send(Sum("s-1", (3, 0), squares=True))
            await until(lambda: _count(app, "Squaring", "completed", 1))
            assert (await receipt.row()).status == "running"
            await app.send(Proceed("s-1-0"))
            assert await receipt.result() == Summed(9, (), "squares")

    run(main)


def test_a_join_goes_on_after_a_restart(make_app: MakeApp) -> None:
    async def main() -> None:
        async with adding(make_app()) as app:
            await app.send(Sum("s-1", (3, 0), squares=True))
            await until(lambda: _count(app, "Squaring", "completed", 1))
        async with adding(make_app()) as app:
            await app.send(Proceed("s-1-0"))
            assert await app.instance(Adder, "s-1").result() == Summed(9, (), "squares")

    run(main)


@dataclass(frozen=True)
class Texts:
    """Cannot hold numbers."""

    results: tuple[str, ...]
    failures: tuple[ChildFailed, ...]


class Wrong(Workflow[Sum | Texts, Number, Half]):
    begins = Sum
    initial_state = Number(0)

    def route(self, message: Sum | Texts) -> str | None:
        return message.id if isinstance(message, Sum) else None

    def evolve(self, state: Number, event: Event[Any, Any]) -> Number | None:
        return None

    def decide(self, message: Sum | Texts, state: Number) -> Decisions[Any, Any] | None:
        match message:
            case Sum(_, numbers):
                return [FanOut([Half(n) for n in numbers], into=Texts)]
            case Texts():
                return [Complete()]


def test_results_that_the_parent_cannot_take_suspend_it_and_can_be_told_again(make_app: MakeApp) -> None:
    async def half(command: Half) -> Number:
        return Number(command.number // 2)

    async def main() -> None:
        app = make_app()
        app.add(Wrong())
        app.handler(half)
        async with app:
            receipt = await app.send(Sum("s-1", (2,)))
            await until(lambda: _count(app, "Wrong", "suspended", 1))
            assert "cannot be told" in ((await receipt.row()).error or "")
            [letter] = await app.dead_letters()
            assert (letter.workflow, letter.reason) == (
                "mainspring.FanOut",
                "its results cannot be told to its parent",
            )
            await app.retry_dead_letter(letter.id, actor="ann")

            # It fails again before the instance goes on, or behind that: then it is suspended anew.
            async def stopped_again() -> bool:
                letters = [each.id for each in await app.dead_letters()]
                return letters not in ([], [letter.id]) and (await receipt.row()).status == "suspended"

            await until(stopped_again)

    run(main)


async def _count(app: Mainspring, workflow: str, status: Any, count: int) -> bool:
    return len(await app.instances(workflow=workflow, status=status)) == count


def test_what_cannot_be_joined_is_refused_where_it_is_written() -> None:
    @dataclass(frozen=True)
    class Half1:
        results: tuple[int, ...]

    @dataclass(frozen=True)
    class More:
        results: tuple[int, ...]
        failures: tuple[ChildFailed, ...]
        surprise: int

    with pytest.raises(InvalidDecisionError, match="no field failures"):
        FanOut([Half(1)], into=Half1)
    with pytest.raises(InvalidDecisionError, match="nothing fills its field surprise"):
        FanOut([Half(1)], into=More)
    with pytest.raises(InvalidDecisionError, match="list or a tuple"):
        FanOut("abc", into=PartsDone)
    with pytest.raises(InvalidDecisionError, match="50,001 messages"):
        FanOut([Half(1)] * (FAN_OUT_MOST + 1), into=PartsDone)


def test_squares_are_children_and_halves_are_commands(make_app: MakeApp) -> None:
    async def main() -> None:
        async with adding(make_app()) as app:
            await (await app.send(Sum("s-1", (1,), squares=True))).result()
            await (await app.send(Sum("s-2", (1,)))).result()
            first = await app.instance_at("mainspring.FanOut/Adder/s-1/3").stream()
            second = await app.instance_at("mainspring.FanOut/Adder/s-2/3").stream()
            assert type(first[2].event).__name__ == "ChildStarted"
            assert type(second[2].event).__name__ == "Sent"
            assert first[2].event.message == Square("s-1-1", 1)  # type: ignore[union-attr]
            assert (await app.instance(Squaring, "s-1-1").row()).status == "completed"

    run(main)
