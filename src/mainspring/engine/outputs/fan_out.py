"""Fan-outs: an instance of its own for each, which starts the parts and counts their ends.

Its state is three numbers, whatever the number of parts: results stay in its stream until the last one has come. So a
step of it costs the same at the ten-thousandth part as at the first, and the parent is stepped once.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Never, Union, cast

from msgspec import Struct

from mainspring.codec import Codec
from mainspring.core.decisions import Complete, Decision, Decisions, Send, StartChild
from mainspring.core.events import ChildStarted, Event, Received, Sent
from mainspring.core.failures import ChildFailed, SendFailed
from mainspring.core.freezing import field_names
from mainspring.core.messages import Kind
from mainspring.core.workflow import Workflow
from mainspring.engine.recording.fan_out_parts import PartDone, Parts, restored
from mainspring.port.records import FAN_OUT, EventRow

PARTS_PER_STEP: Final = 1_000
"""Under the most outputs of one step."""


@dataclass(frozen=True)
class Counting:
    """How many parts there are, were started, and are done.

    >>> Counting(total=10_000, started=2_000, done=7)
    Counting(total=10000, started=2000, done=7)
    """

    total: int = 0
    started: int = 0
    done: int = 0


class _FanOut(Workflow[Parts | PartDone | SendFailed, Counting, Never]):
    name = FAN_OUT
    begins = Parts
    initial_state = Counting()

    def __init__(self, codec: Codec, is_child: Callable[[type[Any]], bool]) -> None:
        self._codec = codec
        self._is_child = is_child

    def route(self, message: Any, /) -> str | None:
        """Take nothing by itself: a fan-out begins under the id of the decision that asked for it."""
        return None

    def decide(self, message: Any, state: Counting, /) -> Decisions[Any, Any] | None:
        match message:
            case Parts(messages, total):
                if not total:
                    return [Complete()]
                return [self._start(part) for part in restored(self._codec, messages)]
            case PartDone() | SendFailed():
                return [Complete()] if state.done + 1 == state.total else []
            case _:
                return None

    def _start(self, part: Any) -> Decision[Any, Any]:
        return StartChild(part) if self._is_child(cast("type[Any]", type(part))) else Send(part)

    def evolve(self, state: Counting, event: Event[Any, Any], /) -> Counting | None:
        match event:
            case Received(Parts(_, total)):
                return Counting(total, state.started, state.done)
            case Received():
                return Counting(state.total, state.started, state.done + 1)
            case ChildStarted() | Sent():
                return Counting(state.total, state.started + 1, state.done)
            case _:
                return None


def fan_out_of(
    outputs: Iterable[type[Any]], codec: Codec, is_child: Callable[[type[Any]], bool]
) -> Workflow[Any, Any, Any]:
    """Return the workflow that fans out messages of these types: to children if `is_child` says so, else to handlers.

    >>> from mainspring.testing.samples import Count
    >>> fan_out_of([Count], Codec(), lambda _: True).name
    'mainspring.FanOut'
    """
    union: Any = Union[tuple(outputs)]  # noqa: UP007  made of a list
    inputs: Any = Parts | PartDone | SendFailed
    members = {name: value for name, value in vars(_FanOut).items() if name not in _OF_THE_CLASS}
    made = types.new_class("Join", (Workflow[inputs, Counting, union],), exec_body=lambda body: body.update(members))
    made.__module__ = __name__
    return cast("Any", made)(codec, is_child)


_OF_THE_CLASS: Final = frozenset(
    {"__orig_bases__", "__parameters__", "__dict__", "__weakref__", "__module__", "__doc__"}
)


def chunks(parts: Parts) -> list[Parts]:
    """Return parts in pieces that one step can start.

    >>> [len(chunk.messages) for chunk in chunks(Parts((("Square", 1, "{}"),) * 2_500, 2_500, "PartsDone", "squares"))]
    [1000, 1000, 500]
    """
    most = PARTS_PER_STEP
    starts = range(0, max(len(parts.messages), 1), most)
    return [Parts(parts.messages[at : at + most], parts.total, parts.into, parts.key) for at in starts]


class Joined(Struct, frozen=True):
    """What all parts of a fan-out came to, in the order of their messages.

    >>> Joined("PartsDone", "squares", (4, 9), ()).results
    (4, 9)
    """

    into: str
    key: str
    results: tuple[Any, ...]
    failures: tuple[ChildFailed, ...]

    def as_message(self, cls: type[Any]) -> Any:
        """Return it as a message of the author's type, or raise what is wrong with that."""
        named = {"key": self.key} if "key" in field_names(cls) else {}
        return cls(results=self.results, failures=self.failures, **named)


def joined(codec: Codec, rows: Sequence[EventRow]) -> Joined:
    """Return what a fan-out's stream says of its parts."""
    first = next(row for row in rows if row.event == "InitiatedBy")
    about: Parts = codec.decode(first.type or "", first.type_version, first.body or b"")
    starts = [row for row in rows if row.event in ("ChildStarted", "Sent")]
    part_at = {row.version: part for part, row in enumerate(starts)}
    ends: dict[int, PartDone] = {}
    for row in rows:
        if row.kind == Kind.RESULT and row.cause in part_at:
            said = codec.decode(row.type or "", row.type_version, row.body or b"")
            ends.setdefault(part_at[row.cause], _part_done(said))
    results: list[Any] = []
    failures: list[ChildFailed] = []
    for part in range(len(starts)):
        done = ends.get(part, _UNKNOWN)
        results.extend(restored(codec, done.results))
        if done.failure is not None:
            failures.append(ChildFailed(done.failure.child, done.failure.status, done.failure.error, part))
    return Joined(about.into, about.key, tuple(results), tuple(failures))


_UNKNOWN: Final = PartDone(failure=ChildFailed("", "failed", "its outcome is not in the stream"))


def _part_done(said: PartDone | SendFailed) -> PartDone:
    if isinstance(said, PartDone):
        return said
    return PartDone(failure=ChildFailed(said.type, "failed", said.error))
