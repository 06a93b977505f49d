from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from mainspring import CancelSchedule, Complete, Fail, Publish, Reply, Schedule, Send
from mainspring.core.changes import ALIGNED_ITEMS
from mainspring.core.difference import diff, field_differences, show, value_diff


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
