"""The journal: the state of a flow. It is what the stream says, kept so that the code can be run again on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from mainspring.core.events import Asked, Became, InitiatedBy, Occurrence, TaskClosed

Entry = Occurrence[Any]


class Log:
    """Entries that are only ever appended, and the run that has got as far as they go: what a branch shares."""

    __slots__ = ("__weakref__", "entries", "live")

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries: list[Entry] = list(entries)
        self.live: Any = None


@dataclass(frozen=True, eq=False)
class Journal:
    """What has happened in a flow so far; its class is the stage that it has reached.

    One entry more costs the same however many there are: they are shared with the journal before it. Where two go on
    from the same one, the second gets entries of its own.

    >>> Journal().recorded
    0
    """

    recorded: int = 0
    """How many entries it has."""

    @property
    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        return [] if (log := log_of(self)) is None else log.entries[: self.recorded]

    @property
    def argument(self) -> Any:
        """What the code began with; None before it has begun."""
        entries = [] if (log := log_of(self)) is None else log.entries
        for place in range(self.recorded):
            event: Any = entries[place].event
            kind = cast("type[Any]", type(event))
            if kind is InitiatedBy:
                return event.message
            if kind is Became:
                return event.state.argument
        return None

    def appended(self, entry: Entry) -> Self:
        """Return the journal with one entry more."""
        log, length = log_of(self), self.recorded
        if log is None:
            log = Log()
        elif len(log.entries) > length:
            log = Log(log.entries[:length])
        log.entries.append(entry)
        return _of(type(self), log, length + 1)

    def asked_at(self, entry: Entry) -> int | None:
        """Return where a task was asked that a reset has asked anew; None for one that the code asks."""
        entries = self.entries if self.recorded and entry.position - self._last > 1 else []
        for place in range(len(entries) - 1, -1, -1):
            event = entries[place].event
            if isinstance(event, Asked | TaskClosed) and event.key == entry.event.key:
                return place if isinstance(event, Asked) else None
        return None

    @property
    def _last(self) -> int:
        return 0 if (log := log_of(self)) is None else log.entries[self.recorded - 1].position

    def replaced(self, place: int, entry: Entry) -> Self:
        """Return the journal with another entry in a place."""
        entries = self.entries
        entries[place] = entry
        return _of(type(self), Log(entries), self.recorded)

    def at_stage(self, stage: type[Journal]) -> Journal:
        """Return it at another stage."""
        return self if type(self) is stage else _of(stage, log_of(self), self.recorded)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.entries == other.entries

    def __hash__(self) -> int:
        return self.recorded

    def __deepcopy__(self, _: Any) -> Self:
        return self  # nothing of it changes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.recorded} recorded)"


def log_of(journal: Journal) -> Log | None:
    """Return the entries of a journal, and perhaps more behind them; None where there are none.

    >>> log_of(Journal()) is None
    True
    """
    return vars(journal).get("_log")  # no field of any kind: it is not stored


def _of(cls: Any, log: Log | None, length: int) -> Any:
    made: Any = object.__new__(cls)
    made.__dict__.update(recorded=length, _log=log)
    return made
