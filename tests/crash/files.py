"""The files of a run. Lines are appended whole and on the disk before anybody acts on them."""

from __future__ import annotations

import os
import time
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
        self.log = folder / "processes.log"


class Lines:
    """A file of JSON lines to append to. SIGKILL tears no line: each is one write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, *, sync: bool = True, **line: Any) -> None:
        os.write(self._file, json.encode({"at_us": now_us(), **line}) + b"\n")
        if sync:
            os.fsync(self._file)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def now_us() -> int:
    return time.time_ns() // 1000
