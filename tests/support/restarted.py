"""Workers as processes, each of which is started again when it has died."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.process import BaseProcess

from tests.support.forking import fork_server


class Restarted:
    """Some processes that run a function; `mend` counts those that died, and replaces them."""

    def __init__(self, main: Callable[[str], None], url: str, count: int) -> None:
        self._main = main
        self._url = url
        self._running: list[BaseProcess] = [self._start() for _ in range(count)]
        self.deaths = 0

    def _start(self) -> BaseProcess:
        process = fork_server().Process(target=self._main, args=(self._url,), daemon=True)
        process.start()
        return process

    def mend(self) -> None:
        """Start those anew that have died."""
        for number, process in enumerate(self._running):
            if not process.is_alive():
                self.deaths += 1
                self._running[number] = self._start()

    def stop(self) -> None:
        """Kill what is left."""
        for process in self._running:
            process.kill()
            process.join()
