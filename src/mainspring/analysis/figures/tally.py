"""Counts and times of one workflow, taken run by run. A run is a life of an instance, from its beginning to its end.

Nothing here grows with the number of events: durations go into samples, paths and lists of what waits have a bound.
Variants are the paths that instances took, by how often each was taken.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from heapq import heappush, heappushpop
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mainspring.analysis.figures.samples import Sample
from mainspring.analysis.figures.timeline import Timeline
from mainspring.core.failures import SendFailed
from mainspring.core.messages import type_of

PATHS_KEPT: Final = 10_000
PATH_STEPS: Final = 100

Step: TypeAlias = tuple[str, str]
"""The type of an input, and the state that it led to."""
Path: TypeAlias = tuple[Step, ...]

CUT: Final[Step] = ("…", "…")
"""Stands at the end of a path of more than PATH_STEPS steps: those that begin alike count as one."""


class Variant(Struct, frozen=True):
    """A path, how many took it, and their share. Steps that follow themselves count once."""

    steps: Path
    count: int
    share: float


class VariantsFound(Struct, frozen=True):
    """The most frequent paths, and the rest: how many took another one, and how many other paths that were.

    Where more than PATHS_KEPT were seen, rare ones were forgotten on the way: then `distinct` is at least so many, and
    a count may be too low by `uncertain` at most.
    """

    top: tuple[Variant, ...]
    distinct: int
    others: int
    uncertain: int


class Variants:
    """Counts paths.

    >>> variants = Variants()
    >>> variants.add([("PlaceOrder", "Waiting"), ("CardCharged", "Paid")])
    >>> variants.most(5).top[0].share
    1.0
    """

    __slots__ = ("_distinct", "_paths", "_seen", "_steps", "_uncertain")

    def __init__(self) -> None:
        self._paths: Counter[Path] = Counter()
        # Steps are few and paths are many: each path points to steps that others have, too.
        self._steps: dict[Step, Step] = {}
        self._seen = self._distinct = self._uncertain = 0

    def add(self, path: list[Step]) -> None:
        """Count a path once more."""
        self._seen += 1
        self._count(tuple(path), 1)

    def merge(self, other: Variants) -> None:
        """Take the counts of another."""
        self._seen += other._seen
        self._distinct = max(self._distinct, other._distinct)
        self._uncertain += other._uncertain
        for path, count in other._paths.items():
            self._count(path, count)

    def most(self, limit: int) -> VariantsFound:
        """Return the most frequent ones; of those as frequent, the first in the order of the alphabet."""
        ranked = sorted(self._paths.items(), key=lambda item: (-item[1], item[0]))[:limit]
        top = tuple(Variant(path, count, count / self._seen) for path, count in ranked)
        shown = sum(variant.count for variant in top)
        distinct = max(self._distinct, len(self._paths))
        return VariantsFound(top, distinct, self._seen - shown, self._uncertain)

    def _count(self, path: Path, times: int) -> None:
        if path not in self._paths:
            path = tuple(self._steps.setdefault(step, step) for step in path)
            if len(self._paths) >= 2 * PATHS_KEPT:
                self._forget()
        self._paths[path] += times

    def _forget(self) -> None:
        """Forget the rarer half. A path that comes again begins at one: it may lack what was forgotten of it."""
        ranked = self._paths.most_common()
        self._distinct = max(self._distinct, len(ranked) + 1)
        self._paths = Counter(dict(ranked[:PATHS_KEPT]))
        # A path that is forgotten again and again loses at most this each time.
        self._uncertain += ranked[PATHS_KEPT][1]


NOT_KEPT: Final = "(not kept)"
"""Stands for the type of a message of which only the identity is kept, and for the state before the first."""
SENDS_KEPT: Final = 10_000
MOVES_KEPT: Final = 1_000
LONGEST_KEPT: Final = 1_000
"""Of each state, and of those that are overdue or suspended: as many as may be asked for."""

_COUNTS: Final = (
    *("events", "bytes", "begun", "faults", "suspensions", "resets", "incomplete"),
    *("overdue_count", "suspended_count"),
)
_COUNTERS: Final = ("statuses", "entered_again", "steps", "timers_set", "timers_fired", "timers_over")
SEND_FAILED: Final = type_of(SendFailed).name


class Wait(Struct, frozen=True, order=True, gc=False):
    """An instance that has not ended: in which state, since when it is there, and since when it runs.

    `age_us` is the one of both by which it is compared.
    """

    age_us: int
    key: int
    id: str
    state: str
    entered_us: int
    began_us: int
    status: str


class Waits:
    """Those of many that wait longest.

    >>> waits = Waits()
    >>> waits.longest()
    []
    """

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[Wait] = []

    def add(self, wait: Wait) -> None:
        """Take one more, and let go of the newest if they are too many."""
        if len(self._heap) < LONGEST_KEPT:
            heappush(self._heap, wait)
        else:
            heappushpop(self._heap, wait)

    def merge(self, other: Waits) -> None:
        """Take those of another."""
        for wait in other._heap:
            self.add(wait)

    def longest(self) -> list[Wait]:
        """Return them, those that wait longest first."""
        return sorted(self._heap, reverse=True)


class CommandTally:
    """What became of the commands of one type."""

    __slots__ = ("again", "answered", "attempts", "calls", "failed", "handling", "retried", "sent", "until_answer")

    def __init__(self) -> None:
        self.sent = self.answered = self.failed = self.calls = self.attempts = self.retried = self.again = 0
        self.handling = Sample()
        self.until_answer = Sample()

    def answer(self, type: str | None, attempt: int | None, duration_us: int | None, took_us: int) -> None:
        """Count an answer. Only a handler's says how many attempts it took, and how long the last one did."""
        self.answered += 1
        self.until_answer.values.append(took_us)
        if type == SEND_FAILED:
            self.failed += 1
        if attempt is not None:
            self.calls += 1
            self.attempts += attempt
            if attempt > 1:
                self.retried += 1
        if duration_us is not None:
            self.handling.values.append(duration_us)

    def merge(self, other: CommandTally) -> None:
        """Take what another has counted."""
        for name in ("sent", "answered", "failed", "calls", "attempts", "retried", "again"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.handling.merge(other.handling)
        self.until_answer.merge(other.until_answer)

    def settle(self) -> None:
        """Let its samples stay small."""
        self.handling.settle()
        self.until_answer.settle()


class WorkflowTally:
    """All that is counted of one workflow."""

    def __init__(self) -> None:
        self.events = self.bytes = self.begun = self.faults = self.suspensions = self.resets = self.incomplete = 0
        self.statuses: Counter[str] = Counter()
        self.timeline = Timeline()
        self.durations: defaultdict[str, Sample] = defaultdict(Sample)
        self.dwell: defaultdict[str, Sample] = defaultdict(Sample)
        self.commands: defaultdict[str, CommandTally] = defaultdict(CommandTally)
        self.entered_again: Counter[str] = Counter()
        # In which state, which input led to which: None is the state before the first.
        self.steps: Counter[tuple[str | None, str, str]] = Counter()
        # Timers by their type; `over` are those that had not fired when their instance ended.
        self.timers_set: Counter[str] = Counter()
        self.timers_fired: Counter[str] = Counter()
        self.timers_over: Counter[str] = Counter()
        self.variants = Variants()
        # All that have not ended, by state; those of them that are neither suspended nor overdue once more, so that
        # none is found twice.
        self.waiting: defaultdict[str, Sample] = defaultdict(Sample)
        self.in_time: defaultdict[str, Sample] = defaultdict(Sample)
        self.waits: defaultdict[str, Waits] = defaultdict(Waits)
        self.overdue = Waits()
        self.suspended = Waits()
        self.overdue_count = self.suspended_count = 0

    def wait(self, wait: Wait, overdue_us: int | None) -> None:
        """Take an instance that has not ended; `overdue_us` is how long it runs, if that is longer than expected."""
        self.waiting[wait.state].values.append(wait.age_us)
        if wait.status == "suspended":
            self.suspended_count += 1
            self.suspended.add(wait)
        elif overdue_us is not None:
            self.overdue_count += 1
            self.overdue.add(replace(wait, age_us=overdue_us))
        else:
            self.in_time[wait.state].values.append(wait.age_us)
            self.waits[wait.state].add(wait)

    def merge(self, other: WorkflowTally) -> None:
        """Take what another has counted of other instances."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for mine, theirs in (
            (self.durations, other.durations),
            (self.dwell, other.dwell),
            (self.waiting, other.waiting),
            (self.in_time, other.in_time),
            (self.commands, other.commands),
            (self.waits, other.waits),
        ):
            for name, part in theirs.items():
                mine[name].merge(part)  # pyright: ignore[reportArgumentType]  each with its own kind
        self.timeline.merge(other.timeline)
        self.variants.merge(other.variants)
        self.overdue.merge(other.overdue)
        self.suspended.merge(other.suspended)

    def settle(self) -> None:
        """Let the samples stay small."""
        for samples in (self.durations, self.dwell, self.waiting, self.in_time):
            for sample in samples.values():
                sample.settle()
        for command in self.commands.values():
            command.settle()


class Run:
    """A life of an instance as far as it was read."""

    __slots__ = (
        "began_us",
        "ended",
        "entered_at",
        "entered_us",
        "events",
        "held",
        "instance",
        "moves",
        "path",
        "sent",
        "size",
        "state",
        "step",
        "taken_at",
        "tally",
        "timers",
        "types",
        "undone_at",
        "version",
        "visited",
        "whole",
    )

    def __init__(self, tally: WorkflowTally, instance: int, began_us: int) -> None:
        self.tally = tally
        self.instance = instance
        self.began_us = began_us
        self.state: str | None = None
        self.entered_us = began_us
        self.entered_at = self.taken_at = self.undone_at = self.version = 0
        self.events = self.size = 0
        self.step: Step | None = None
        self.path: list[Step] = []
        self.moves: list[tuple[int, str]] = []
        self.visited: set[str] = set()
        self.types: set[str] = set()
        self.sent: dict[int, tuple[CommandTally, int]] = {}
        self.timers: dict[int, str] = {}
        self.ended = self.held = False
        self.whole = True

    def take(self, version: int, type: str | None, state: str, time_us: int, counted: bool) -> None:
        """Take an input: the state may be another one from now on."""
        # One whose state is not known, as behind a reset, took no step that could be named.
        if counted and self.whole and (self.state is not None or not self.visited):
            self.tally.steps[self.state, type or NOT_KEPT, state] += 1
        self._take(version, type, state, time_us, counted)

    def _take(self, version: int, type: str | None, state: str, time_us: int, counted: bool) -> None:
        step = (type or NOT_KEPT, state)
        if step != self.step:
            self.step = step
            if len(self.path) < PATH_STEPS:
                self.path.append(step)
            elif self.path[-1] is not CUT:
                self.path.append(CUT)
        self.taken_at = version
        if state != self.state:
            self._enter(version, state, time_us, counted)

    def undo(self, version: int, type: str | None, time_us: int, counted: bool) -> None:
        """Take a compensation. It names no state, as it is no input of the author's: the instance stays where it is."""
        if self.state is not None:
            self._take(version, type, self.state, time_us, counted)
            self.undone_at = version

    def _enter(self, version: int, state: str, time_us: int, counted: bool) -> None:
        left = self.state
        if counted and self.whole:
            if left is not None:
                self.tally.dwell[left].values.append(time_us - self.entered_us)
            if state in self.visited:
                self.tally.entered_again[state] += 1
        self.visited.add(state)
        self.state, self.entered_us, self.entered_at = state, time_us, version
        self.moves.append((version, state))
        if len(self.moves) > MOVES_KEPT:
            del self.moves[: MOVES_KEPT // 2]

    def send(self, version: int, type: str | None, time_us: int, counted: bool) -> None:
        """Note a command, for its answer says only which version it answers."""
        name = type or NOT_KEPT
        command = self.tally.commands[name]
        self.sent[version] = (command, time_us)
        if len(self.sent) > SENDS_KEPT:
            del self.sent[next(iter(self.sent))]
        if counted:
            command.sent += 1
            command.again += name in self.types
        self.types.add(name)

    def schedule(self, version: int, type: str | None, counted: bool) -> None:
        """Note a timer: when it fires, it says only which version set it."""
        if counted:
            self.timers[version] = type or NOT_KEPT
            self.tally.timers_set[type or NOT_KEPT] += 1
        if len(self.timers) > SENDS_KEPT:
            del self.timers[next(iter(self.timers))]

    def answer(
        self, cause: int, type: str | None, time_us: int, attempt: int | None, duration_us: int | None, counted: bool
    ) -> None:
        """Take the answer to a command; one that was not read, or was answered before, does not count."""
        timer = self.timers.pop(cause, None)
        if timer is not None and counted:
            self.tally.timers_fired[timer] += 1
        command, sent_us = self.sent.pop(cause, (None, 0))
        if command is not None and counted:
            command.answer(type, attempt, duration_us, time_us - sent_us)

    def end(self, status: str, time_us: int, counted: bool) -> None:
        """Take its end. A state that the last input led to was not waited in, unless it was ended from outside."""
        self.ended = True
        timers, self.timers = self.timers, {}
        if not counted:
            return
        tally = self.tally
        tally.timers_over.update(timers.values())
        tally.timeline.add(time_us, status)
        tally.durations[status].values.append(time_us - self.began_us)
        if not self.whole:
            return
        if status == "failed" and self.undone_at == self.taken_at:
            self.held = True
        else:
            tally.variants.add(self.path)
        waited = status in ("cancelled", "terminated") or self.entered_at < self.taken_at
        if self.state is not None and waited:
            tally.dwell[self.state].values.append(time_us - self.entered_us)

    def tell_path(self, state: str | None) -> None:
        """Count the path of one that failed behind its compensations, into the state that its row names, if it does."""
        if not self.held:
            return
        self.held = False
        if state is not None and self.path[-1] is not CUT:
            self.path[-1] = (self.path[-1][0], state)
        self.tally.variants.add(self.path)

    def lose_sight(self, time_us: int, counted: bool) -> None:
        """Take what an operator's cancelling undoes: no row names the state that it leads to."""
        if self.state is not None and counted and self.whole:
            self.tally.dwell[self.state].values.append(time_us - self.entered_us)
        self.state, self.entered_us = None, time_us

    def go_back(self, to: int | None, version: int, time_us: int, counted: bool) -> None:
        """Take a reset: the state is again what it was, where that is still known."""
        self.tell_path(None)
        # What was set behind that is undone; where to is not known, so what is left is not either.
        self.timers = {at: type for at, type in self.timers.items() if to is not None and at <= to}
        while self.moves and (to is None or self.moves[-1][0] > to):
            self.moves.pop()
        before = self.moves[-1][1] if self.moves else None
        if counted:
            self.tally.resets += 1
            if self.state is not None and self.whole and not self.ended:
                self.tally.dwell[self.state].values.append(time_us - self.entered_us)
            if before is not None:
                self.tally.entered_again[before] += 1
        self.state, self.entered_us, self.entered_at, self.ended = before, time_us, version, False
