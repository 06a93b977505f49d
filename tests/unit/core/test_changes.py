from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from mainspring.core.changes import ALIGNED_ITEMS, DEPTH, NOTHING, Change, changes, same


@dataclass(frozen=True)
class Line:
    name: str
    count: int = 1


@dataclass(frozen=True)
class Cart:
    lines: tuple[Line, ...] = ()
    prices: dict[str, int] = field(default_factory=dict[str, int])
    tags: frozenset[str] = frozenset()


class Node(Struct, frozen=True):
    inner: "Node | int"


class Stubborn:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compare somebody else")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def told(before: object, after: object) -> list[tuple[str, object, object]]:
    return [(change.path, change.before, change.after) for change in changes(before, after)]


def test_equal_values_have_no_changes() -> None:
    assert told(Cart((Line("a"),)), Cart((Line("a"),))) == []


def test_an_item_that_was_added_or_removed_is_one_change() -> None:
    a, b, c = Line("a"), Line("b"), Line("c")
    assert told(Cart((a, b)), Cart((a, b, c))) == [("lines[2]", NOTHING, c)]
    assert told(Cart((a, b, c)), Cart((b, c))) == [("lines[0]", a, NOTHING)]
    assert told(Cart((a, c)), Cart((a, b, c))) == [("lines[1]", NOTHING, b)]


def test_an_item_between_the_same_neighbours_was_changed() -> None:
    a, b, c = Line("a"), Line("b"), Line("c")
    assert told(Cart((a, b, c)), Cart((a, Line("b", 7), c))) == [("lines[1].count", 1, 7)]


def test_of_very_long_sequences_the_same_ends_are_left_aside() -> None:
    many = tuple(range(10 * ALIGNED_ITEMS))
    assert told(many, (*many, "new")) == [(f"[{len(many)}]", NOTHING, "new")]
    assert told(many, many[1:]) == [("[0]", 0, NOTHING)]


def test_mappings_and_sets_are_told_by_key_and_item() -> None:
    before, after = Cart(prices={"a": 1, "b": 2}, tags=frozenset({"x", "y"})), Cart(prices={"a": 1, "c": 3})
    assert told(before, after) == [
        ("prices['b']", 2, NOTHING),
        ("prices['c']", NOTHING, 3),
        ("tags", "x", NOTHING),
        ("tags", "y", NOTHING),
    ]


def test_values_of_two_types_differ_as_a_whole() -> None:
    assert told(Line("a"), Cart()) == [("", Line("a"), Cart())]


def test_a_value_that_cannot_be_compared_is_compared_by_its_text() -> None:
    assert same(float("nan"), float("nan"))
    one = Stubborn()
    assert same(one, one)
    assert not same(one, Stubborn())


def test_what_lies_too_deep_is_told_as_a_whole() -> None:
    def nested(value: int) -> Node:
        node: Node | int = value
        for _ in range(DEPTH + 5):
            node = Node(node)
        assert isinstance(node, Node)
        return node

    [change] = changes(nested(1), nested(2))
    assert change.path.count("inner") == DEPTH
    assert isinstance(change.before, Node)


@pytest.mark.parametrize(
    ("change", "what"),
    [(Change("a", 1, 2), "changed"), (Change("a", NOTHING, 2), "added"), (Change("a", 1, NOTHING), "removed")],
)
def test_a_change_says_what_happened(change: Change, what: str) -> None:
    assert change.what == what


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_the_changes_of_a_list_lead_from_one_to_the_other(before: list[int], after: list[int]) -> None:
    found = list(changes(before, after))
    kept = list(before)
    removed = sorted((int(c.path[1:-1]) for c in found if c.what == "removed"), reverse=True)
    for place in removed:
        del kept[place]
    added = {int(c.path[1:-1]): c.after for c in found if c.what == "added"}
    for place in sorted(added):
        kept.insert(place, added[place])
    for change in found:
        if change.what == "changed":
            place = int(change.path[1:-1])
            assert kept[place] == change.before
            kept[place] = change.after
    assert kept == after
