"""For development: a worker that is restarted when the code changes. Modification times are polled: no dependency."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

import click

POLL_SECONDS: Final = 0.3
GRACE_SECONDS: Final = 5.0
SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages"})


def run_reloading(command: Sequence[str], folder: Path, drain_seconds: float) -> int:
    """Run a command, again whenever a .py file below the folder changes, until a signal. Return its exit code."""
    supervisor = Supervisor(command)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, supervisor.forward)
    while not supervisor.stopping:
        seen = modified(folder)
        supervisor.start()
        changed = _wait_for_change(supervisor, folder, seen)
        if changed is None:
            break
        click.echo(f"{changed} changed: restarting the worker", err=True)
        supervisor.stop(drain_seconds + GRACE_SECONDS)
    return supervisor.wait()


def _wait_for_change(supervisor: Supervisor, folder: Path, seen: dict[str, float]) -> str | None:
    """Return the file that changed, or None if the worker is to stop."""
    told = False
    while not supervisor.stopping:
        time.sleep(POLL_SECONDS)
        changed = difference(seen, modified(folder))
        if changed is not None:
            return changed
        if supervisor.ended and not told and not supervisor.stopping:
            told = True
            click.echo("the worker has ended: it is started again when a .py file changes", err=True)
    return None


class Supervisor:
    """Holds the worker's process. Signals go to it: the first lets it drain, the second stops it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self.stopping = False

    @property
    def ended(self) -> bool:
        """Whether there is no process, or none any more."""
        return self._process is None or self._process.poll() is not None

    def start(self) -> None:
        """Start the worker in a session of its own, so that Ctrl-C reaches it once, through `forward`."""
        if not self.stopping:
            self._process = subprocess.Popen(self._command, start_new_session=True)  # noqa: S603  our own command

    def stop(self, seconds: float) -> None:
        """Let the worker drain; if that takes too long, end it."""
        if self._process is None or self.ended:
            return
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forward(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on."""
        self.stopping = True
        if self._process is not None and not self.ended:
            self._process.terminate()

    def wait(self) -> int:
        """Wait for the worker's end, and return its exit code."""
        return 0 if self._process is None else self._process.wait()


def modified(folder: Path) -> dict[str, float]:
    """Return the modification times of all .py files below a folder, but hidden and installed ones."""
    found: dict[str, float] = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _skipped(Path(place, name))]
        for name in files:
            if name.endswith(".py"):
                path = Path(place, name)
                try:
                    found[str(path.relative_to(folder))] = path.stat().st_mtime
                except FileNotFoundError:  # an editor is just replacing it
                    continue
    return found


def _skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in SKIPPED or (folder / "pyvenv.cfg").exists()


def difference(before: dict[str, float], after: dict[str, float]) -> str | None:
    """Return a file that was changed, added or removed, if any was.

    >>> difference({"a.py": 1.0, "b.py": 1.0}, {"a.py": 1.0, "b.py": 2.0})
    'b.py'
    """
    if before == after:
        return None
    return min(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
