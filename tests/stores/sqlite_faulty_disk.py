"""A disk that fails when a test says so, as a file system registered with SQLite."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Any

import apsw

_numbers = count(1)


class Disk:
    """What the disk does at the moment: `fault` is raised by writes, and by syncs where `on_sync` is set."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_numbers)}"
        self.fault: type[apsw.Error] | None = None
        self.on_sync = False
        self.read_only = False
        self.syncs = 0
        self.gate: threading.Event | None = None


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  SQLite's name
        if self._disk.fault is not None and not self._disk.on_sync:
            raise self._disk.fault("the test says so")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802  SQLite's name
        self._disk.syncs += 1
        if self._disk.gate is not None:
            assert self._disk.gate.wait(10)
        if self._disk.fault is not None and self._disk.on_sync:
            raise self._disk.fault("the test says so")
        super().xSync(flags)


class _FileSystem(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__(disk.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802  SQLite's name
        if self._disk.read_only:
            flags[0] = flags[0] & ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE) | apsw.SQLITE_OPEN_READONLY
        return _File(self._disk, name, flags)


@contextmanager
def faulty_disk() -> Generator[Disk]:
    """Register a disk for the time of a test; open the store with `vfs=disk.name`."""
    disk = Disk()
    system = _FileSystem(disk)
    try:
        yield disk
    finally:
        system.unregister()
