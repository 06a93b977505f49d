"""What the units of a batch do, collected for the store to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.records import ARMED, DeadLetter, EventRow, InputRow, OutputRow, Remembered, Retry, Snapshot, Unit
from mainspring.port.roles.work import SOON_US
from mainspring.port.trims import trim_after
from mainspring.stores.commit.facts import Known, OutputFact, Spot

K = TypeVar("K", bound=Known)


class Born(Struct, gc=False):
    """A new output, or one that is retried before any worker has seen it."""

    instance: int
    version: int
    kind: str
    destination: str
    due_us: int
    priority: int
    key: str | None = None
    owner: int | None = None
    attempts: int = 0
    error: str | None = None


class Changes(Generic[K]):
    """What is to be written. What is taken away goes first: a timer cancelled and set anew in one step must stay.

    Settled outputs go before cancelled ones, and those to be retried behind them: what was released after all unclaimed
    outputs were cancelled must stay. `news` says that there is unclaimed work now.
    """

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us
        self.news = False
        self.begun: list[K] = []
        self.moved: list[K] = []
        self.renewed: list[K] = []
        self.events: list[EventRow] = []
        self.event_keys: list[int] = []
        """For each event its instance's key; a list of its own, so that there is no pair for each of them."""
        self.outputs: dict[Spot, Born] = {}
        self.settled: set[Spot] = set()
        self.retried: dict[Spot, tuple[int, int, str | None]] = {}
        """When each is due, after how many attempts, and the last error."""
        self.cancelled_keys: list[tuple[int, str]] = []
        self.cancelled: dict[str, list[int]] = {"timers": [], "unclaimed": [], "forward": []}
        self.fired: list[tuple[K, str | None]] = []
        """Timers to be cancelled that may have fired and wait: of these keys, or all."""
        self.consumed: list[tuple[K, int]] = []
        self.released: list[tuple[K, int, int]] = []
        """Instance, position and worker."""
        self.receivers: dict[Any, K] = {}
        self.dropped: list[tuple[int, InputRow, int | None]] = []
        """Inputs that were accepted and cancelled by the same batch. Their positions are never given to others."""
        self.discarded: list[int] = []
        self.handled: list[tuple[str, str, int]] = []
        self.dead_letters: list[tuple[DeadLetter, Born | OutputFact | None]] = []
        """Each with the output that it was."""
        self.results: dict[str, Remembered] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self.attributes: dict[int, tuple[AttributeRow, ...]] = {}
        self.trimmed: dict[int, tuple[int, int]] = {}
        """Last of all: it is what is left in the outbox and among the dead letters that counts."""
        self.attempts: list[Attempt] = []

    @property
    def cancels(self) -> bool:
        """Whether outputs are to be cancelled."""
        return bool(self.cancelled_keys) or any(self.cancelled.values())

    def record(self, key: int, row: OutputRow, owner: int | None) -> None:
        """Add an output."""
        due_us = self.now_us + row.after_us if row.at_us is None else row.at_us
        version = row.version
        self.outputs[key, version] = Born(key, version, row.kind, row.destination, due_us, row.priority, row.key, owner)
        if owner is None:
            self._tell(due_us)

    def trim(self, key: int, unit: Unit) -> None:
        """Remove what a unit leaves behind; several units of a batch together, from where the first one looks."""
        known = self.trimmed.get(key)
        after = trim_after(unit)
        self.trimmed[key] = after if known is None else min(after, known[0]), unit.expected_version or 0

    def settle(self, spot: Spot) -> Born | None:
        """Remove an output, and return it if it is so new that it is not in the store yet."""
        born = self.outputs.pop(spot, None)
        if born is None:
            self.settled.add(spot)
        return born

    def retry(self, retry: Retry) -> None:
        """Let an output be due later."""
        spot = (retry.output.instance, retry.output.version)
        due_us = retry.due_us(self.now_us)
        if born := self.outputs.get(spot):
            born.due_us, born.owner, born.attempts, born.error = due_us, None, retry.attempts, retry.error
        else:
            self.retried[spot] = (due_us, retry.attempts, retry.error)
        self._tell(due_us)

    def cancel(self, known: K, keys: Sequence[str], everything: str | None, facts: Mapping[Spot, OutputFact]) -> None:
        """Remove timers, or all unclaimed outputs, from the store and from what this batch has changed."""
        for version in range(known.since + 1, known.version + 1) if known.moved else ():
            born = self.outputs.get((known.key, version))
            if born is not None and _is_cancelled(born, born.owner, keys, everything):
                del self.outputs[known.key, version]
        for spot in [spot for spot in self.retried if spot[0] == known.key]:
            if _is_cancelled(facts[spot], None, keys, everything):
                del self.retried[spot]
                self.settled.add(spot)
        accepted = known.accepted or {}
        for message_id, (_, row, _) in list(accepted.items()):
            if row.timer_key is not None and (row.timer_key in keys or everything in ("timers", "forward")):
                self.dropped.append(accepted.pop(message_id))
        self.fired += [(known, key) for key in keys]
        if everything in ("timers", "forward"):
            self.fired.append((known, None))
        if known.key:
            self.cancelled_keys += [(known.key, key) for key in keys]
            if everything is not None:
                self.cancelled[everything].append(known.key)

    def consume(self, known: K, position: int) -> None:
        """Take an input away."""
        known.consumed = (*known.consumed, position)
        self.consumed.append((known, position))
        self.news = True  # the next input is free now

    def release(self, known: K, positions: Iterable[int], worker: int) -> None:
        """Release inputs."""
        known.released |= frozenset(positions)
        self.released += [(known, position, worker) for position in positions]
        self.news = True

    def accept(self, known: K, position: int, row: InputRow, owner: int | None) -> None:
        """Let an input wait."""
        if known.accepted is None:
            known.accepted = {}
        known.accepted[row.message_id] = (position, row, owner)
        self.receivers[known.name] = known
        if owner is None:
            self.news = True

    def handle(self, unit: Unit) -> None:
        """Remove dead letters of outputs whose failure a unit's step has taken."""
        self.handled += [(unit.workflow, unit.instance, version) for version in unit.handles]
        own = (unit.workflow, unit.instance)
        self.dead_letters = [
            (letter, output)
            for letter, output in self.dead_letters
            if (letter.workflow, letter.instance) != own
            or letter.output is None
            or letter.output.version not in unit.handles
        ]

    def _tell(self, due_us: int) -> None:
        if due_us - self.now_us < SOON_US:
            self.news = True


def _is_cancelled(row: Born | OutputFact, owner: int | None, keys: Sequence[str], everything: str | None) -> bool:
    if everything in ("timers", "forward") and row.kind == "timer":
        return True
    if everything == "forward" and owner is None and row.key == ARMED:
        return True
    if everything == "unclaimed" and owner is None:
        return True
    return row.key in keys
