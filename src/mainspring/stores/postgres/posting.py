"""How a program posts: the statement that it runs on a connection of its own, in the words of its library."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import astuple

from mainspring.port.records import InputRow
from mainspring.stores.commit.rows import posted_checksum
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.statements import quoted

# How values stand in a statement: $1 (asyncpg), %s (psycopg, Django), :v1 (SQLAlchemy).
Style: TypeAlias = Literal["$", "%", ":"]

_WRITTEN: Final[dict[Style, str]] = {"$": "${}", "%": "%s", ":": ":v{}"}

COLUMNS: Final = {
    "type_version": "bigint",
    "time_us": "bigint",
    "checksum": "bigint",
    "workflow": "text",
    "instance": "text",
    "message_id": "text",
    "kind": "text",
    "type": "text",
    "body": "bytea",
    "context": "bytea",
    "actor": "text",
}
"""Of what is posted, in the order of `Posting.values`; channel and database come behind them."""


def statement(table: str, style: Style) -> str:
    """Return the statement that posts a message, told to those who listen when its transaction commits.

    It is the program's connection that runs it: nothing is written where that leads to another database than is meant.

    >>> statement("shop.posted", ":").splitlines()[-1]
    'WHERE CAST(current_database() AS text) = coalesce(CAST(:v13 AS text), CAST(current_database() AS text));'
    """
    written = _WRITTEN[style]
    values = [f"CAST({written.format(n)} AS {type})" for n, type in enumerate((*COLUMNS.values(), "text", "text"), 1)]
    channel, database = values[-2:]
    return (
        f"INSERT INTO {_escaped(table, style)} ({', '.join(COLUMNS)})\n"
        f"SELECT {', '.join(values[:-2])}\n"
        f"FROM pg_notify({channel}, '')\n"
        f"WHERE CAST(current_database() AS text) = coalesce({database}, CAST(current_database() AS text));"
    )


def _escaped(table: str, style: Style) -> str:
    """Return a name in which nothing looks like a value."""
    return table.replace("%", "%%") if style == "%" else table.replace(":", r"\:") if style == ":" else table


class Posting:
    """The statement for an app's database.

    >>> posting = Posting("postgresql://db.example/shop?schema=orders")
    >>> posting.text("%").split("(")[0]
    'INSERT INTO "orders".posted '
    >>> str(posting)
    'postgresql://db.example/shop?schema=orders'
    """

    def __init__(self, url: str) -> None:
        self._address = Address(url)
        self._table = f"{quoted(self._address.schema)}.posted"
        self._texts: dict[Style, str] = {}

    def __str__(self) -> str:
        return str(self._address)

    @property
    def schema(self) -> str:
        """The schema in which the tables are."""
        return self._address.schema

    @property
    def database(self) -> str | None:
        """The database that is meant, if that is known."""
        return self._address.database

    def text(self, style: Style) -> str:
        """Return the statement as a library wants it."""
        if style not in self._texts:
            self._texts[style] = statement(self._table, style)
        return self._texts[style]

    def values(self, row: InputRow) -> tuple[Any, ...]:
        """Return the statement's values for a message."""
        workflow, instance, message_id, kind, type, version, body, time_us, context, actor = astuple(row)[:10]
        names = (workflow, instance, message_id, kind, type)
        told = (self._address.channel, self._address.database)
        return (version, time_us, posted_checksum(row), *names, body, context, actor, *told)
