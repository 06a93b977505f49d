from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel

from mainspring.core.changes import ALIGNED_ITEMS, DEPTH, NOTHING, Change, aligned, changes, fields_of, same


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
    # What is left between the ends is short, and aligned.
    assert [path for path, *_ in told((*many, "a", "b", "c"), (*many, "x", "a", "b", "d"))] == ["[3000]", "[3003]"]
    assert [path for path, *_ in told(("a", "b", "c", *many), ("x", "a", "b", "d", *many))] == ["[0]", "[3]"]


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


def test_depth_is_counted_through_mappings_and_sequences_alike() -> None:
    def nested(wrap: Any, value: int) -> Any:
        node: Any = value
        for _ in range(DEPTH + 5):
            node = wrap(node)
        return node

    [in_lists] = changes(nested(lambda node: [node], 1), nested(lambda node: [node], 2))
    [in_dicts] = changes(nested(lambda node: {"k": node}, 1), nested(lambda node: {"k": node}, 2))
    assert (in_lists.path, in_dicts.path) == ("[0]" * DEPTH, "['k']" * DEPTH)


def test_several_items_between_the_same_neighbours_are_compared_one_by_one() -> None:
    assert told([0, 1, 2, 9], [0, 5, 6, 9]) == [("[1]", 1, 5), ("[2]", 2, 6)]
    assert told([0, 1, 2, 3, 9], [0, 5, 9]) == [("[1]", 1, 5), ("[2]", 2, NOTHING), ("[3]", 3, NOTHING)]
    assert told([0, 5, 9], [0, 1, 2, 3, 9]) == [("[1]", 5, 1), ("[2]", NOTHING, 2), ("[3]", NOTHING, 3)]


def test_a_change_behind_an_added_item_has_its_place_in_the_second_sequence() -> None:
    before, after = [1, 2, 3, 4, 5], [9, 1, 2, 7, 4, 5, 8]
    assert told(before, after) == [("[0]", NOTHING, 9), ("[3]", 3, 7), ("[6]", NOTHING, 8)]


def test_what_was_added_to_a_set_stands_in_the_order_of_its_texts() -> None:
    assert told({"m"}, {"b", "a", "c"}) == [
        ("", "m", NOTHING),
        ("", NOTHING, "a"),
        ("", NOTHING, "b"),
        ("", NOTHING, "c"),
    ]
    assert [change[1] for change in told(set("zyxw"), set())] == ["w", "x", "y", "z"]
    assert [change[1:] for change in told({2, 10, "b"}, {3, 20, "c"})] == [
        *(("b", NOTHING), (10, NOTHING), (2, NOTHING)),
        *((NOTHING, "c"), (NOTHING, 20), (NOTHING, 3)),
    ]


def test_the_path_of_a_field_is_joined_by_a_dot_and_the_first_one_is_bare() -> None:
    assert told(Cart((Line("a", 1),)), Cart((Line("a", 2),))) == [("lines[0].count", 1, 2)]
    assert list(changes(Line("a", 1), Line("a", 2), "line")) == [Change("line.count", 1, 2)]


def test_a_record_without_fields_differs_as_a_whole() -> None:
    one, other = Stubborn(), Stubborn()
    assert told(one, other) == [("", one, other)]
    assert told("a", "b") == [("", "a", "b")]


def test_a_longest_common_subsequence_is_found() -> None:
    assert aligned("abcbdab", "bdcaba") == [(1, 0), (4, 1), (5, 3), (6, 4)]
    assert aligned("ab", "ba") == [(1, 0)]
    assert aligned("", "abc") == []
    assert aligned("xay", "a") == [(1, 0)]


def test_only_short_sequences_are_aligned_and_long_ones_compared_place_by_place() -> None:
    short, long = list(range(ALIGNED_ITEMS)), list(range(ALIGNED_ITEMS + 1))
    assert aligned(short, [-1, *short[:-1]]) == [(n, n + 1) for n in range(ALIGNED_ITEMS - 1)]
    assert aligned(long, [-1, *long[:-1]]) == []
    assert aligned(long, [-1, *long[1:]]) == [(n, n) for n in range(1, ALIGNED_ITEMS + 1)]
    assert (ALIGNED_ITEMS, DEPTH) == (300, 50)


def test_long_sequences_of_two_lengths_are_compared_as_far_as_the_shorter_reaches() -> None:
    long = list(range(ALIGNED_ITEMS + 1))
    assert aligned(long, [-1, 1, 2]) == aligned([-1, 1, 2], long) == [(1, 1), (2, 2)]
    assert aligned(long, [1, 2]) == aligned([1, 2], long) == []


def test_values_are_the_same_by_their_text_only_within_one_type() -> None:
    class Shown:
        def __init__(self, text: str) -> None:
            self.text = text

        def __repr__(self) -> str:
            return self.text

    class Other(Shown):
        pass

    assert same(Shown("a"), Shown("a"))
    assert not same(Shown("a"), Shown("b"))
    assert not same(Shown("a"), Other("a"))
    assert same(1, 1.0)
    assert same({1: "a", 2: "b"}, {2: "b", 1: "a"})


def test_the_fields_of_dataclasses_structs_and_models_are_known_and_of_nothing_else() -> None:
    class Posted(BaseModel):
        stamp: str

    assert fields_of(Line("a", 2)) == {"name": "a", "count": 2}
    assert fields_of(Node(1)) == {"inner": 1}
    assert fields_of(Posted(stamp="s")) == {"stamp": "s"}
    assert fields_of(Line) is None
    assert fields_of(Posted) is None
    assert fields_of({"name": "a"}) is None


def test_nothing_is_told_as_such() -> None:
    assert repr(NOTHING) == "nothing"


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
