"""States of older code beside today's: what only one of them has, told apart from what both have."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from mainspring import Mainspring, message
from mainspring.analysis.what_if.comparison import Comparison
from mainspring.analysis.what_if.contrast import Shape, Stored, as_today, changes, state_changes
from mainspring.app.internals import internals_of
from mainspring.codec import Codec
from mainspring.core.events import Completed, Failed, Sent
from mainspring.engine.recording.recorder import Recorder
from mainspring.port.records import EventRow, Ref
from mainspring.testing.samples import Counter


@dataclass(frozen=True)
class Line:
    amount: int
    tax: int = 0


@dataclass(frozen=True)
class Order:
    lines: tuple[Line, ...] = ()
    notes: int = 0


class Sparse(Struct, frozen=True, omit_defaults=True):
    a: int = 0
    b: int = 0


class Strict(Struct, frozen=True, forbid_unknown_fields=True):
    a: int = 0


@message(name="Renamed", aliases=["Named"])
@dataclass(frozen=True)
class Renamed:
    a: int = 0


def upcast(data: dict[str, object]) -> dict[str, object]:
    return {"total": data["n"]}


@message(version=2, upcasters=(upcast,))
@dataclass(frozen=True)
class Grown:
    total: int = 0


def recorder() -> Recorder:
    codec = Codec()
    codec.register(Line, Order, Sparse, Strict, Renamed, Grown)
    return Recorder(codec, codec)


def beside(body: bytes, state: object, name: str | None = None) -> tuple[Shape, str | None]:
    """Return how the shape of an old state differs, and its values."""
    records = recorder()
    stored = Stored(name or type(state).__name__, 1, body)
    was, shape = as_today(records, stored, state, records.snapshot(state, 1, ""))
    return shape, state_changes(records, was, state)


def test_fields_that_a_record_in_the_state_has_lost_are_told_once() -> None:
    body = b'{"lines":[{"amount":1,"tax":0,"vat":2},{"amount":1,"tax":0,"vat":3}],"notes":0}'

    assert beside(body, Order((Line(1), Line(1)))) == (Shape(("vat in lines",)), None)


def test_a_new_field_of_a_record_in_the_state_is_compared_with_its_default() -> None:
    assert beside(b'{"lines":[{"amount":1}],"notes":0}', Order((Line(1),))) == (Shape(), None)
    assert beside(b'{"lines":[{"amount":1}],"notes":0}', Order((Line(1, 9),))) == (Shape(), "differs in lines")


def test_fields_in_another_order_are_the_same_state() -> None:
    assert beside(b'{"notes":0,"lines":[]}', Order()) == (Shape(), None)


def test_a_default_that_is_not_stored_is_no_new_field() -> None:
    assert beside(b'{"a":1}', Sparse(1, 2)) == (Shape(), "differs in b")


def test_a_record_that_refuses_unknown_fields_is_compared_in_the_others() -> None:
    assert beside(b'{"a":1,"b":2}', Strict(1)) == (Shape(("b",), readable=False), None)
    assert beside(b'{"a":1,"b":2}', Strict(3)) == (Shape(("b",), readable=False), "differs in a")


def test_a_state_by_an_earlier_name_is_of_the_same_type() -> None:
    assert beside(b'{"b":1}', Renamed(1), "Named") == (Shape(("b",), ("a",)), None)


def test_an_upcaster_answers_for_what_it_leads_over() -> None:
    assert beside(b'{"n":3}', Grown(3)) == (Shape(), None)
    assert beside(b'{"n":3}', Grown(4)) == (Shape(), "differs in total")


def test_a_message_recorded_before_it_had_a_field_is_not_said_to_differ_beside_what_does() -> None:
    records = recorder()
    read = Codec()
    read.register(Line)
    recorded = Sent(read.decode("Line", 1, b'{"amount":1}'))

    assert changes(records, [recorded, Completed()], [Sent(Line(1)), Failed("no")]) == [
        "Completed is not decided any more",
        "Failed is decided",
    ]


def walked(body: bytes) -> Comparison:
    """Return a walk along one count, beside a snapshot of the state behind it."""
    app = Mainspring("memory://")
    app.add(Counter())
    rows = [
        EventRow(1, "Began", 0),
        EventRow(2, "InitiatedBy", 0, "Count", 1, b'{"counter":"c-1"}', state="Counted"),
    ]
    walk = Comparison(
        internals_of(app).registry.workflows["Counter"], Ref("Counter", "c-1"), {2: Stored("Counted", 1, body)}
    )
    walk.take(rows)
    walk.end()
    return walk


def test_a_snapshot_with_a_field_that_is_gone_is_compared_in_the_others_and_not_counted_as_whole() -> None:
    same, other = walked(b'{"times":1,"by":"ann"}'), walked(b'{"times":7,"by":"ann"}')

    assert (list(same.found), same.compared.states, same.compared.unreadable_snapshots) == ([], 0, 1)
    assert list(other.found) == [("state", "the state Counted behind a step in Counted differs in times")]


def test_a_snapshot_without_a_field_that_has_a_default_is_compared_and_the_field_named() -> None:
    walk = walked(b"{}")

    assert (list(walk.found), walk.compared.states) == ([], 1)
    assert walk.new_fields == {"Counted": {"times": None}}
