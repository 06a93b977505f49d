"""How a program posts: the statement that it runs on a connection of its own, in the words of its library."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import astuple

from mainspring.port.records import InputRow
from mainspring.stores.commit.rows import posted_checksum
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.statements import statements

# How values stand in a statement: $1 (asyncpg), %s (psycopg, Django), :v1 (SQLAlchemy).
Style: TypeAlias = Literal["$", "%", ":"]

_PLACE: Final = re.compile(r"\$(\d+)")
_STYLES: Final[dict[Style, Callable[[str], str]]] = {
    "$": lambda text: text,
    "%": lambda text: _PLACE.sub("%s", text.replace("%", "%%")),
    # A colon of the schema's name would begin a value.
    ":": lambda text: _PLACE.sub(r":v\1", text.replace(":", r"\:")),
}


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
        self._statement = statements(self._address.schema)["post"]
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
            self._texts[style] = _STYLES[style](self._statement)
        return self._texts[style]

    def values(self, row: InputRow) -> tuple[Any, ...]:
        """Return the statement's values for a message."""
        workflow, instance, message_id, kind, type, version, body, time_us, context, actor = astuple(row)[:10]
        names = (workflow, instance, message_id, kind, type)
        told = (self._address.channel, self._address.database)
        return (version, time_us, posted_checksum(row), *names, body, context, actor, *told)
