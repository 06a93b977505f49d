"""What can be wrong with the files of an SQLite database."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

from mainspring.port.examination import Examination, Finding, note, problem
from mainspring.stores.sqlite.damage import damage
from mainspring.stores.sqlite.schema import migrations, version_of

MEGABYTE: Final = 1 << 20
LARGE_WAL_BYTES: Final = 256 * MEGABYTE
LITTLE_SPACE_BYTES: Final = 256 * MEGABYTE
NETWORK_FILE_SYSTEMS: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph"})
MOUNTS: Final = Path("/proc/self/mounts")


def examine(path: Path) -> Examination:
    """Return what is wrong with a database's files. Nothing is changed, and no file is made.

    >>> examine(Path("no-such-file.db")).findings[-1].what
    'There is no file no-such-file.db yet'
    """
    path = path.absolute()
    found = [*_size(path), *_space(path), *_network(path)]
    if not path.exists():
        found.append(note(f"There is no file {path.name} yet", "The first start makes it."))
        return Examination(found, ready=False)
    version, known = _version(path), len(migrations())
    if version == 0:
        found.append(note(f"There are no tables yet in {path.name}", "The first start makes them."))
        return Examination(found, ready=False)
    if version is not None and version < known:
        what = f"{path.name} has version {version}, and this release brings version {known}"
        found.append(note(what, "The next start brings it up to date; workers of older releases stop then."))
        return Examination(found, ready=False)
    if version == known:
        found += damage(path)
    return Examination(found)


def _version(path: Path) -> int | None:
    """Return the version of our tables in a file, 0 if there are none; None: opening it says what is wrong."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return version_of(connection)
    except apsw.Error:
        return None


def _size(path: Path) -> list[Finding]:
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or wal.stat().st_size < LARGE_WAL_BYTES:
        return []
    what = f"{wal.name} has {wal.stat().st_size // MEGABYTE:,} MB"
    return [note(what, "A reader keeps it from being emptied: end transactions that stay open.")]


def _space(path: Path) -> list[Finding]:
    free = shutil.disk_usage(path.parent).free if path.parent.exists() else LITTLE_SPACE_BYTES
    if free >= LITTLE_SPACE_BYTES:
        return []
    return [problem(f"The disk of {path.name} has {free // MEGABYTE:,} MB left", "Free some space.")]


def _network(path: Path) -> list[Finding]:
    kind = file_system(path, MOUNTS.read_text() if MOUNTS.exists() else "")
    if kind not in NETWORK_FILE_SYSTEMS:
        return []
    return [problem(f"{path.name} lies on a network file system ({kind})", "Move it to a local disk.")]


def file_system(path: Path, mounts: str) -> str | None:
    r"""Return the kind of file system that a path lies on, by a table of mounts.

    >>> file_system(Path("/srv/shop/orders.db"), "disk / ext4 rw 0 0\nserver:/shop /srv/shop nfs4 rw 0 0\n")
    'nfs4'
    """
    found: tuple[int, str | None] = (0, None)
    for line in mounts.splitlines():
        _, point, kind, *_ = line.split(" ")
        if path.is_relative_to(point) and len(point) >= found[0]:
            found = (len(point), kind)
    return found[1]
