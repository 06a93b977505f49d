"""What differs between two values, place by place: fields of records, keys of mappings, items of sequences and sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

What: TypeAlias = Literal["changed", "added", "removed"]

DEPTH: Final = 50
"""How deep records are looked into. What lies deeper is compared and reported as a whole."""
ALIGNED_ITEMS: Final = 300
"""How many items of two sequences are aligned, beside those that are the same at both ends."""


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = _Nothing()
"""What stands on the side of a change on which there is no such place."""


class Change(Struct, frozen=True):
    """One place in which two values differ, as in `lines[0].amount`. The path of the values themselves is empty.

    >>> Change("amount", 1, 2).what, Change("tags", NOTHING, "new").what
    ('changed', 'added')
    """

    path: str
    before: Any
    after: Any

    @property
    def what(self) -> What:
        """Whether something was changed, or is there on one side only."""
        return "added" if self.before is NOTHING else "removed" if self.after is NOTHING else "changed"


def changes(before: object, after: object, path: str = "") -> Iterator[Change]:
    """Yield the places in which two values differ, in the order of the fields. Values of two types differ as a whole.

    An item that was removed has its place in the first sequence, one that was added its place in the second.

    >>> list(changes({"a": (1, 2)}, {"a": (1, 2, 3), "b": 4}))
    [Change(path="['a'][2]", before=nothing, after=3), Change(path="['b']", before=nothing, after=4)]
    """
    return _changes(before, after, path, DEPTH)


def _changes(before: Any, after: Any, path: str, depth: int) -> Iterator[Change]:
    if same(before, after):
        return
    left, right = fields_of(before), fields_of(after)
    if not depth or type(before) is not type(after):
        yield Change(path, before, after)
    elif left and right:
        for name, value in left.items():
            yield from _changes(value, right[name], f"{path}.{name}" if path else name, depth - 1)
    elif isinstance(before, Mapping):
        yield from _by_key(cast("Mapping[Any, Any]", before), cast("Mapping[Any, Any]", after), path, depth)
    elif isinstance(before, list | tuple):
        yield from _by_place(cast("Sequence[Any]", before), cast("Sequence[Any]", after), path, depth)
    elif isinstance(before, AbstractSet):
        yield from _by_item(cast("AbstractSet[Any]", before), cast("AbstractSet[Any]", after), path)
    else:
        yield Change(path, before, after)


def _by_key(left: Mapping[Any, Any], right: Mapping[Any, Any], path: str, depth: int) -> Iterator[Change]:
    for key in dict.fromkeys((*left, *right)):
        yield from _changes(left.get(key, NOTHING), right.get(key, NOTHING), f"{path}[{key!r}]", depth - 1)


def _by_item(left: AbstractSet[Any], right: AbstractSet[Any], path: str) -> Iterator[Change]:
    # A set has no order of its own: by their texts, so that it is always the same.
    for item in sorted(left - right, key=repr):
        yield Change(path, item, NOTHING)
    for item in sorted(right - left, key=repr):
        yield Change(path, NOTHING, item)


def _by_place(left: Sequence[Any], right: Sequence[Any], path: str, depth: int) -> Iterator[Change]:
    """Yield what differs between two sequences. What stands at one place between the same neighbours was changed."""
    start, left_end, right_end = _middle(left, right)
    pairs = aligned(left[start:left_end], right[start:right_end])
    one, other = start, start
    for same_left, same_right in [*pairs, (left_end - start, right_end - start)]:
        gap_left, gap_right = start + same_left - one, start + same_right - other
        for offset in range(max(gap_left, gap_right)):
            if offset < min(gap_left, gap_right):
                yield from _changes(left[one + offset], right[other + offset], f"{path}[{other + offset}]", depth - 1)
            elif offset < gap_left:
                yield Change(f"{path}[{one + offset}]", left[one + offset], NOTHING)
            else:
                yield Change(f"{path}[{other + offset}]", NOTHING, right[other + offset])
        one, other = start + same_left + 1, start + same_right + 1


def _middle(left: Sequence[Any], right: Sequence[Any]) -> tuple[int, int, int]:
    """Return where two sequences begin to differ, and where each of them ends to."""
    start, left_end, right_end = 0, len(left), len(right)
    while start < min(left_end, right_end) and same(left[start], right[start]):
        start += 1
    while min(left_end, right_end) > start and same(left[left_end - 1], right[right_end - 1]):
        left_end, right_end = left_end - 1, right_end - 1
    return start, left_end, right_end


def aligned(left: Sequence[Any], right: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the pairs of places of a longest common subsequence. Only `==` is asked of the items, no hash.

    >>> aligned("abc", "xbc")
    [(1, 1), (2, 2)]
    """
    if max(len(left), len(right)) > ALIGNED_ITEMS:
        return [(i, i) for i, (one, other) in enumerate(zip(left, right, strict=False)) if same(one, other)]
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            found = lengths[i + 1][j + 1] + 1 if same(left[i], right[j]) else 0
            lengths[i][j] = found or max(lengths[i + 1][j], lengths[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if same(left[i], right[j]):
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def same(one: Any, other: Any) -> bool:
    """Return True if two values are the same: equal, or of one type and with one text, as two NaNs are.

    >>> same(1, 1.0), same(float("nan"), float("nan"))
    (True, True)
    """
    if one is other:
        return True
    try:
        equal = bool(one == other)
    except Exception:  # noqa: BLE001  an author's __eq__ may raise anything; the texts are left to compare
        equal = False
    return equal or (type(one) is type(other) and repr(one) == repr(other))


def fields_of(value: object) -> dict[str, Any] | None:
    """Return the fields of a dataclass, Struct or pydantic model by name, or None for any other value.

    >>> fields_of(Change("amount", 1, 2)), fields_of(1)
    ({'path': 'amount', 'before': 1, 'after': 2}, None)
    """
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        names: Sequence[str] = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, Struct):
        names = value.__struct_fields__
    elif hasattr(type(value), "model_fields"):
        names = list(type(value).model_fields)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType, reportAttributeAccessIssue]
    else:
        return None
    return {name: getattr(value, name) for name in names}
