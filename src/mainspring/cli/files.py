"""What can be wrong with the files of an SQLite database."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from mainspring.cli.findings import Finding, note, problem

MEGABYTE: Final = 1 << 20
LARGE_WAL_BYTES: Final = 256 * MEGABYTE
LITTLE_SPACE_BYTES: Final = 256 * MEGABYTE
NETWORK_FILE_SYSTEMS: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph"})
MOUNTS: Final = Path("/proc/self/mounts")


def file_findings(url: str) -> list[Finding]:
    """Return what is wrong with the files that a store's URL names; nothing for other stores.

    >>> file_findings("memory://")
    []
    """
    parts = urlsplit(url)
    if parts.scheme != "sqlite":
        return []
    path = Path(unquote(parts.path)[1:]).absolute()
    return [*_size(path), *_space(path), *_network(path)]


def _size(path: Path) -> list[Finding]:
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or wal.stat().st_size < LARGE_WAL_BYTES:
        return []
    what = f"{wal.name} has {wal.stat().st_size // MEGABYTE:,} MB"
    return [note(what, "A reader keeps it from being emptied: end transactions that stay open.")]


def _space(path: Path) -> list[Finding]:
    free = shutil.disk_usage(path.parent).free
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
