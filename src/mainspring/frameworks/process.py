"""An app beside code without an event loop: it starts at its first use, once in each process, and stops at its end."""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import ExitStack

from mainspring.app import Mainspring
from mainspring.app.blocking import BlockingApp
from mainspring.app.internals import internals_of
from mainspring.errors import WiringError
from mainspring.frameworks.own_file import kept_alone


class Running:
    """An app that runs in this process from its first use on.

    Servers that fork (gunicorn, uWSGI) load a program first and fork then, and no thread or connection outlives that.
    So nothing begins before the first use, in the process that answers.

    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> running = Running(app, work=True)
    >>> running.app.send(Count("c-1")).status
    'stepped'
    >>> running.stop()
    """

    def __init__(self, app: Mainspring, *, work: bool = False) -> None:
        self._app = app
        self._work = work
        self._lock = threading.Lock()
        self._exits = ExitStack()
        self._blocking: BlockingApp | None = None
        self._process = 0

    @property
    def app(self) -> BlockingApp:
        """The running app, without `await`."""
        blocking = self._blocking
        if blocking is None:
            blocking = self._start()
        if self._process != os.getpid():
            raise WiringError(
                "The app was used before this process was forked, and does not run in it",
                "Use it first where requests are answered, not where the program is loaded.",
            )
        return blocking

    def stop(self) -> None:
        """Let what runs finish, give the rest back, and close. The next use starts it again."""
        with self._lock:
            if self._process == os.getpid():
                atexit.unregister(self.stop)
                self._blocking = None
                self._exits.close()

    def _start(self) -> BlockingApp:
        with self._lock:
            if self._blocking is None:
                with ExitStack() as exits:
                    exits.enter_context(kept_alone(internals_of(self._app).url))
                    blocking = exits.enter_context(self._app.blocking(work=self._work))
                    self._exits = exits.pop_all()
                self._process, self._blocking = os.getpid(), blocking
                atexit.register(self.stop)
            return self._blocking
