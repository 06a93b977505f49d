"""SQLite's dialect: lists travel as JSON, and every record has a checksum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mainspring.port.records import InstanceFilter, InstanceRow, OutputClaim, Ref
from mainspring.port.searches import prefix_end
from mainspring.stores.commit.rows import read_instance
from mainspring.stores.sql.dialect import Dialect, Values, packed
from mainspring.stores.sqlite.outputs import checked_output

# Behind all texts, as SQLite compares.
_BEHIND_TEXTS: Final = b""


class SqliteDialect(Dialect):
    """See `Dialect`."""

    one_moment = True

    def name(self, ref: Ref | None) -> Values:
        return (None, None) if ref is None else (ref.workflow, ref.id)

    def names(self, refs: Sequence[Ref]) -> Any:
        return packed([(ref.workflow, ref.id) for ref in refs])

    def digest(self, text: str) -> Any:
        return text

    def values(self, values: Sequence[Any]) -> Any:
        return packed(values)

    def rows(self, rows: Sequence[Sequence[Any]]) -> Values:
        return (packed(rows),)

    def inserted(self, rows: Sequence[Sequence[Any]]) -> Values:
        return tuple(value for row in rows for value in row)

    def text(self, text: str | None) -> str | None:
        return text

    def instance(self, row: Sequence[Any]) -> InstanceRow:
        return read_instance(row)

    def output(self, row: Sequence[Any]) -> OutputClaim:
        return checked_output(row)

    def narrowing(self, where: InstanceFilter, most: int) -> Sequence[Values]:
        statements: list[Values] = []
        if where.id_prefix:
            end = prefix_end(where.id_prefix)
            span = (where.id_prefix, _BEHIND_TEXTS if end is None else end)
            statements.append(("keys_by_prefix", where.workflow, *span, most))
        if where.status not in (None, "running", "completed"):
            statements.append(("keys_by_status", where.status, most))
        if where.error is not None:
            statements.append(("keys_by_error", most))
        numbers = (wanted for wanted in where.attributes if wanted.text is None)
        statements += [("keys_by_number", each.name, each.kind, each.low, each.high, most) for each in numbers]
        return statements


DIALECT: Final = SqliteDialect()
