"""The chronicle: all that happened in a simulation, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from msgspec import Struct

from mainspring.core.story import duration, tell
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import Registry
from mainspring.port.records import Committed, DeadLetter, EventRow, Outcome, Ref, Retry, Unit


class Call(Struct, frozen=True):
    """One attempt of a handler, and how it ended: `outcome` is what it returned or raised."""

    message: Any
    attempt: int
    handler: str
    instance: str
    outcome: Any


class _Recorded(Struct, frozen=True):
    ref: Ref
    row: EventRow


_Happening: TypeAlias = Call | _Recorded | Retry | DeadLetter


class Chronicle:
    """Records what is committed and which handlers are called, and renders it as text."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._happened: list[tuple[int, _Happening]] = []

    @property
    def length(self) -> int:
        """How much has happened."""
        return len(self._happened)

    def call(self, now_us: int, call: Call) -> None:
        """Record a call that has ended."""
        self._happened.append((now_us, call))

    def commit(self, now_us: int, units: Sequence[Unit], outcomes: Sequence[Outcome]) -> None:
        """Record what was committed."""
        for unit, outcome in zip(units, outcomes, strict=True):
            if isinstance(outcome, Committed):
                ref = Ref(unit.workflow, unit.instance)
                parts = (*(_Recorded(ref, row) for row in unit.events), *unit.retries, *unit.dead_letters)
                self._happened.extend((now_us, part) for part in parts)

    def calls(self, cls: type[Any]) -> Iterator[Call]:
        """Return the calls with messages of a type."""
        for _, what in self._happened:
            if isinstance(what, Call) and isinstance(what.message, cls):
                yield what

    def told(self, since: int = 0) -> str:
        """Return what happened since then, under the moments at which it did."""
        return "\n".join(self._lines(self._happened[since:], self._happened[since - 1][0] if since else None))

    def _lines(self, happened: Iterable[tuple[int, _Happening]], last_us: int | None) -> Iterator[str]:
        for now_us, what in happened:
            if now_us != last_us:
                later = "" if last_us is None else f"  ({duration(timedelta(microseconds=now_us - last_us))} later)"
                yield f"{_clock(moment(now_us))}{later}"
                last_us = now_us
            yield f"  {self._line(what)}"

    def _line(self, what: _Happening) -> str:
        match what:
            case Call(message, attempt, handler, _, outcome):
                again = f" (attempt {attempt})" if attempt > 1 else ""
                verb = "raised" if isinstance(outcome, BaseException) else "returned"
                return f"{handler}({message!r}){again} {verb} {outcome!r}"
            case Retry(_, attempts, delay_us, error, _):
                return f"attempt {attempts + 1} in {duration(timedelta(microseconds=delay_us))}, because of {error}"
            case DeadLetter():
                because = f": {what.error}" if what.error else ""
                return f"{what.type} for {what.workflow}/{what.instance} is a dead letter, {what.reason}{because}"
            case _Recorded(ref, row):
                told = tell([self._registry.workflows[ref.workflow].recorder.entry(ref, row)])[0]
                return " ".join(f"{ref}: {told.event} {told.message}".split())


def _clock(time: datetime) -> str:
    return time.isoformat(" ", "milliseconds" if time.microsecond else "seconds").removesuffix("+00:00")
