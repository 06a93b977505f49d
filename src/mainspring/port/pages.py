"""Pages of a list in which some rows are left out: filled up again, so that a short page is the end of the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from mainspring.errors import DamagedRecordError
from mainspring.logs import logger

Row = TypeVar("Row")
Record = TypeVar("Record")

# Many rows that are left out, one behind the other, must not cost a question each.
ASKED_AGAIN: Final = 100

_log = logger(__name__)


class Page(Generic[Row, Record]):
    """A page to be filled: `wants` rows are to be asked for, behind `last`, until none is wanted any more.

    `read` makes a record of a row. A damaged one is reported and left out, so that it does not hide the others; one for
    which `read` returns None is left out too.

    >>> page = Page[int, int](2, lambda number: number if number % 2 else None)
    >>> while page.wants:
    ...     begin = (page.last or 0) + 1
    ...     page.take(range(begin, min(begin + page.wants, 1_000)))
    >>> page.records
    [1, 3]
    """

    def __init__(self, limit: int, read: Callable[[Row], Record | None]) -> None:
        self.records: list[Record] = []
        self.wants = limit
        self.last: Row | None = None
        self._limit = limit
        self._read = read

    def take(self, rows: Sequence[Row]) -> None:
        """Take in the rows that were asked for; fewer than were wanted are the last ones."""
        more = len(rows) >= self.wants
        for row in rows:
            if len(self.records) == self._limit:
                break
            self._add(row)
            self.last = row
        missing = self._limit - len(self.records)
        self.wants = max(missing, ASKED_AGAIN) if more and missing else 0

    def _add(self, row: Row) -> None:
        try:
            record = self._read(row)
        except DamagedRecordError as error:
            _log.error("left out of a list: %s", error)
        else:
            if record is not None:
                self.records.append(record)
