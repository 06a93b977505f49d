"""Worker processes: `mainspring worker` itself, as anybody would start it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from bench import served
from bench.checks import POLL_SECONDS, NotDoneError
from bench.settings import Settings
from mainspring import Mainspring

START_SECONDS = 60.0
STOP_SECONDS = 30.0


class Workers:
    """Some worker processes, stopped in order when this is left."""

    def __init__(self, settings: Settings, app: str, count: int) -> None:
        self._settings = settings
        self._app = app
        self._count = count
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "mainspring.cli", "worker", f"bench.served:{self._app}"]
        environment = os.environ | {served.VARIABLE: self._settings.url}
        self._processes = [
            subprocess.Popen(  # noqa: S603  this very project
                [*command, "--log-level", "warning"], env=environment, cwd=Path(__file__).parent.parent
            )
            for _ in range(self._count)
        ]
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        codes = [self._ended(process) for process in self._processes]
        if kind is None and any(codes):
            raise NotDoneError(f"the workers ended with exit codes {codes}")

    async def ready(self, app: Mainspring) -> None:
        """Return when all have registered in the store that an app has open."""
        deadline = time.monotonic() + START_SECONDS
        while (there := (await app.stats()).workers) < self._count:
            codes = [process.poll() for process in self._processes]
            if any(code is not None for code in codes) or time.monotonic() > deadline:
                raise NotDoneError(f"{there} of {self._count} workers were there; exit codes: {codes}")
            await asyncio.sleep(POLL_SECONDS)  # other processes: rows are asked

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    @staticmethod
    def _ended(process: subprocess.Popen[bytes]) -> int:
        process.terminate()
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
