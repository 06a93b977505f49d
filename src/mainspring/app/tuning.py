"""Settings of the Python process that suit a busy worker. `mainspring worker` makes them; other programs may too."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_INTERVAL_SECONDS: Final = 0.001
GC_THRESHOLDS: Final = (50_000, 20, 100)


def tune_process() -> None:
    """Set this process up as a worker's is.

    The store's writer thread and the event loop share the interpreter lock, and each SQL statement has to get it back:
    a shorter switch interval keeps that wait short (1 ms did best of 0.05 to 5 ms). A worker makes many short-lived
    objects that hold no cycles: collecting garbage less often saves about a quarter of its time. Both are settings of
    the whole process, so a library does not make them by itself.

    >>> import gc, sys
    >>> before = sys.getswitchinterval(), gc.get_threshold()
    >>> tune_process()
    >>> gc.get_threshold()[0]
    50000
    >>> sys.setswitchinterval(before[0]); gc.set_threshold(*before[1]); gc.unfreeze()
    """
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
