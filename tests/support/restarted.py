"""Workers as processes, each of which is started again when it has died."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Protocol

from tests.support.forking import fork_server
from tests.support.waiting import until


class Started(Protocol):
    """What a process calls when it works."""

    def release(self) -> None: ...


class Restarted:
    """Some processes that run a function; `mend` counts those that died, and replaces them."""

    def __init__(self, main: Callable[[str, Started], None], url: str, count: int) -> None:
        self._main = main
        self._url = url
        self._started = fork_server().Semaphore(0)
        self._at_work = 0
        self._running: list[BaseProcess] = [self._start() for _ in range(count)]
        self.deaths = 0

    def _start(self) -> BaseProcess:
        process = fork_server().Process(target=self._main, args=(self._url, self._started), daemon=True)
        process.start()
        return process

    async def at_work(self) -> None:
        """Wait until as many as there are have said that they work: one that dies before died at its start."""

        def all_have() -> bool:
            while self._started.acquire(block=False):
                self._at_work += 1
            return self._at_work >= len(self._running)

        await until(all_have)

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
