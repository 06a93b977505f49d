"""What was read back is held against what was written: types, order and offsets count, and the place is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mainspring.codec.sameness import difference
from tests.unit.codec.shop import ORDER, Line, Voucher

NAN = float("nan")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AN_HOUR_EAST = timezone(timedelta(hours=1))
REPEATED = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (1, 2, "the value is int 1 and would come back as int 2"),
        (1, True, "the value is int 1 and would come back as bool True"),
        ([1, True], [1, 1], "[1] is bool True and would come back as int 1"),
        ((1, True), (1, 1), "[1] is bool True and would come back as int 1"),
        ([1], [1, 2], "it has 1 parts and would come back with 2"),
        ({"a": 1}, {"a": True}, "['a'] is int 1 and would come back as bool True"),
        ({"a": 1}, {}, "it has 1 parts and would come back with 0"),
        ({1: 0}, {True: 0}, "'s key is int 1 and would come back as bool True"),
        ({"a": 1, "b": 1}, {"b": 1, "a": 1}, "'s key is str 'a' and would come back as str 'b'"),
        ({1}, {True}, "the value is set {1} and would come back as set {True}"),
        (frozenset({1}), frozenset({2}), "the value is frozenset frozenset({1}) and would come back as frozenset froz"),
        (frozenset({1}), frozenset({True}), "the value is frozenset frozenset({1}) and would come back as frozenset "),
        (Decimal(1), Decimal(2), "the value is Decimal Decimal('1') and would come back as Decimal Decimal('2')"),
        (Line("a", 1, 2), Line("a", 1, 3), "price is int 2 and would come back as int 3"),
        (Voucher("1"), Voucher("2"), "number is str '1' and would come back as str '2'"),
        (ORDER, replace(ORDER, lines=()), "lines has 2 parts and would come back with 0"),
        (
            replace(ORDER, lines=(Line("a", 1, 2),)),
            replace(ORDER, lines=(Line("a", 1, 3),)),
            "lines[0].price is int 2 and would come back as int 3",
        ),
    ],
)
def test_the_first_difference_is_told_with_its_place(before: Any, after: Any, told: str) -> None:
    assert (difference(before, after) or "").startswith(told)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (NOON, NOON.astimezone(AN_HOUR_EAST)),
        (NOON, NOON.replace(hour=13)),
        (NOON, NOON.replace(tzinfo=AN_HOUR_EAST)),
        (NOON, NOON.replace(tzinfo=None)),
        (NOON.replace(tzinfo=None), NOON),
        (NOON.replace(tzinfo=None), NOON.replace(hour=13, tzinfo=None)),
    ],
)
def test_a_moment_is_another_when_its_clock_or_its_offset_is(before: datetime, after: datetime) -> None:
    assert "would come back as datetime" in (difference(before, after) or "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (REPEATED, REPEATED.replace(tzinfo=AN_HOUR_EAST)),
        (NOON.replace(tzinfo=None), NOON.replace(tzinfo=None)),
        ({1, 2}, {2, 1}),
        (frozenset({"a"}), frozenset({"a"})),
        (ORDER, replace(ORDER)),
        (Voucher("1"), Voucher("1")),
        ({"a": [1, (2, None)]}, {"a": [1, (2, None)]}),
        ([NAN], [NAN]),
        ({NAN: 1}, {NAN: 1}),
    ],
)
def test_what_is_the_same_has_no_difference(before: Any, after: Any) -> None:
    assert difference(before, after) is None
