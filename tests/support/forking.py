"""The process that others are forked from. Python has one of them, so it imports what any of the proofs needs."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext
from typing import Final

IMPORTED: Final = [
    "tests.engine.releases",
    "tests.engine.fatal_process",
    "tests.proof.broker_faults.worker_process",
    "tests.proof.crash.client_process",
    "tests.proof.crash.rebuild",
    "tests.proof.crash.worker_process",
    "tests.proof.crash_points.doomed_process",
    "tests.proof.crash_points.preloaded",
    "tests.proof.store_faults.life",
    "tests.proof.first_weeks.office",
]


def fork_server() -> ForkServerContext:
    """Return where to start processes; the first one waits until all is imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context
