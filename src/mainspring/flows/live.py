"""Runs that wait, kept so that the next input only has to continue them: a cache, and nothing but a cache.

What is dropped is torn down on purpose, in its own loop and with everything refused: left to the collection of garbage,
its `finally` blocks would run at any time and in any thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Final
from weakref import ref

from mainspring.flows.journal import Journal, Log, log_of
from mainspring.flows.run import Run

LIVE_FLOWS: Final = 2_000
"""How many a process keeps at most; of the others the code is run again from the journal when an input comes."""


class Live:
    """A run, and how many entries of its journal it has seen. Torn down when its journal is let go."""

    __slots__ = ("__weakref__", "runs", "seen")

    def __init__(self, run: Run, seen: int) -> None:
        self.runs = [run]
        self.seen = seen

    def take(self) -> Run | None:
        """Take the run out. Of several threads one gets it: what is popped from a list is popped once."""
        try:
            return self.runs.pop()
        except IndexError:
            return None

    def close(self) -> None:
        """Tear the run down."""
        run = self.take()
        if run is not None:
            run.close()

    def __del__(self) -> None:
        _kept.pop(id(self), None)
        self.close()


_kept: OrderedDict[int, ref[Live]] = OrderedDict()
_evicting = threading.Lock()
_begun = threading.local()


def kept() -> int:
    """Return how many runs are kept."""
    return len(_kept)


def taken(journal: Journal, function: Any) -> Run | None:
    """Take the run of a function that has seen just this journal, if there is one; whoever takes it puts it back."""
    log = log_of(journal)
    live: Live | None = None if log is None else log.live
    if log is None or live is None or live.seen > journal.recorded:
        return None
    run = live.take()
    if run is None:
        return None
    log.live = None
    _kept.pop(id(live), None)
    try:
        fits = run.flow.function is function and run.catch_up(log.entries[live.seen : journal.recorded])
    except BaseException:
        run.close()
        raise
    if not fits:
        run.close()
        return None
    return run


def put_back(log: Log, run: Run, seen: int) -> None:
    """Keep a run with its journal; the one that was not needed for the longest time goes, if there are too many."""
    live, before = Live(run, seen), log.live
    log.live = live
    if before is not None:
        before.close()
    _kept[id(live)] = ref(live)
    while len(_kept) > LIVE_FLOWS:
        with _evicting:
            oldest = _kept.popitem(last=False)[1]() if len(_kept) > LIVE_FLOWS else None
        if oldest is not None:
            oldest.close()


def begun(by: Any, run: Run) -> None:
    """Keep a run that has begun until its journal begins, by the message that began it. A thread has one of them."""
    before = getattr(_begun, "run", None)
    _begun.run = (by, run)
    if before is not None:
        before[1].close()


def put_with_begun(by: Any, log: Log, seen: int) -> None:
    """Keep the run that has begun by this message with its journal."""
    before = getattr(_begun, "run", None)
    if before is not None and before[0] is by:
        _begun.run = None
        put_back(log, before[1], seen)
