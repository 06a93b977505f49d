"""The files of a run. Lines are appended whole and on the disk before anybody acts on them."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import json


class Place:
    """Where a run keeps its database and what is known beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "crash.db"
        self.ledger = folder / "ledger.jsonl"
        self.effects = folder / "effects.jsonl"
        self.samples = folder / "samples.jsonl"
        self.stops = folder / "stops.jsonl"
        self.people = folder / "people.jsonl"
        self.documents = folder / "documents.jsonl"
        self.clocks = folder / "clocks.jsonl"
        self.run = folder / "run.json"
        self.log = folder / "processes.log"
        self._address = folder / "address"

    @property
    def url(self) -> str:
        """The store's URL: what was written down for this run, or else a file beside the others."""
        return self._address.read_text() if self._address.exists() else f"sqlite:///{self.database}"

    def history(self, client: str) -> Path:
        """What a client asked and was told, call by call."""
        return self.folder / f"history-{client}.jsonl"

    def histories(self) -> list[Path]:
        return sorted(self.folder.glob("history-*.jsonl"))

    def serving(self, worker: int) -> Path:
        """The mark of a worker that has begun to serve."""
        return self.folder / f"serving-{worker}"

    def listening(self, client: int) -> Path:
        """The mark of a client that hears signals."""
        return self.folder / f"listening-{client}"

    def use(self, url: str) -> None:
        """Let the run have its store there."""
        self._address.write_text(url)


class Lines:
    """A file of JSON lines to append to. SIGKILL tears no line: each is one write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._alone = threading.Lock()

    def add(self, *, sync: bool = True, **line: Any) -> None:
        os.write(self._file, json.encode({"at_us": now_us(), **line}) + b"\n")
        if sync:
            os.fsync(self._file)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep all others who ask for the same from adding: threads of this process, and other processes."""
        with self._alone:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)


def read_on(path: Path, offset: int) -> tuple[int, list[dict[str, Any]]]:
    """Return the whole lines behind an offset, and the offset behind them."""
    with path.open("rb") as file:
        file.seek(offset)
        lines = file.read()
    lines = lines[: lines.rfind(b"\n") + 1]
    return offset + len(lines), [json.decode(line) for line in lines.splitlines()]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def now_us() -> int:
    return time.time_ns() // 1000
