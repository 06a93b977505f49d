"""Whether a database is still what was written: its structure, and the checksum of every record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

import apsw

from mainspring.errors import DamagedRecordError, DamagedStoreError
from mainspring.port.examination import Finding, note, problem
from mainspring.stores.commit.rows import read_dead_letter, read_event, read_input, read_instance, read_snapshot
from mainspring.stores.sqlite.outputs import check_output
from mainspring.stores.sqlite.place import Place
from mainspring.stores.sqlite.statements import QUERIES, execute

CHECK_SECONDS: Final = 20.0
STEPS_PER_LOOK: Final = 100_000
SHOWN: Final = 10
CHECKED_BYTES: Final = 64 * 1_024 * 1_024
CHECKED_TABLES: Final = ("instances", "inbox", "outbox")
RESTORE: Final = "Stop the workers, keep a copy of the files, and restore a backup; then look at the disk."


def refuse_broken_trees(connection: apsw.Connection, place: Place) -> None:
    """Raise if a table or an index by which work and instances are found has lost or misplaced an entry.

    Nothing else would show it: an instance that its index has lost would begin anew. It takes some 0.1 s for the
    largest file that is looked at; larger ones are left to the doctor.
    """
    if place.path.stat().st_size > CHECKED_BYTES:
        return
    for table in CHECKED_TABLES:
        (said,) = execute(connection, f"PRAGMA integrity_check({table})").fetchone()
        if said != "ok":
            raise DamagedStoreError(str(place), " ".join(said.split()))


def damage(path: Path, seconds: float = CHECK_SECONDS) -> list[Finding]:
    """Return what is damaged in a database with this release's tables. It takes so long at most, and changes nothing.

    >>> damage(Path("no-such-file.db"))[0].what
    'no-such-file.db cannot be checked for damage: unable to open database file'
    """
    ends = time.monotonic() + seconds
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            # A file of any size may stand here: a user who runs the doctor wants an answer.
            connection.set_progress_handler(lambda: time.monotonic() > ends, STEPS_PER_LOOK)
            found = list(islice(_damages(connection), SHOWN))
    except apsw.InterruptError:
        what = f"{path.name} is too large to be checked for damage in {seconds:g} s"
        return [note(what, "Check a copy of it: PRAGMA integrity_check in the sqlite3 shell.")]
    except (apsw.CorruptError, apsw.NotADBError) as error:
        found = [str(error)]
    except apsw.Error as error:
        return [note(f"{path.name} cannot be checked for damage: {error}", "See what else is found.")]
    return [problem(f"{path.name} is damaged: {what}", RESTORE) for what in found]


def _damages(connection: apsw.Connection) -> Iterator[str]:
    for (said,) in execute(connection, f"PRAGMA integrity_check({SHOWN})"):
        if said != "ok":
            yield said
    for query, read in _RECORDS:
        for row in execute(connection, QUERIES[query]):
            try:
                read(row)
            except DamagedRecordError as error:
                yield f"{error.table}, {error.record}"
    for key, version in execute(connection, QUERIES["every_half_stream"]):
        yield f"events, instance {key}, version {version} is missing"


def _check_snapshot(row: tuple[Any, ...]) -> None:
    if read_snapshot(row) is None:
        raise DamagedRecordError("snapshots", f"instance {row[0]}")


_RECORDS: Final[tuple[tuple[str, Callable[[Any], object]], ...]] = (
    ("every_event", read_event),
    ("every_input", read_input),
    ("every_dead_letter", read_dead_letter),
    ("every_instance", read_instance),
    ("every_output", check_output),
    ("every_snapshot", _check_snapshot),
)
