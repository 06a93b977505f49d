"""An app's SQLite file is its own: no other library may open it in the same process.

Each SQLite library knows only its own locks. When the other one closes the file, the operating system drops the locks
of both, and two writers at once destroy it. Python's own library says which file it is about to open, and can be
stopped.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from mainspring.errors import WiringError

OPENING: Final = "sqlite3.connect"

_lock = threading.Lock()
# The files of apps that run here, and how many run on each.
_ours: dict[str, int] = {}
_watched = False


@contextmanager
def kept_alone(url: str) -> Generator[None]:
    """Refuse to open an app's file with Python's own SQLite library as long as the app runs.

    >>> with kept_alone("sqlite:////tmp/shop.db"):
    ...     __import__("sqlite3").connect("/tmp/shop.db")
    Traceback (most recent call last):
    mainspring.errors.running.WiringError: sqlite3 is about to open the app's own file shop.db in this process, and \
would break the locks that protect it. Give your tables a file of their own, or write them with app.transaction().
    """
    file = file_of(url)
    if file is None:
        yield
        return
    _watch()
    with _lock:
        _ours[file] = _ours.get(file, 0) + 1
    try:
        yield
    finally:
        with _lock:
            _ours[file] -= 1
            if not _ours[file]:
                del _ours[file]


def file_of(url: str) -> str | None:
    """Return the SQLite file that a URL names, if it names one.

    >>> file_of("sqlite:////tmp/shop.db"), file_of("memory://")
    ('/tmp/shop.db', None)
    """
    parts = urlsplit(url)
    return os.path.realpath(unquote(parts.path)[1:]) if parts.scheme == "sqlite" else None


def _watch() -> None:
    """Watch every file that is opened. That cannot be undone, so it is done once, and only if it is asked for."""
    global _watched  # noqa: PLW0603  as there is one interpreter
    with _lock:
        if not _watched:
            sys.addaudithook(_heard)
            _watched = True


def _heard(event: str, values: tuple[Any, ...]) -> None:
    if event == OPENING and _ours and (file := _opened(values[0])) in _ours:
        raise WiringError(
            f"sqlite3 is about to open the app's own file {Path(file).name} in this process, and would break the locks "
            "that protect it",
            "Give your tables a file of their own, or write them with app.transaction().",
        )


def _opened(given: object) -> str:
    """Return the file that is about to be opened, given as a path or as a URI."""
    try:
        path = os.fsdecode(given)  # pyright: ignore[reportArgumentType]  what cannot be a path is none
    except TypeError:
        return ""
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path)
    return "" if not path or path == ":memory:" else os.path.realpath(path)
