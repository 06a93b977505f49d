"""The runners of this worker: one for each handler that it has carried something out with."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.handlers.handler import Handler
from mainspring.engine.handlers.job import JobEnds
from mainspring.engine.handlers.runner import Runner
from mainspring.engine.handlers.threads import Threads
from mainspring.engine.inputs.pending import NEVER_US
from mainspring.engine.paused_work import PausedWork
from mainspring.engine.recording.saga_rows import Doomed
from mainspring.engine.runtime import HANDLER_THREADS, Runtime
from mainspring.logs import logger
from mainspring.port.records import OutputKey, Ref
from mainspring.port.store import Store

THREADS_TAKEN_SECONDS: Final = 10.0
"""All threads for plain functions are reported when none has become free for so long, and calls wait for one."""

log = logger("mainspring.engine")


def held_by(holders: Mapping[str, int]) -> str:
    """Return which handlers have the threads, in words.

    >>> held_by({"charge": 30, "mail": 2})
    'charge has 30, mail 2'
    """
    first, *others = [f"{name} {count}" for name, count in holders.items()] or ["no handler 0"]
    name, _, count = first.rpartition(" ")
    return ", ".join([f"{name} has {count}", *others])


class Runners:
    """Makes runners on first use, by the queues that they carry out, and passes on what concerns all of them."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        wakeups: Wakeups,
        ends: JobEnds,
        paused: PausedWork,
        resources: Mapping[str, Any],
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._wakeups = wakeups
        self._ends = ends
        self.resources = resources
        self.by_queue: dict[str, Runner] = {}
        self._paused = paused
        # Set when handlers or subscribers begin to run; cleared where none is found running.
        self.busy = asyncio.Event()
        # Set when what is held back has changed; cleared when that is reported.
        self.held_back_changed = asyncio.Event()
        # The threads for plain functions, where all are taken for long and calls wait.
        self.threads_taken: Threads | None = None
        runtime.hung.subscribe(self._hung_changed)

    def __iter__(self) -> Iterator[Runner]:
        return iter(list(self.by_queue.values()))

    def of(self, handler: Handler, queue: str) -> Runner:
        """Return the runner of a handler, made on first use."""
        runner = self.by_queue.get(queue)
        if runner is None:
            runner = Runner(
                handler,
                self._runtime,
                self._store.now_us,
                self._ends,
                self.resources,
                on_capacity=lambda: self._wakeups.due_at(0),
                on_begin=self.busy.set,
                on_gate=self.held_back_changed.set,
            )
            runner.paused = queue in self._paused.queues
            self.by_queue[queue] = runner
        return runner

    @property
    def in_hand(self) -> int:
        """How many commands wait or run here."""
        return sum(runner.waiting + runner.active for runner in self.by_queue.values())

    def outputs_in_hand(self) -> set[OutputKey]:
        """Return the outputs that wait or run here."""
        return {job.claim.output for runner in self.by_queue.values() for job in runner.jobs()}

    def heed(self) -> None:
        """Begin nothing more of what is held back now, and of nothing else."""
        for queue, runner in self.by_queue.items():
            runner.pause(queue in self._paused.queues)

    def cancel(self, ref: Ref, which: Doomed = "all", up_to: int = sys.maxsize) -> None:
        """Drop what is in hand for a cancelled instance, of its outputs up to a version."""
        for runner in self:
            runner.cancel_instance(ref, which, up_to)

    def stop_overdue(self, now_us: int) -> None:
        """End attempts that have timed out."""
        for runner in self:
            if runner.running:
                runner.stop_overdue(now_us)

    def look_at_threads(self, now_us: int) -> None:
        """Report it when no thread has become free for long for plain functions that wait, and when one does."""
        threads = self._runtime.threads
        since_us = None if threads is None else threads.taken_since_us
        taken = since_us is not None and now_us - since_us >= THREADS_TAKEN_SECONDS * 1e6
        if taken == (self.threads_taken is not None):
            return
        self.threads_taken = threads if taken else None
        self.held_back_changed.set()
        if threads is None or since_us is None or not taken:
            log.warning("a thread became free again for plain functions")
            return
        log.warning(
            "all %d threads for plain functions have been taken for %.0f s, and %d calls wait: %s. They wait until one "
            "returns or its time is up. Give what they call a time limit, and such handlers a lower `concurrency`",
            HANDLER_THREADS,
            (now_us - since_us) / 1e6,
            threads.waiting,
            held_by(threads.holders()),
        )

    def attempts(self) -> Iterator[tuple[asyncio.Task[Any], str, int]]:
        """Return the attempts that run now: each one's task, its handler's name, and when its time is up."""
        for runner in self:
            for task, jobs in runner.running.items():
                yield task, runner.handler.name, max((job.deadline_us for job in jobs), default=NEVER_US)

    def _hung_changed(self) -> None:
        for runner in self:
            runner.hold_back(self._runtime.hung.holds_back(runner.handler.name))
        self.held_back_changed.set()
