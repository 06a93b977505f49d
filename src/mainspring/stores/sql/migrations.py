"""The migrations that a SQL store ships: its schema is their sum."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    sql: str


def shipped(package: str) -> list[Migration]:
    """Return all migrations of a store's package, in order.

    >>> [migration.version for migration in shipped("mainspring.stores.sqlite")][:1]
    [1]
    """
    files = resources.files(package).joinpath("migrations").iterdir()
    found: list[Migration] = []
    for file in sorted((f for f in files if f.name.endswith(".sql")), key=lambda f: f.name):
        version, _, name = file.name.removesuffix(".sql").partition("_")
        found.append(Migration(int(version), name, file.read_text("utf-8")))
    return found
