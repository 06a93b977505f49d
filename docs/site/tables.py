"""Every table and column of the SQL stores, from their SQL: docs/reference/tables.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/reference/tables.md"
STORES = {"SQLite": "sqlite", "PostgreSQL": "postgres"}
CREATED = re.compile(r"^CREATE TABLE (?:mainspring\.)?(\w+) \(", re.MULTILINE)
DESCRIBED = re.compile(r"((?:^--[^\n]*\n)+)CREATE TABLE (?:mainspring\.)?(\w+)", re.MULTILINE)
COLUMN = re.compile(r'"?(\w+)"? ([a-zA-Z]+)(.*)')
CONSTRAINTS = {"PRIMARY", "CONSTRAINT", "UNIQUE"}
HEAD = """\
# Tables

<!-- Written by `make docs` from the stores' SQL; what is changed here is lost. -->

What lies in the database, for readers with tools of their own. Read as you like; write through mainspring
alone: rows depend on each other and carry checksums. Columns may be added with any minor release; `schema_migrations`
tells which migrations were run. Times are microseconds since 1970 (UTC). Bodies, contexts and details are the exact
JSON bytes that were written ([how messages are stored](wire-format.md)). In PostgreSQL the tables lie in the schema
that the URL names.

The SQL itself: [SQLite](../../src/mainspring/stores/sqlite/schema.sql),
[PostgreSQL](../../src/mainspring/stores/postgres/schema.sql).
"""


def page() -> str:
    """Return the page as it is committed."""
    columns = {store: columns_of(folder) for store, folder in STORES.items()}
    notes = {store: _notes(folder) for store, folder in STORES.items()}
    parts = [HEAD]
    for table in sorted({table for found in columns.values() for table in found}):
        parts.append(f"\n## `{table}`\n")
        told = {store: notes[store][table] for store in STORES if table in notes[store]}
        for store, note in told.items():
            parts.append(f"\n{note}\n" if len(set(told.values())) == 1 else f"\n{store}: {note}\n")
            if len(set(told.values())) == 1:
                break
        parts.append("\n" + _rows(table, columns))
    return "".join(parts)


def _rows(table: str, columns: dict[str, dict[str, dict[str, str]]]) -> str:
    names = dict.fromkeys(name for store in STORES for name in columns[store].get(table, {}))
    lines = [f"| column | {' | '.join(STORES)} |", "|---|---|---|"]
    for name in names:
        types = [columns[store].get(table, {}).get(name, "-") for store in STORES]
        lines.append(f"| `{name}` | {' | '.join(types)} |")
    return "\n".join(lines) + "\n"


def columns_of(folder: str) -> dict[str, dict[str, str]]:
    """Return the tables of a store's schema, with their columns and the types of these."""
    text = (ROOT / f"src/mainspring/stores/{folder}/schema.sql").read_text()
    return {found[1]: _columns_in(_in_brackets(text[found.end() :])) for found in CREATED.finditer(text)}


def _columns_in(body: str) -> dict[str, str]:
    columns: dict[str, str] = {}
    for line in re.split(r",\s*(?![^(]*\))", body):
        found = COLUMN.match(line.strip())
        if found and found[1] not in CONSTRAINTS:
            nullable = "" if "NOT NULL" in found[3] or "PRIMARY KEY" in found[3] else ", or NULL"
            columns[found[1]] = f"{found[2].lower()}{nullable}"
    return columns


def _in_brackets(text: str) -> str:
    """Return what stands before the bracket that closes."""
    depth = 1
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[:place]
    raise ValueError("a table that does not end")


def _notes(folder: str) -> dict[str, str]:
    notes: dict[str, str] = {}
    for migration in sorted((ROOT / f"src/mainspring/stores/{folder}/migrations").glob("*.sql")):
        for comment, table in DESCRIBED.findall(migration.read_text()):
            lines = [line.removeprefix("--").strip() for line in comment.splitlines()]
            notes[table] = " ".join(line for line in lines if line)
    return notes
