"""The search, checked: against histories made by hand, and against one that tries every order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.proof.histories.search import NEVER, Operation, search


class Listed(NamedTuple):
    """What was appended so far, and what is still to come from inside."""

    marks: tuple[str, ...] = ()
    owed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListModel:
    """Appends, reads, and appends that bring another one later, by themselves."""

    looks_ahead: bool = True

    @property
    def beginning(self) -> Listed:
        return Listed()

    def after(self, standing: Listed, what: tuple[str, Any]) -> Listed | None:
        verb, value = what
        match verb:
            case "append":
                return standing._replace(marks=(*standing.marks, value))
            case "copy":
                return Listed((*standing.marks, value), (*standing.owed, f"{value}'"))
            case "count":
                mark, count = value
                return standing._replace(marks=(*standing.marks, mark)) if len(standing.marks) == count else None
            case _:
                return standing if standing.marks == value else None

    def inside(self, standing: Listed) -> Iterable[Listed]:
        return [
            Listed((*standing.marks, mark), tuple(other for other in standing.owed if other != mark))
            for mark in standing.owed
        ]

    def leads(self, standing: Listed, what: tuple[str, Any]) -> bool:
        verb, seen = what
        return not self.looks_ahead or verb != "read" or seen[: len(standing.marks)] == standing.marks


def write(mark: str, began: float, by: float = NEVER, *, known: float | None = None, **more: Any) -> Operation:
    known = by if known is None else known
    return Operation(mark, ("append", mark), began, by=by, known=known, **more)


def maybe(mark: str, began: float, **more: Any) -> Operation:
    return write(mark, began, needed=False, **more)


def read(marks: str, began: float, by: float) -> Operation:
    return Operation(f"{marks}@{began}", ("read", tuple(marks)), began, by=by, writes=False)


def verdict(*operations: Operation) -> str:
    return search(ListModel(), operations).verdict


# ---- by hand


def test_what_happens_at_once_may_have_happened_in_either_order() -> None:
    assert verdict(write("a", 0, 10), write("b", 0, 10), read("ab", 11, 12)) == "explained"
    assert verdict(write("a", 0, 10), write("b", 0, 10), read("ba", 11, 12)) == "explained"


def test_what_ended_before_another_began_has_happened_before_it() -> None:
    assert verdict(write("a", 0, 1), write("b", 2, 3), read("ba", 4, 5)) == "violated"


def test_what_ended_in_the_moment_in_which_another_began_may_have_been_behind_it() -> None:
    assert verdict(write("a", 0, 2), write("b", 2, 3), read("ba", 4, 5)) == "explained"
    assert verdict(write("a", 0, 2), read("", 2, 3)) == "explained"


def test_a_write_that_is_under_way_is_seen_or_not() -> None:
    assert verdict(write("a", 0, 10), read("", 1, 2), read("a", 3, 4)) == "explained"


def test_a_write_that_was_seen_stays() -> None:
    assert verdict(write("a", 0, 10), read("a", 1, 2), read("", 3, 4)) == "violated"


def test_a_write_that_has_ended_is_seen() -> None:
    assert verdict(write("a", 0, 1), read("", 2, 3)) == "violated"


def test_what_was_acknowledged_may_be_seen_later_but_is_not_overtaken_by_a_later_write() -> None:
    accepted = write("a", 0, known=1)
    assert verdict(accepted, read("", 2, 3), read("a", 4, 5)) == "explained"
    assert verdict(accepted, write("b", 2, 3), read("ab", 4, 5)) == "explained"
    assert verdict(accepted, write("b", 2, 3), read("ba", 4, 5)) == "violated"
    assert verdict(accepted, write("b", 0.5, 3), read("ba", 4, 5)) == "explained"


def test_what_nobody_was_told_about_happens_late_or_never_but_not_twice() -> None:
    assert verdict(maybe("a", 0), read("", 5, 6)) == "explained"
    assert verdict(maybe("a", 0), read("", 5, 6), read("a", 7, 8)) == "explained"
    assert verdict(maybe("a", 0), write("b", 7, 8), read("ba", 9, 10)) == "explained"
    assert verdict(maybe("a", 0), read("aa", 5, 6)) == "violated"
    assert verdict(maybe("a", 5), read("a", 1, 2)) == "violated"


def test_of_those_that_exclude_each_other_one_happens() -> None:
    first, second = maybe("a", 0, instead=frozenset("b")), maybe("b", 0, instead=frozenset("a"))
    assert verdict(first, second, read("b", 1, 2)) == "explained"
    assert verdict(first, second, read("ab", 1, 2)) == "violated"


def test_nothing_is_seen_that_was_never_written() -> None:
    assert verdict(write("a", 0, 1), read("ax", 2, 3)) == "violated"


def test_an_answer_must_be_that_of_its_moment() -> None:
    def count(mark: str, seen: int, began: float, by: float) -> Operation:
        return Operation(mark, ("count", (mark, seen)), began, by=by, known=by)

    assert verdict(write("a", 0, 1), count("b", 1, 2, 3)) == "explained"
    assert verdict(write("a", 0, 1), count("b", 0, 2, 3)) == "violated"
    assert verdict(write("a", 0, 9), count("b", 0, 2, 3)) == "explained"


def test_what_comes_from_inside_comes_some_time_behind_its_cause() -> None:
    copied = Operation("a", ("copy", "a"), 0, by=1, known=1)
    assert search(ListModel(), [copied, read("a", 2, 3)]).verdict == "explained"
    seen = Operation("seen", ("read", ("a", "a'")), 2, by=3, writes=False)
    assert search(ListModel(), [copied, seen]).verdict == "explained"
    early = Operation("early", ("read", ("a'", "a")), 2, by=3, writes=False)
    assert search(ListModel(), [copied, early]).verdict == "violated"


def test_a_search_that_is_too_long_decides_nothing() -> None:
    many = [write(mark, 0, 10) for mark in "abcdefgh"]
    wrong = Operation("wrong", ("count", ("x", 99)), 11, by=12, known=12)
    assert search(ListModel(), [*many, wrong], most=1_000).verdict == "undecided"
    assert search(ListModel(), [*many, read("hgfedcba", 11, 12)], most=1_000).verdict == "explained"


def test_a_refusal_says_how_far_it_came() -> None:
    answer = search(ListModel(), [write("a", 0, 1), write("b", 2, 3), read("a", 4, 5)])
    assert answer.verdict == "violated"
    assert [operation.name for operation in answer.placed] == ["a"]
    assert [operation.name for operation in answer.left] == ["b", "a@4"]


# ---- against one that tries every order


def explained_by_any_order(model: ListModel, operations: Sequence[Operation]) -> bool:
    """Try all orders of all choices: no memory, no shortcut, no look ahead."""

    def before(first: Operation, second: Operation) -> bool:
        overtaken = first.writes and second.writes and first.known < second.began
        return first.by < second.began or overtaken

    def go(left: tuple[Operation, ...], gone: frozenset[str], standing: Listed) -> bool:
        if not any(operation.needed for operation in left):
            return True
        for operation in left:
            others = tuple(other for other in left if other is not operation)
            if any(before(other, operation) for other in others):
                continue
            after = model.after(standing, operation.what)
            if operation.instead & gone and after != standing:
                continue
            if after is not None and go(others, gone | {operation.name}, after):
                return True
        return any(go(left, gone, after) for after in model.inside(standing))

    return go(tuple(operations), frozenset(), model.beginning)


@st.composite
def sequential(draw: st.DrawFn) -> list[Operation]:
    """Return what somebody saw who ran operations one by one: each happened at a moment of its own, while it lasted."""
    model, standing = ListModel(), Listed()
    operations: list[Operation] = []
    latest = 0
    for number in range(draw(st.integers(1, 6))):
        moment, mark = number * 10, "abcdef"[number]
        while standing.owed and draw(st.booleans()):
            standing = draw(st.sampled_from(list(model.inside(standing))))
        kind = draw(st.sampled_from(("append", "copy", "count", "read", "accepted", "unknown", "never")))
        value: Any = standing.marks if kind == "read" else (mark, len(standing.marks)) if kind == "count" else mark
        verb = kind if kind in ("copy", "count", "read") else "append"
        began, by = moment - draw(st.integers(0, 25)), moment + draw(st.integers(0, 25))
        operation = Operation(mark, (verb, value), began, by=by, known=by, writes=kind != "read")
        if kind == "accepted":
            # It is not acknowledged before all that overtook it had begun.
            known = draw(st.integers(max(began, latest), max(began, latest) + 20))
            operation = replace(operation, by=NEVER, known=known)
        elif kind in ("unknown", "never"):
            operation = replace(operation, by=NEVER, known=NEVER, needed=False)
        latest = max(latest, began)
        operations.append(operation)
        if kind != "never":
            after = model.after(standing, operation.what)
            assert after is not None
            standing = after
    return operations


@st.composite
def mutated(draw: st.DrawFn) -> list[Operation]:
    """Return such a history with something wrong in it, maybe: what was seen, when it was, or that it was at all."""
    operations = draw(sequential())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(operations) - 1))
        operation = operations[place]
        verb, value = operation.what
        match draw(st.sampled_from(("seen", "moved", "gone", "shorter", "instead"))):
            case "seen" if verb == "read":
                marks = draw(st.lists(st.sampled_from("abcdef"), max_size=3, unique=True))
                operation = replace(operation, what=(verb, tuple(marks)))
            case "seen" if verb == "count":
                operation = replace(operation, what=(verb, (value[0], draw(st.integers(0, 3)))))
            case "moved":
                by = draw(st.integers(-60, 60))
                operation = replace(operation, began=operation.began + by, by=operation.by + by)
                operation = replace(operation, known=operation.known + by)
            case "gone" if len(operations) > 1:
                operations = [*operations[:place], *operations[place + 1 :]]
                continue
            case "shorter":
                operation = replace(operation, by=operation.began, known=operation.began, needed=True)
            case _:
                other = draw(st.sampled_from(operations))
                if other is not operation:
                    operation = replace(operation, instead=frozenset({other.name}))
                    at = operations.index(other)
                    operations[at] = replace(other, instead=other.instead | {operation.name})
        operations[place] = operation
    return operations


@given(sequential())
def test_what_was_done_one_by_one_is_always_explained(operations: list[Operation]) -> None:
    assert search(ListModel(), operations).verdict == "explained"


@given(mutated())
def test_what_is_explained_is_just_what_some_order_explains(operations: list[Operation]) -> None:
    possible = "explained" if explained_by_any_order(ListModel(), operations) else "violated"
    assert search(ListModel(looks_ahead=True), operations).verdict == possible
    assert search(ListModel(looks_ahead=False), operations).verdict == possible
