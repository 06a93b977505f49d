"""What a worker holds back, and why: kept with its heartbeat, to explain why something makes no progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, json

from mainspring.engine.handlers.hung_calls import Hung
from mainspring.engine.handlers.runner import Runner
from mainspring.engine.handlers.runners import Runners
from mainspring.engine.handlers.threads import Threads
from mainspring.errors.reading import UNREADABLE
from mainspring.port.records import Ref

MOST_TOLD: Final = 50
"""So many of a kind are reported: the text is written with a heartbeat."""


class OpenBreaker(Struct, frozen=True, omit_defaults=True):
    """A destination that does not answer. `waiting` commands are in this worker's hands; others may wait in the store.

    The error is given by its type alone: what it says may be secret.
    """

    destination: str
    since_us: int
    failures: int
    error: str
    probe_us: int
    waiting: int = 0
    fails_fast: bool = False
    """Whether commands fail at once instead of waiting; compensations wait."""


class HungCalls(Struct, frozen=True, omit_defaults=True):
    """Calls of a plain function that were given up and still run. `held`: there are too many, and it is called no more.

    A subscriber has no destination of its own, and is given by its name.
    """

    destination: str
    since_us: int
    count: int
    held: bool = False
    waiting: int = 0


class TakenThreads(Struct, frozen=True, omit_defaults=True):
    """The threads for plain functions, where none has become free for long: how many calls wait, and who has them."""

    since_us: int
    waiting: int
    holders: dict[str, int] = {}


class Left(Struct, frozen=True):
    """An instance that waits for a worker that can read it, and what this one does not know of it."""

    workflow: str
    id: str
    why: str


class Standing(Struct, frozen=True, omit_defaults=True):
    """All that a worker holds back. A key that is not known here is one of a newer release.

    >>> written(Standing()), read("")
    ('', Standing(breakers=(), hung=(), left=(), alone=False, threads=None, projections={}))
    """

    breakers: tuple[OpenBreaker, ...] = ()
    hung: tuple[HungCalls, ...] = ()
    left: tuple[Left, ...] = ()
    alone: bool = False
    """Whether it claims nothing, to try by itself what was lost with others."""
    threads: TakenThreads | None = None
    projections: dict[str, str] = {}
    """What only newer code can read, by the projections that wait for a worker of that."""


def standing_of(
    runners: Runners, hung: Hung, left: Mapping[Ref, str], projections: Mapping[str, str], *, alone: bool = False
) -> Standing:
    """Return what a worker holds back now: by its runners and their destinations, and what it leaves to others."""
    # Sorted, so that workers that each report only some report the same.
    told = (Left(ref.workflow, ref.id, left[ref]) for ref in sorted(left, key=str)[:MOST_TOLD])
    return Standing(
        tuple(_breakers(runners.by_queue))[:MOST_TOLD],
        tuple(_hung(runners.by_queue, hung))[:MOST_TOLD],
        tuple(told),
        alone,
        _taken(runners.threads_taken),
        dict(list(projections.items())[:MOST_TOLD]),
    )


def _taken(threads: Threads | None) -> TakenThreads | None:
    if threads is None or threads.taken_since_us is None:
        return None
    return TakenThreads(threads.taken_since_us, threads.waiting, dict(list(threads.holders().items())[:MOST_TOLD]))


def _breakers(runners: Mapping[str, Runner]) -> Iterable[OpenBreaker]:
    for destination, runner in sorted(runners.items()):
        gate = runner.gate
        if gate.is_open:
            yield OpenBreaker(
                destination,
                gate.opened_us,
                gate.state.failures,
                gate.error,
                gate.probe_us,
                runner.waiting,
                gate.fails_fast,
            )


def _hung(runners: Mapping[str, Runner], hung: Hung) -> Iterable[HungCalls]:
    for name in hung.names():
        found = [(destination, runner) for destination, runner in runners.items() if runner.handler.name == name]
        what = hung.since_us(name), hung.count(name), hung.holds_back(name)
        for destination, runner in sorted(found, key=lambda each: each[0]):
            yield HungCalls(destination, *what, runner.waiting)
        if not found:
            yield HungCalls(name, *what)


def written(standing: Standing) -> str:
    """Return it as it is kept: nothing, where nothing is held back."""
    return "" if standing == Standing() else json.encode(standing).decode()


def read(text: str) -> Standing:
    """Return what was kept. What cannot be read is of another release's format: it holds nothing back here."""
    try:
        return json.decode(text, type=Standing) if text else Standing()
    except UNREADABLE:
        return Standing()
