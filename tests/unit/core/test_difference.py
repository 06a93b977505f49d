from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from mainspring import (
    Ask,
    CancelSchedule,
    CloseTask,
    Compensate,
    Complete,
    Fail,
    FanOut,
    Publish,
    RefuseAnswer,
    Reply,
    Schedule,
    Send,
    StartChild,
)
from mainspring.core.changes import ALIGNED_ITEMS
from mainspring.core.decisions import Become
from mainspring.core.difference import SHOWN_FIELDS, diff, field_differences, show, value_diff


@dataclass(frozen=True)
class Line:
    name: str
    count: int = 1


@dataclass(frozen=True)
class Cart:
    lines: list[Line] = field(default_factory=list[Line])
    prices: dict[str, int] = field(default_factory=dict[str, int])


class Packed(Struct, frozen=True):
    weight: int


class Posted(BaseModel):
    model_config = ConfigDict(frozen=True)
    stamp: str


def test_decisions_are_shown_as_authors_write_them() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert [
        show(Send(Line("a"))),
        show(Publish("done")),
        show(Reply("yes")),
        show(Reply("yes", to="m-1")),
        show(Schedule("late", at=noon, key="deadline")),
        show(Schedule("late", after=timedelta(days=1))),
        show(CancelSchedule(Line)),
        show(CancelSchedule("deadline")),
        show(Complete()),
        show(Complete("ok")),
        show(Fail("no")),
    ] == [
        "Send(Line(name='a', count=1))",
        "Publish('done')",
        "Reply('yes')",
        "Reply('yes', to='m-1')",
        "Schedule('late', at=2026-01-01T12:00:00+00:00, key='deadline')",
        "Schedule('late', after=1 day, 0:00:00)",
        "CancelSchedule(Line)",
        "CancelSchedule('deadline')",
        "Complete()",
        "Complete('ok')",
        "Fail('no')",
    ]


def test_a_long_message_is_cut() -> None:
    assert show(Send("x" * 1_000)) == f"Send('{'x' * 399}… (1002 characters))"


def test_a_nested_field_is_named_by_its_path() -> None:
    before, after = Cart([Line("a"), Line("b")], {"a": 1}), Cart([Line("a"), Line("b", 2)], {"a": 1, "b": 3})
    assert field_differences(before, after, "is") == (
        "lines[1].count: expected 1, is 2; prices['b']: expected nothing, is 3"
    )


def test_an_item_that_is_missing_is_named_by_its_place() -> None:
    assert field_differences(Cart([Line("a")]), Cart(), "is") == (
        "lines[0]: expected Line(name='a', count=1), is nothing"
    )


def test_structs_and_pydantic_models_are_compared_by_field() -> None:
    assert value_diff(Packed(1), Packed(2), "is") == ["~ Packed: weight: expected 1, is 2"]
    assert value_diff(Posted(stamp="a"), Posted(stamp="b"), "is") == ["~ Posted: stamp: expected 'a', is 'b'"]


def test_many_different_fields_are_counted_not_listed() -> None:
    before, after = Cart(prices={str(n): 0 for n in range(20)}), Cart(prices={str(n): 1 for n in range(20)})
    assert field_differences(before, after, "is").endswith("; and 12 more")


def test_a_message_of_another_type_is_not_compared_by_field() -> None:
    lines = diff([Send(Line("a"))], [Send(Packed(1))], text=show, key=lambda d: d, verb="decided")
    assert lines == ["- Send(Line(name='a', count=1))", "+ Send(Packed(weight=1))"]


def test_very_long_lists_are_compared_place_by_place() -> None:
    many = [Send(Line("a", n)) for n in range(ALIGNED_ITEMS + 1)]
    other = [*many[:-1], Send(Line("b", ALIGNED_ITEMS))]
    lines = diff(many, other, text=show, key=lambda d: d, verb="decided")
    assert len(lines) == len(many)
    assert lines[-1] == "~ Send(Line): name: expected 'a', decided 'b'"


@dataclass(frozen=True)
class Joined:
    results: tuple[int, ...] = ()
    failures: tuple[str, ...] = ()


def test_sagas_children_and_tasks_are_shown_as_authors_write_them() -> None:
    ask = Ask(
        "Approve",
        answer=Line | Cart,
        role="manager",
        excludes=("ann",),
        reject=Cart,
        due=timedelta(days=7),
        remind=Schedule("late", after=timedelta(days=1)),
        data={"n": 1},
    )
    assert [
        show(Send("book", compensate="free")),
        show(Compensate("no car")),
        show(Compensate("no car", then="replan")),
        show(Become("waiting")),
        show(StartChild("ship")),
        show(StartChild("ship", "abandon")),
        show(FanOut([1, 2], into=Joined)),
        show(FanOut([1], into=Joined, key="squares")),
        show(CloseTask(Line)),
        show(CloseTask("approval")),
        show(RefuseAnswer("no note")),
        show(Schedule("late", after=timedelta(days=1), key="k")),
        show(ask),
    ] == [
        "Send('book', compensate='free')",
        "Compensate('no car')",
        "Compensate('no car', then='replan')",
        "Become('waiting')",
        "StartChild('ship')",
        "StartChild('ship', when_parent_ends='abandon')",
        "FanOut([1, 2], into=Joined)",
        "FanOut([1], into=Joined, key='squares')",
        "CloseTask(Line)",
        "CloseTask('approval')",
        "RefuseAnswer('no note')",
        "Schedule('late', after=1 day, 0:00:00, key='k')",
        (
            "Ask('Approve', Line | Cart, role='manager', excludes=('ann',), reject=Cart, due=7 days, 0:00:00, "
            "remind=Schedule('late', after=1 day, 0:00:00), data={'n': 1})"
        ),
    ]


def told(expected: list[object], came: list[object]) -> list[str]:
    return diff(expected, came, text=repr, verb="came")


def test_what_stands_before_the_same_item_on_one_side_keeps_its_place() -> None:
    fail, send = Fail("x"), Send("a")
    assert diff([send], [fail, send], text=show, verb="decided") == ["+ Fail('x')", "  Send('a')"]
    assert diff([fail, send], [send], text=show, verb="decided") == ["- Fail('x')", "  Send('a')"]


def test_a_decision_that_carries_nothing_is_named_alone() -> None:
    lines = diff([Fail("b")], [Fail("c")], text=show, verb="decided")
    assert lines == ["~ Fail: reason: expected 'b', decided 'c'"]


def test_the_same_items_stand_once_and_the_others_on_their_side_in_order() -> None:
    assert told([1, 2, 3], [1, 9, 3, 4]) == ["  1", "- 2", "+ 9", "  3", "+ 4"]
    assert told([1, 2], []) == ["- 1", "- 2"]
    assert told([], [1, 2]) == ["+ 1", "+ 2"]
    assert told([], []) == []


def test_what_differs_only_in_fields_is_paired_in_the_order_in_which_it_came() -> None:
    expected: list[object] = [Send(Line("a")), Send(Line("b"))]
    came: list[object] = [Fail("x"), Send(Line("a", 2)), Fail("y"), Send(Line("b", 3)), Fail("z")]
    assert told(expected, came) == [
        "+ Fail(reason='x')",
        "~ Send(Line): count: expected 1, came 2",
        "+ Fail(reason='y')",
        "~ Send(Line): count: expected 1, came 3",
        "+ Fail(reason='z')",
    ]


def test_messages_of_two_types_are_not_paired() -> None:
    assert told([Send(Line("a"))], [Send(Packed(1))]) == [
        "- Send(message=Line(name='a', count=1))",
        "+ Send(message=Packed(weight=1))",
    ]
    assert told([Complete(Line("a"))], [Complete(Line("b"))]) == ["~ Complete(Line): name: expected 'a', came 'b'"]
    assert told([Become(Line("a"))], [Become(Line("b"))]) == ["~ Become(Line): state.name: expected 'a', came 'b'"]


def test_items_are_the_same_by_their_key() -> None:
    assert diff(["a1", "b1"], ["A2", "c2"], text=str, verb="came", key=lambda text: text[0].lower()) == [
        "  A2",
        "- b1",
        "+ c2",
    ]


def test_as_many_fields_are_told_as_people_read() -> None:
    assert SHOWN_FIELDS == 8
    prices = {str(n): n for n in range(SHOWN_FIELDS)}
    one = field_differences(Cart(prices=prices), Cart(prices=dict.fromkeys(prices, -1)), "came")
    assert "more" not in one
    assert one.count(";") == SHOWN_FIELDS - 1
    more = field_differences(Cart(prices=prices | {"x": 0, "y": 0}), Cart(), "came")
    assert more.endswith("; and 2 more")
    assert more.count(";") == SHOWN_FIELDS


def test_two_single_values_are_told_by_field_where_they_are_alike() -> None:
    assert value_diff(Line("a"), Line("b"), "is") == ["~ Line: name: expected 'a', is 'b'"]
    assert value_diff(Line("a"), Packed(1), "is") == ["- Line(name='a', count=1)", "+ Packed(weight=1)"]
    assert value_diff(timedelta(1), timedelta(2), "is") == ["- 1 day, 0:00:00", "+ 2 days, 0:00:00"]


def test_a_plain_message_keeps_its_name_in_the_path() -> None:
    assert field_differences(Send("a"), Send("b"), "came") == "message: expected 'a', came 'b'"
    assert field_differences(1, 2, "came") == ": expected 1, came 2"
    assert field_differences(Send(Line("a")), Complete(Line("a")), "came").startswith(": expected Send(")


def test_a_task_is_shown_without_what_it_does_not_say_and_a_stranger_by_its_text() -> None:
    assert show(Ask("?", Line, role="r")) == "Ask('?', Line, role='r')"
    stranger: Any = Line("a")
    assert show(stranger) == "Line(name='a', count=1)"
