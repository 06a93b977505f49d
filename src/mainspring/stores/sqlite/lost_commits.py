"""Whether the write-ahead log holds commits that SQLite cannot read any more.

A recovery reads the log up to the first frame whose checksum does not fit, and drops the rest without a word. After a
power cut that is right: only the last transaction can be without its sync, and it was never acknowledged. But where two
or more commits stand behind that frame, all but one of them were synced and acknowledged: then a byte of the log has
changed since, and continuing would lose what was acknowledged.

    header, 32 bytes    … two salts at 16, checksum
    frames              24 bytes (page, size after a commit or 0, two salts, checksum), then the page

A header that is damaged itself makes SQLite drop the whole log, so nothing in it is believed alone.
"""

from __future__ import annotations

import struct
import time
from typing import BinaryIO, Final

import apsw

from mainspring.errors import DamagedStoreError
from mainspring.stores.sqlite.place import Place
from mainspring.stores.sqlite.schema import version_of
from mainspring.stores.sqlite.statements import execute

_HEADER: Final = struct.Struct(">16x4s4s8x")
_FRAME: Final = struct.Struct(">4xI4s4s8x")
UNTOLD_COMMITS: Final = 1
BUSY_LOOK_SECONDS: Final = 0.005


def refuse_lost_commits(connection: apsw.Connection, place: Place) -> None:
    """Raise if commits that were acknowledged cannot be read. To be called before anything is written."""
    version_of(connection)  # SQLite recovers the log at the first question
    try:
        # This file alone may be opened beside SQLite: its locks are on the others, and closing those would lose them.
        with place.path.with_name(f"{place.path.name}-wal").open("rb") as file:
            lost = _lost_commits(connection, file, place.busy_seconds)
    except FileNotFoundError:
        return
    if lost > UNTOLD_COMMITS:
        # Or the last one to close would move what is left into the database, and remove the rest.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        found = f"its log has {lost} commits behind a damaged place, and SQLite would drop them"
        raise DamagedStoreError(str(place), found)


def _lost_commits(connection: apsw.Connection, file: BinaryIO, patience_seconds: float) -> int:
    """Return how many commits stand in the log and are not read, while other processes may still write to it."""
    header = file.read(_HEADER.size)
    (page_size,) = execute(connection, "PRAGMA page_size").fetchone()
    behind = _commits(file, header, _readable(connection, patience_seconds), page_size)
    readable = _readable(connection, patience_seconds)
    file.seek(0)
    if file.read(_HEADER.size) != header:
        return 0  # another process has begun the log anew, and for that it has read all there was
    return sum(frame > readable for frame in behind)


def _readable(connection: apsw.Connection, patience_seconds: float) -> int:
    """Return how many frames of the log can be read.

    Alone of all questions, this one does not wait while another process writes the log's index: SQLite asks no busy
    handler. Where several processes open one file at once, that is met now and then.
    """
    ends = time.monotonic() + patience_seconds
    while True:
        try:
            return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
        except apsw.BusyError:
            if time.monotonic() >= ends:
                raise
            time.sleep(BUSY_LOOK_SECONDS)


def _commits(file: BinaryIO, header: bytes, frame: int, page_size: int) -> list[int]:
    """Return which frames behind one are commits of this log, counted from 1."""
    found: list[int] = []
    if len(header) < _HEADER.size or frame < 0:
        return found
    first, second = _HEADER.unpack(header)
    while True:
        file.seek(_HEADER.size + frame * (_FRAME.size + page_size))
        head = file.read(_FRAME.size)
        if len(head) < _FRAME.size:
            return found
        frame += 1
        size, own_first, own_second = _FRAME.unpack(head)
        # In frames of an earlier log, which was moved into the database, both salts are others.
        if size and (own_first == first or own_second == second):
            found.append(frame)
