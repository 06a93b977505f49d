"""Runs that wait, kept so that the next input only has to continue them: a cache, and nothing but a cache.

What is dropped is torn down on purpose, in its own loop and with everything refused: left to the collection of garbage,
its `finally` blocks would run at any time and in any thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final
from weakref import ref

from mainspring.flows.journal import Journal, Log
from mainspring.flows.run import Run

LIVE_FLOWS: Final = 2_000
"""How many a process keeps at most; of the others the code is run again from the journal when an input comes."""


class Live:
    """A run, and how many entries of its journal it has seen. Torn down when its journal is let go."""

    __slots__ = ("__weakref__", "run", "seen")

    def __init__(self, run: Run, seen: int) -> None:
        self.run: Run | None = run
        self.seen = seen

    def close(self) -> None:
        """Tear the run down."""
        run, self.run = self.run, None
        if run is not None:
            run.close()

    def __del__(self) -> None:
        _kept.pop(id(self), None)
        self.close()


_kept: OrderedDict[int, ref[Live]] = OrderedDict()
_evicting = threading.Lock()


def taken(journal: Journal) -> Run | None:
    """Take the run that has seen just this journal, if there is one; whoever takes it puts it back."""
    log = journal.log
    live = None if log is None else log.live
    if log is None or live is None:
        return None
    log.live = None
    _kept.pop(id(live), None)
    run = live.run
    if run is None or not run.catch_up(log.entries[live.seen : journal.recorded]):
        live.close()
        return None
    live.run = None
    return run


def put_back(log: Log, run: Run, seen: int) -> None:
    """Keep a run with its journal; the one that was not needed for the longest time goes, if there are too many."""
    live = Live(run, seen)
    if log.live is not None:
        log.live.close()
    log.live = live
    _kept[id(live)] = ref(live)
    while len(_kept) > LIVE_FLOWS:
        with _evicting:
            oldest = _kept.popitem(last=False)[1]() if len(_kept) > LIVE_FLOWS else None
        if oldest is not None:
            oldest.close()
