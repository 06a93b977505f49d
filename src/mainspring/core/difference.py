"""Differences between what was expected and what came, as short as people want to read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from msgspec import Struct

from mainspring.core.decisions import (
    Ask,
    Become,
    CancelSchedule,
    CloseTask,
    Compensate,
    Complete,
    Decision,
    Fail,
    FanOut,
    Publish,
    Reply,
    Schedule,
    Send,
    StartChild,
)
from mainspring.errors import shown

T = TypeVar("T")

SHOWN_CHARACTERS: Final = 400
SHOWN_FIELDS: Final = 8
ALIGNED_LINES: Final = 300


def show(decision: Decision[Any, Any]) -> str:
    """Return a decision as an author would write it.

    >>> show(Schedule("timed out", after=timedelta(minutes=5))), show(CancelSchedule(int))
    ("Schedule('timed out', after=0:05:00)", 'CancelSchedule(int)')
    """
    name = type(decision).__name__
    match decision:
        case Complete(None):
            return "Complete()"
        case Send(carried, compensation) if compensation is not None:
            return f"Send({_short(carried)}, compensate={_short(compensation)})"
        case Compensate(reason, then):
            return f"Compensate({_short(reason)}{'' if then is None else f', then={_short(then)}'})"
        case Send(carried) | Publish(carried) | Reply(carried, None) | Complete(carried) | Become(carried):
            return f"{name}({_short(carried)})"
        case StartChild(carried, when):
            return f"StartChild({_short(carried)}{'' if when == 'cancel' else f', when_parent_ends={when!r}'})"
        case FanOut(messages, into, key):
            named = "" if key is None else f", key={key!r}"
            return f"FanOut({_short(list(messages))}, into={into.__name__}{named})"
        case Reply(carried, to):
            return f"Reply({_short(carried)}, to={to!r})"
        case Schedule(carried, after, at, key):
            when = f"after={after}" if at is None else f"at={at.isoformat()}"
            return f"Schedule({_short(carried)}, {when}{'' if key is None else f', key={key!r}'})"
        case CancelSchedule(key):
            return f"CancelSchedule({key.__name__ if isinstance(key, type) else repr(key)})"
        case CloseTask(key):
            return f"CloseTask({key.__name__ if isinstance(key, type) else repr(key)})"
        case Ask():
            return _asked(decision)
        case Fail(reason):
            return f"Fail({_short(reason)})"
        case _:
            return _short(decision)


def _asked(ask: Ask[Any]) -> str:
    given: dict[str, Any] = {name: getattr(ask, name) for name in ask.__struct_fields__[2:]}
    rest = [f"{name}={_plain(value)}" for name, value in given.items() if value not in (None, (), {})]
    return f"Ask({ask.title!r}, {' | '.join(answer.__name__ for answer in ask.answers)}, {', '.join(rest)})"


def _plain(value: Any) -> str:
    if isinstance(value, Schedule):
        return show(cast("Schedule[Any]", value))
    return value.__name__ if isinstance(value, type) else str(value) if isinstance(value, timedelta) else repr(value)


def _itself(value: Any) -> Any:
    return value


def diff(
    expected: Sequence[T], came: Sequence[T], *, text: Callable[[T], str], verb: str, key: Callable[[T], Any] = _itself
) -> list[str]:
    """Return the lines of a diff: `  same`, `- expected`, `+ came`, and `~` for what differs only in some fields.

    >>> lines = diff([Send("a"), Fail("b")], [Send("a"), Fail("c")], text=show, verb="decided")
    >>> print(*lines, sep=chr(10))
      Send('a')
    ~ Fail: reason: expected 'b', decided 'c'
    """
    lines: list[str] = []
    for left, right in _aligned(expected, came, key):
        if left and right and key(left[0]) == key(right[0]):
            lines.append(f"  {text(right[0])}")
        elif left and right:
            lines.append(f"~ {_label(left[0])}: {field_differences(left[0], right[0], verb)}")
        else:
            lines += [f"- {text(item)}" for item in left] + [f"+ {text(item)}" for item in right]
    return lines


def value_diff(expected: object, came: object, verb: str) -> list[str]:
    """Return the lines of a diff of two single values.

    >>> value_diff(1, 2, "is")
    ['- 1', '+ 2']
    """
    if _is_alike(expected, came):
        return [f"~ {type(came).__name__}: {field_differences(expected, came, verb)}"]
    return [f"- {_short(expected)}", f"+ {_short(came)}"]


def field_differences(expected: object, came: object, verb: str) -> str:
    """Return the fields in which two records of the same shape differ.

    >>> field_differences(Fail("a"), Fail("b"), "decided")
    "reason: expected 'a', decided 'b'"
    """
    found = list(_differences(expected, came, ""))
    parts = [f"{path}: expected {_short(left)}, {verb} {_short(right)}" for path, left, right in found[:SHOWN_FIELDS]]
    if len(found) > SHOWN_FIELDS:
        parts.append(f"and {len(found) - SHOWN_FIELDS} more")
    return "; ".join(parts)


def fields_of(value: object) -> dict[str, Any] | None:
    """Return the fields of a dataclass, Struct or pydantic model by name, or None for any other value.

    >>> fields_of(Fail("a")), fields_of(1)
    ({'reason': 'a'}, None)
    """
    if dataclasses.is_dataclass(value):
        names: Sequence[str] = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, Struct):
        names = value.__struct_fields__
    elif hasattr(type(value), "model_fields"):
        names = list(type(value).model_fields)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType, reportAttributeAccessIssue]
    else:
        return None
    return {name: getattr(value, name) for name in names}


def _short(value: object) -> str:
    return str(value) if isinstance(value, timedelta) else shown(value, SHOWN_CHARACTERS)


def _label(decision: object) -> str:
    carried = _carried(decision)
    name = type(decision).__name__
    return name if fields_of(carried) is None else f"{name}({type(carried).__name__})"


def _carried(decision: object) -> object:
    """Return the message, result or state in a decision or event."""
    fields = fields_of(decision) or {}
    return next((fields[name] for name in ("message", "result", "state") if name in fields), None)


def _is_alike(expected: object, came: object) -> bool:
    return (
        type(expected) is type(came) and bool(fields_of(expected)) and type(_carried(expected)) is type(_carried(came))
    )


def _differences(expected: object, came: object, path: str) -> Iterator[tuple[str, object, object]]:
    """Yield the paths at which two values differ. The message in a decision is left out of the path."""
    left, right = fields_of(expected), fields_of(came)
    if type(expected) is type(came) and left and right:
        for name in left:
            if left[name] != right[name]:
                nested = bool(fields_of(left[name])) and name in ("message", "result") and not path
                yield from _differences(left[name], right[name], "" if nested else f"{path}.{name}" if path else name)
    elif isinstance(expected, dict) and isinstance(came, dict):
        yield from _differences_by_key(cast("dict[Any, Any]", expected), cast("dict[Any, Any]", came), path)
    elif isinstance(expected, list | tuple) and isinstance(came, list | tuple):
        one, other = cast("Sequence[Any]", expected), cast("Sequence[Any]", came)
        if type(one) is not type(other) or len(one) != len(other):
            yield path, expected, came
        else:
            yield from _differences_by_key(dict(enumerate(one)), dict(enumerate(other)), path)
    else:
        yield path, expected, came


def _differences_by_key(
    expected: dict[Any, Any], came: dict[Any, Any], path: str
) -> Iterator[tuple[str, object, object]]:
    for key in expected | came:
        left, right = expected.get(key, NOTHING), came.get(key, NOTHING)
        if left != right:
            yield from _differences(left, right, f"{path}[{key!r}]")


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = _Nothing()


def _aligned(
    expected: Sequence[T], came: Sequence[T], key: Callable[[T], Any]
) -> Iterator[tuple[Sequence[T], Sequence[T]]]:
    """Yield pairs: what is the same, what is alike, and what stands on one side only, in order."""
    left, right = 0, 0
    for same_left, same_right in [*_matches([*map(key, expected)], [*map(key, came)]), (len(expected), len(came))]:
        yield from _paired(expected[left:same_left], came[right:same_right])
        if same_left < len(expected):
            yield expected[same_left : same_left + 1], came[same_right : same_right + 1]
        left, right = same_left + 1, same_right + 1


def _paired(expected: Sequence[T], came: Sequence[T]) -> Iterator[tuple[Sequence[T], Sequence[T]]]:
    """Pair what differs only in its fields, without changing the order of what came."""
    place = 0
    for item in expected:
        alike = next((i for i in range(place, len(came)) if _is_alike(item, came[i])), None)
        if alike is None:
            yield [item], []
        else:
            yield [], came[place:alike]
            yield [item], [came[alike]]
            place = alike + 1
    yield [], came[place:]


def _matches(expected: Sequence[Any], came: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the pairs of places of a longest common subsequence. Only `==` is asked of the items, no hash."""
    if max(len(expected), len(came)) > ALIGNED_LINES:
        return [(i, i) for i, (left, right) in enumerate(zip(expected, came, strict=False)) if left == right]
    lengths = [[0] * (len(came) + 1) for _ in range(len(expected) + 1)]
    for i in reversed(range(len(expected))):
        for j in reversed(range(len(came))):
            same = expected[i] == came[j]
            lengths[i][j] = lengths[i + 1][j + 1] + 1 if same else max(lengths[i + 1][j], lengths[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(expected) and j < len(came):
        if expected[i] == came[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
