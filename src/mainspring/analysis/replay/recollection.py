"""What a stream remembers of the world outside: what came when, and what was answered to each output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mainspring.core.events import (
    AnswerRefused,
    Asked,
    ChildStarted,
    Compensated,
    FannedOut,
    Kept,
    Published,
    Received,
    Replied,
    Scheduled,
    Sent,
    StreamEvent,
)
from mainspring.core.messages import Envelope
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.recording.redecision import row_of
from mainspring.engine.recording.walk import Envelopes
from mainspring.port.records import EventRow, Ref

ANSWERABLE: Final = (Sent, ChildStarted, FannedOut, Asked)
"""Outputs to which an answer is to be expected."""
OUTPUTS: Final = (*ANSWERABLE, Published, Replied, Scheduled)

Key: TypeAlias = tuple[str, str | None, bytes | None]


class Heard(Struct, frozen=True):
    """An input that came, when, and at which version it was recorded.

    `cause` is the version of the output that it answers, None if nobody asked for it. `undone` says that it is the
    outcome of a compensation, and no input to be decided on; `kept` that it came too late to be decided on.
    """

    version: int
    time_us: int
    envelope: Envelope[Any]
    cause: int | None
    undone: bool = False
    kept: bool = False


class Recollection:
    """The inputs of a stream, and which of them followed from which output."""

    def __init__(self, recorder: Recorder, ref: Ref, rows: Sequence[EventRow]) -> None:
        self._recorder = recorder
        self._ref = ref
        self.heard: list[Heard] = []
        self.times_us: dict[int, int] = {}
        self._answers: dict[int, list[Heard]] = {}
        self._outputs: dict[Key, list[int]] = {}
        self._used: dict[Key, int] = {}
        now_us = 0
        self._envelopes = Envelopes(ref)
        for row in rows:
            self._envelopes.note(row)
            now_us = max(now_us, row.time_us)  # a clock that was set back must not change the order
            self.times_us[row.version] = now_us
            self._take(row, recorder.event(row), now_us)

    @property
    def correlation_id(self) -> str:
        """The id that all messages of the instance have in common, empty if it has heard of nothing."""
        return self.heard[0].envelope.correlation_id if self.heard else ""

    def answers_to(self, event: StreamEvent[Any, Any]) -> Iterator[tuple[int, Heard]] | None:
        """Return what was answered to such an output, each with the microseconds after it; None if there was none such.

        Of several like it, the first is answered like the first, the next like the next, and more like the last.
        """
        key = self.key(event)
        versions = self._outputs.get(key)
        if not versions:
            return None
        used = self._used.get(key, 0)
        self._used[key] = used + 1
        version = versions[min(used, len(versions) - 1)]
        return ((heard.time_us - self.times_us[version], heard) for heard in self._answers.get(version, ()))

    def key(self, event: StreamEvent[Any, Any]) -> Key:
        """Return what makes two outputs the same: the kind, the type and the message; the key of a task or timer."""
        if isinstance(event, Asked):
            return "Asked", event.key, None
        row = row_of(self._recorder, event)
        name = f"{row.event} {event.key}" if isinstance(event, Scheduled) else row.event
        return name, row.type, row.body

    def forget_before(self, version: int) -> None:
        """Leave the outputs before a version to what was recorded of them."""
        for key, versions in self._outputs.items():
            self._used[key] = sum(known < version for known in versions)

    def _take(self, row: EventRow, event: StreamEvent[Any, Any], now_us: int) -> None:
        if isinstance(event, OUTPUTS):
            self._outputs.setdefault(self.key(event), []).append(row.version)
        elif isinstance(event, Received | AnswerRefused | Kept | Compensated):
            undone = isinstance(event, Compensated)
            message = event.result if isinstance(event, Compensated) else event.message
            envelope = self._envelopes.of(row, message)
            heard = Heard(
                row.version, now_us, envelope, row.cause or self._cause(envelope), undone, isinstance(event, Kept)
            )
            self.heard.append(heard)
            if heard.cause is not None:
                self._answers.setdefault(heard.cause, []).append(heard)

    def _cause(self, envelope: Envelope[Any]) -> int | None:
        """Return the output that an answer to a task or another instance's reply follows from, by their ids."""
        for id in (envelope.id.removesuffix("/answer"), envelope.causation_id or ""):
            version = id.removeprefix(f"{self._ref}/")
            if version != id and version.isascii() and version.isdigit() and int(version) in self.times_us:
                return int(version)
        return None
