"""Processes that are forked from one that has imported everything: else much of a short life would go into that."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.support.forking import fork_server


class Forked:
    """A module that runs as a program, in a process of its own."""

    def __init__(self, module: str, arguments: tuple[str, ...], log: Path) -> None:
        self._process: ForkServerProcess = fork_server().Process(target=_run, args=(module, arguments, log))
        self._process.start()

    def ended(self) -> bool:
        """Tell whether it has come to its end, or was killed."""
        return self._process.exitcode is not None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has just come to its end."""
        assert self._process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def wait(self, seconds: float) -> int:
        """Return its exit code, when it has come to its end."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise TimeoutError(f"{self._process.name} did not end within {seconds:.0f} s")
        return self._process.exitcode


def _run(module: str, arguments: tuple[str, ...], log: Path) -> None:
    with log.open("ab") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
