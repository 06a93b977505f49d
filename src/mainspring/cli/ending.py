"""The end of a process that works: in order where that is possible, and in any case soon."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from mainspring.cli.failures import REFUSED, told
from mainspring.engine.handlers.threads import THREAD_NAME
from mainspring.errors import MainspringError
from mainspring.logs import logger

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
CLOSE_SECONDS: Final = 2.0
"""What is cancelled has so long to end."""
BEHIND_DRAIN_SECONDS = 10.0
"""How long after its drain a process ends, whatever it still waits for."""

log = logger("mainspring.worker")


class LatestEnd:
    """Ends the process some time after it was asked to stop, if it does not end by itself.

    That is the work of a thread: the event loop may be what hangs. It is never called off, for also what comes after
    the event loop may hang.
    """

    def __init__(self, drain_seconds: float) -> None:
        self._seconds = drain_seconds + BEHIND_DRAIN_SECONDS
        # The system writes a signal's number here whichever thread it interrupts. A handler in Python would have to
        # wait for the main thread, and that may wait without end.
        self._hears, self._tells = socket.socketpair()
        self._tells.setblocking(False)
        signal.set_wakeup_fd(self._tells.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._wait, name="mainspring-end", daemon=True).start()

    def begin(self) -> None:
        """Let its time begin without a signal."""
        self._tells.send(bytes([signal.SIGTERM]))

    def _wait(self) -> None:
        self._told(None)
        if self._told(self._seconds):
            time.sleep(2 * CLOSE_SECONDS)  # it was urged, and has its time to close
        else:
            what = "not stopped within %g s: what this process has not given back, others take over"
            # In a daemon thread: the reader of the log may be what hangs.
            telling = threading.Thread(target=log.error, args=(what, self._seconds), daemon=True)
            telling.start()
            telling.join(CLOSE_SECONDS)
        os._exit(REFUSED)

    def _told(self, seconds: float | None) -> bool:
        """Wait for one of the signals that stop. Return True if it came in time."""
        self._hears.settimeout(seconds)
        try:
            while self._hears.recv(1)[0] not in SIGNALS:
                pass
        except TimeoutError:
            return False
        return True


@contextmanager
def heard_signals(asked: asyncio.Event, urged: asyncio.Event) -> Generator[None]:
    """Let the first signal set the one event, and any further one the other."""
    loop = asyncio.get_running_loop()

    def received() -> None:
        (urged if asked.is_set() else asked).set()

    def wake(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(received)

    before = {number: signal.signal(number, wake) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def ended(main: Coroutine[Any, Any, int]) -> int:
    """Do something to its end. Where cancelled tasks still run after it, leave the process without them.

    asyncio.run would wait for them as long as they like.
    """
    try:
        code = await main
    except Exception as error:
        if await _goes_on():
            if isinstance(error, MainspringError):
                why = told(error)
                why.show()
                leave(why.exit_code)
            traceback.print_exc()
            leave(REFUSED)
        raise
    if await _goes_on():
        leave(code)
    return code


async def _goes_on() -> bool:
    """Cancel all other tasks, and return True if one still runs."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if not tasks:
        return False
    _, left = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
    return bool(left)


def left_with(code: int) -> int:
    """Return the exit code; or leave with it, where a plain handler hangs in its thread."""
    if any(thread.name.startswith(THREAD_NAME) for thread in threading.enumerate()):
        leave(code)
    return code


def leave(code: int) -> None:
    """End the process at once."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
