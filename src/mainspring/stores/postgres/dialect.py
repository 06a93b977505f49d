"""PostgreSQL's dialect: lists travel as arrays, and instances are found by digests of their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mainspring.port.records import InstanceFilter, InstanceRow, OutputClaim, Ref
from mainspring.stores.commit.rows import read_output
from mainspring.stores.postgres.statements import digest, name_of
from mainspring.stores.sql.dialect import Dialect, Values


class PostgresDialect(Dialect):
    """See `Dialect`."""

    one_moment = False

    def name(self, ref: Ref | None) -> Values:
        return (None,) if ref is None else (name_of(ref.workflow, ref.id),)

    def names(self, refs: Sequence[Ref]) -> Any:
        return [name_of(ref.workflow, ref.id) for ref in refs]

    def digest(self, text: str) -> Any:
        return digest(text)

    def values(self, values: Sequence[Any]) -> Any:
        return list(values)

    def rows(self, rows: Sequence[Sequence[Any]]) -> Values:
        return columns(rows)

    def inserted(self, rows: Sequence[Sequence[Any]]) -> Values:
        return columns(rows)

    def text(self, text: str | None) -> str | None:
        return clean(text)

    def instance(self, row: Sequence[Any]) -> InstanceRow:
        return InstanceRow(*row)

    def output(self, row: Sequence[Any]) -> OutputClaim:
        return read_output(row)

    def narrowing(self, where: InstanceFilter, most: int) -> Sequence[Values]:
        return ()


def columns(rows: Sequence[Sequence[Any]]) -> Values:
    """Return rows as columns, each an array.

    >>> columns([(7, "a"), (8, "b")])
    ((7, 8), ('a', 'b'))
    """
    return tuple(zip(*rows, strict=True))


def clean(text: str | None) -> str | None:
    r"""Return what an error said as PostgreSQL can keep it: it knows no zero bytes in a text.

    >>> clean("boom\0")
    'boom\ufffd'
    """
    return text.replace("\0", "\ufffd") if text is not None and "\0" in text else text


DIALECT: Final = PostgresDialect()
