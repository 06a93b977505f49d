"""What has changed in a decision or a state, in few words: the same words wherever the same has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from mainspring.core.difference import diff, fields_of, value_diff
from mainspring.core.events import StreamEvent
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.recording.redecision import row_of
from mainspring.errors import shown

SHOWN_CHARACTERS: Final = 400
FIELDS_NAMED: Final = 5

_CARRIED: Final = ("message", "result", "state")


def changes(recorder: Recorder, recorded: Sequence[Any], decided: Sequence[Any]) -> list[str]:
    """Return what is decided otherwise, by what both would be in the store; nothing if they would be the same.

    >>> from mainspring.codec import Codec
    >>> from mainspring.core.events import Completed, Failed
    >>> changes(Recorder(Codec(), Codec()), [Completed()], [Failed("late")])
    ['Completed is not decided any more', 'Failed is decided']
    """
    was = [(_stored(recorder, event), event) for event in recorded]
    now = [(_stored(recorder, event), event) for event in decided]
    if len(was) == len(now) and all(map(_is_same, was, now)):
        return []
    gone = list(was)
    new: list[Any] = []
    for each in now:
        same = next((i for i, other in enumerate(gone) if _is_same(other, each)), None)
        if same is None:
            new.append(each[1])
        else:
            del gone[same]
    return list(_told([event for _, event in gone], new)) or ["the same is decided in another order"]


def _is_same(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Tell whether two are stored alike, or equal: what was read is stored again without defaults that it had not."""
    return bool(one[0] == other[0] or one[1] == other[1])


def _told(gone: Sequence[Any], new: list[Any]) -> Iterator[str]:
    for event in gone:
        alike = next((i for i, other in enumerate(new) if label(other) == label(event)), None)
        if alike is None:
            yield f"{label(event)} is not decided any more"
        else:
            yield f"{label(event)} {_differs(event, new.pop(alike))}"
    yield from (f"{label(event)} is decided" for event in new)


def state_changes(recorder: Recorder, was: Any, now: Any) -> str | None:
    """Return how two states differ, by what both would be in the store; None if they do not.

    A record that was read is stored again without the defaults that it did not have, and is the same all the same.
    """
    if type(was) is not type(now):
        return f"was {type(was).__name__}"
    if recorder.snapshot(was, 0, "").body == recorder.snapshot(now, 0, "").body:
        return None
    if fields_of(was) and not list(_differing(was, now)):
        return None
    return _differs(was, now)


def decision_lines(recorded: Sequence[Any], decided: Sequence[Any]) -> list[str]:
    """Return both as the lines of a diff."""
    return diff(recorded, decided, text=lambda event: shown(event, SHOWN_CHARACTERS), verb="decided")


def state_lines(was: Any, now: Any) -> list[str]:
    """Return both as the lines of a diff."""
    return value_diff(was, now, "is")


def label(event: object) -> str:
    """Return an event without what it says, but for the type of its message.

    >>> from mainspring.core.events import Completed, Sent
    >>> from mainspring.testing.samples import Count
    >>> label(Sent(Count("c-1"))), label(Completed())
    ('Sent(Count)', 'Completed')
    """
    carried = _carried(event)
    name = type(event).__name__
    return name if carried is None else f"{name}({type(carried).__name__})"


def _differs(was: Any, now: Any) -> str:
    fields = list(_differing(was, now))
    named = ", ".join(fields[:FIELDS_NAMED])
    more = f" and {len(fields) - FIELDS_NAMED} more" if len(fields) > FIELDS_NAMED else ""
    return f"differs in {named}{more}" if named else "differs"


def _differing(was: Any, now: Any) -> Iterator[str]:
    """Yield the fields in which two records of one type differ; those of what they carry, too."""
    left, right = fields_of(was) or {}, fields_of(now) or {}
    for name, value in left.items():
        other = right.get(name)
        if value != other:
            nested = name in _CARRIED and type(value) is type(other) and bool(fields_of(value))
            yield from _differing(value, other) if nested else (name,)


def _carried(event: object) -> object:
    """Return the message, result or state in an event, if it is a record."""
    fields = fields_of(event) or {}
    carried = next((fields[name] for name in _CARRIED if name in fields), None)
    return None if fields_of(carried) is None else carried


def _stored(recorder: Recorder, event: StreamEvent[Any, Any]) -> tuple[Any, ...]:
    row = row_of(recorder, event)
    return (row.event, row.type, row.type_version, row.body, row.detail)
