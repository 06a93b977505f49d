"""Where a run writes: a fresh folder on a real disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})


def filesystem(path: Path) -> str:
    """Return the kind of filesystem that a path is on; `unknown` where nobody tells."""
    found, kind = 0, "unknown"
    try:
        mounts = Path("/proc/self/mounts").read_text()
    except OSError:
        return kind
    for line in mounts.splitlines():
        _, mounted, type, *_ = line.split()
        if path.resolve().is_relative_to(mounted) and len(mounted) >= found:
            found, kind = len(mounted), type
    return kind


def on_disk(wanted: Path | None) -> Path:
    """Return the wanted folder, or the first usual one that is not a filesystem in memory."""
    if wanted is not None:
        if not wanted.is_dir():
            raise SystemExit(f"{wanted} is no folder. Give one that is there with --dir.")
        if filesystem(wanted) in IN_MEMORY:
            raise SystemExit(f"{wanted} is in memory, where durable costs nothing. Give a folder on a disk with --dir.")
        return wanted
    for path in (Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()):  # noqa: S108  only asked what it is on
        if path.is_dir() and filesystem(path) not in IN_MEMORY:
            return path
    raise SystemExit("No folder on a disk was found. Give one with --dir.")
