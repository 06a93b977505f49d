"""A disk that forgets: a file system under SQLite that knows which bytes a power cut would leave behind.

Reads and writes go to real files, as the running system sees them. Beside them stands what is on the platter: what a
file had at its last sync, and the writes since then, of which a power cut keeps, drops, tears, garbles or reorders any.
The same holds for names: that a file was made or removed is sure only when its directory was synced, which SQLite's own
file system does with the first sync of a new journal or log, and with a removal that asks for it.

What is assumed of the disk is what SQLite assumes (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`): a write harms no byte outside
of itself, and what a sync has returned for is there.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import apsw

SECTOR: Final = 512
SYNCED_WITH_THEIR_DIRECTORY: Final = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
NAME: Final = "forgetful"
BASE: Final = "unix"

Change = tuple[int, bytes | None]
"""Bytes at an offset; None cuts the file there."""


class Inode:
    """A file: what is on the platter for certain, and what may be."""

    def __init__(self, content: bytes = b"") -> None:
        self.platter = bytearray(content)
        self.changes: list[Change] = []
        self.brings_its_name = False

    def sync(self) -> None:
        for change in self.changes:
            _apply(self.platter, change)
        self.changes = []

    def after_a_cut(self, chance: random.Random) -> bytes:
        """Return what is found when the power is back."""
        found = bytearray(self.platter)
        left = [part for change in self.changes for part in _left_of(change, chance)]
        if chance.random() < 0.5:
            chance.shuffle(left)
        for change in left:
            _apply(found, change)
        return bytes(found)


class Disk:
    """Some files of a folder. `cut` is called at the given change, which is then under way, and never returns."""

    def __init__(self, folder: Path, names: Iterable[str], cut_at: int, cut: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._cut_at = cut_at
        self._cut = cut
        self._happened = 0
        self._names = {name: Inode((folder / name).read_bytes()) for name in names}
        self._sure = dict(self._names)

    def change(self, inode: Inode, change: Change, make: Callable[[], None]) -> None:
        """Change a file, for those who read it now; on the platter it may be from now on."""
        with self._lock:
            inode.changes.append(change)
            self._happen()
            make()

    def made(self, name: str, flags: int) -> Inode:
        with self._lock:
            inode = self._names.get(name)
            if inode is None:
                inode = self._names[name] = Inode()
                inode.brings_its_name = bool(flags & SYNCED_WITH_THEIR_DIRECTORY)
            return inode

    def sync(self, inode: Inode) -> None:
        """Bring a file to the platter, and with a new journal or log its name."""
        with self._lock:
            self._happen()
            inode.sync()
            if inode.brings_its_name:
                inode.brings_its_name = False
                self._sure = dict(self._names)

    def remove(self, name: str, *, synced: bool, make: Callable[[], None]) -> None:
        with self._lock:
            self._happen()
            make()
            self._names.pop(name, None)
            if synced:
                self._sure = dict(self._names)

    def after_a_cut(self, chance: random.Random) -> dict[str, bytes]:
        """Return the files that are found when the power is back."""
        found: dict[str, bytes] = {}
        for name in sorted(self._names.keys() | self._sure.keys()):
            # A name whose last change was not synced is the one or the other.
            inode = chance.choice((self._names.get(name), self._sure.get(name)))
            if inode is not None:
                found[name] = inode.after_a_cut(chance)
        return found

    def _happen(self) -> None:
        self._happened += 1
        if self._happened == self._cut_at:
            self._cut()


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__(BASE, name, flags)
        # A file without a name is SQLite's own scratch paper.
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._inode = Inode() if path is None else disk.made(Path(path).name, flags[0])

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  SQLite's name
        def write() -> None:
            super(_File, self).xWrite(data, offset)

        self._disk.change(self._inode, (offset, bytes(data)), write)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802  SQLite's name
        def truncate() -> None:
            super(_File, self).xTruncate(newsize)

        self._disk.change(self._inode, (newsize, None), truncate)

    def xSync(self, flags: int) -> None:  # noqa: N802  SQLite's name
        self._disk.sync(self._inode)


class FileSystem(apsw.VFS):
    """Registered as the usual one of this process: the store needs to know nothing of it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__(NAME, BASE, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802  SQLite's name
        return _File(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802  SQLite's name
        def remove() -> None:
            super(FileSystem, self).xDelete(filename, syncdir)

        self._disk.remove(Path(filename).name, synced=syncdir, make=remove)


def _apply(content: bytearray, change: Change) -> None:
    offset, data = change
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    if data is None:
        del content[offset:]
    else:
        content[offset : offset + len(data)] = data


def _left_of(change: Change, chance: random.Random) -> list[Change]:
    """Return what a cut leaves of a change: all, nothing, some sectors, or some of them as noise."""
    offset, data = change
    fate = chance.choice(("kept", "kept", "dropped", "torn", "garbled"))
    if fate == "dropped":
        return []
    if fate == "kept" or data is None:
        return [change]
    parts: list[Change] = []
    start = offset
    while start < offset + len(data):
        end = min((start // SECTOR + 1) * SECTOR, offset + len(data))
        part = data[start - offset : end - offset]
        luck = chance.random()
        if luck < 0.5:
            parts.append((start, part))
        elif fate == "garbled" and luck < 0.8:
            parts.append((start, chance.randbytes(len(part))))
        start = end
    return parts
