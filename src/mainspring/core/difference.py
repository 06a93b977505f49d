"""Differences between what was expected and what came, as short as people want to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from mainspring.core.changes import Change, aligned, changes, fields_of
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
    RefuseAnswer,
    Reply,
    Schedule,
    Send,
    StartChild,
)
from mainspring.errors import shown

T = TypeVar("T")

SHOWN_CHARACTERS: Final = 400
SHOWN_FIELDS: Final = 8


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
        case Fail(reason) | RefuseAnswer(reason):
            return f"{name}({_short(reason)})"
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
    found = list(_differences(expected, came))
    parts = [f"{c.path}: expected {_short(c.before)}, {verb} {_short(c.after)}" for c in found[:SHOWN_FIELDS]]
    if len(found) > SHOWN_FIELDS:
        parts.append(f"and {len(found) - SHOWN_FIELDS} more")
    return "; ".join(parts)


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


def _differences(expected: object, came: object) -> Iterator[Change]:
    """Yield the places in which two records differ. The message in a decision or event is left out of the path."""
    left, right = fields_of(expected), fields_of(came)
    if type(expected) is not type(came) or not left or not right:
        yield from changes(expected, came)
        return
    for name in left:
        carried = name in ("message", "result") and bool(fields_of(left[name]))
        yield from changes(left[name], right[name], "" if carried else name)


def _aligned(
    expected: Sequence[T], came: Sequence[T], key: Callable[[T], Any]
) -> Iterator[tuple[Sequence[T], Sequence[T]]]:
    """Yield pairs: what is the same, what is alike, and what stands on one side only, in order."""
    left, right = 0, 0
    for same_left, same_right in [*aligned([*map(key, expected)], [*map(key, came)]), (len(expected), len(came))]:
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
