"""The statements of the `.sql` files, loaded once, for the schema of an application."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

from mainspring.stores.sql.statements import read

_SCHEMA: Final = "mainspring."
_DIGEST_BYTES: Final = 16
# A process has the schema of its application, and mostly no other.
_SCHEMAS_KEPT: Final = 8


FILES: Final = ("queries.sql", "search.sql", "tasks.sql", "posted.sql")

QUERIES: Final = read("mainspring.stores.postgres", FILES)


def quoted(name: str) -> str:
    """Return an identifier in quotes.

    >>> quoted('shop"s')
    '"shop""s"'
    """
    return '"' + name.replace('"', '""') + '"'


def within(schema: str, text: str) -> str:
    """Return statements that are written for the schema `mainspring` as statements for another.

    >>> within("shop", "SELECT base FROM mainspring.feed")
    'SELECT base FROM "shop".feed'
    """
    return text.replace(_SCHEMA, f"{quoted(schema)}.")


@lru_cache(_SCHEMAS_KEPT)
def statements(schema: str) -> Mapping[str, str]:
    """Return all statements by name, for a schema.

    >>> print(statements("shop")["new_worker"])
    SELECT nextval('"shop".worker_keys');
    """
    # A name is found inside a string too (nextval), where a single quote would end it.
    inside = schema.replace("'", "''")
    ours, within_text = f"{quoted(schema)}.", f"'{quoted(inside)}."
    written = {name: text.replace("'mainspring.", within_text).replace(_SCHEMA, ours) for name, text in QUERIES.items()}
    return MappingProxyType(written)  # all stores of a schema have the same


def name_of(workflow: str, id: str) -> bytes:
    """Return the digest under which an instance is found.

    >>> len(name_of("Orders", "o-1"))
    16
    """
    return blake2b(f"{workflow}\0{id}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def digest(text: str) -> bytes:
    """Return a digest of a message's id or of a business key.

    >>> digest("m-1") == digest("m-2")
    False
    """
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
