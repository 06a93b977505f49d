"""Makes a database look as the first release would have left it: its first schema, with what that has room for."""

from __future__ import annotations

from typing import Final

import apsw

from mainspring.stores.postgres.schema import migrations as migrations_of_servers
from mainspring.stores.sqlite.schema import migrations as migrations_of_files
from tests.proof.crash.files import Place
from tests.proof.crash.tables import Database
from tests.proof.crash_points.points import statements

LEDGER: Final = "schema_migrations"


def first_schema(place: Place) -> None:
    """Put what a database has into the tables of the first schema."""
    if place.url.startswith("sqlite:"):
        _file(place)
    else:
        _server(place)


def _file(place: Place) -> None:
    younger = place.folder / "younger.db"
    place.database.rename(younger)
    connection = apsw.Connection(str(place.database))
    connection.execute("ATTACH ? AS younger", (str(younger),))
    ledger = connection.execute("SELECT sql FROM younger.sqlite_schema WHERE name = ?", (LEDGER,)).get
    for statement in (ledger, migrations_of_files()[0].sql):
        connection.execute(statement)
    tables = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (table,) in connection.execute(tables).fetchall():
        columns = "SELECT group_concat(name) FROM pragma_table_info(?, 'main')"
        names = connection.execute(columns, (table,)).get
        connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM younger.{table}")  # noqa: S608  our own names
    connection.execute(f"DELETE FROM main.{LEDGER} WHERE version > 1")  # noqa: S608  as above
    connection.close()
    younger.unlink()


def _server(place: Place) -> None:
    database = Database(place.url)
    try:
        for statement in (
            "ALTER SCHEMA mainspring RENAME TO younger",
            "CREATE SCHEMA mainspring",
            f"CREATE TABLE mainspring.{LEDGER} (LIKE younger.{LEDGER} INCLUDING ALL)",
            *statements(migrations_of_servers()[0].sql),
        ):
            database.rows(statement)
        columns = """
        SELECT table_name, string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
        WHERE table_schema = 'mainspring' GROUP BY table_name
        """
        for table, names in database.rows(columns):
            database.rows(f"TRUNCATE mainspring.{table}")
            into = f"INSERT INTO mainspring.{table} ({names}) OVERRIDING SYSTEM VALUE"
            database.rows(f"{into} SELECT {names} FROM younger.{table}")  # noqa: S608  our own names
        for (name,) in database.rows("SELECT sequencename FROM pg_sequences WHERE schemaname = 'mainspring'"):
            database.rows(f"SELECT setval('mainspring.{name}', last_value, is_called) FROM younger.{name}")  # noqa: S608  as above
        database.rows(f"DELETE FROM mainspring.{LEDGER} WHERE version > 1")  # noqa: S608  as above
        database.rows("DROP SCHEMA younger CASCADE")
    finally:
        database.close()
