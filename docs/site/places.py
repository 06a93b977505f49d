"""Every place where content could be kept or shown, as the code has it: what `content.py` must have a word about."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click

from docs.site import routes, tables
from mainspring.cli.group import commands
from mainspring.telemetry.instruments import Instruments

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src/mainspring"


def all_columns() -> list[str]:
    """Return the columns of all tables of both stores, as in `events.body`."""
    return list(dict.fromkeys(column for store in tables.STORES.values() for column in columns_of(store)))


def columns_of(store: str) -> list[str]:
    """Return the columns of all tables of a store.

    >>> "posted.body" in columns_of("sqlite"), "posted.body" in columns_of("postgres")
    (False, True)
    """
    schema = tables.columns_of(store)
    return [f"{table}.{name}" for table in sorted(schema) for name in schema[table]]


def all_routes() -> list[str]:
    """Return all routes, as in `GET /api/timers`."""
    paths = routes.document()["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


def all_commands() -> list[str]:
    """Return all commands, those in groups with their group's name."""
    found, context = list[str](), click.Context(commands)
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        within = command.list_commands(context) if isinstance(command, click.Group) else []
        found += [f"{name} {each}" for each in within] or [name]
    return found


def all_span_attributes() -> list[str]:
    """Return the attributes that spans and their events have."""
    written = "".join((SOURCE / name).read_text() for name in ("engine/observer.py", "telemetry/tracing.py"))
    named = re.findall(r'(?<!logger[(])"((?:messaging|mainspring|error|exception)[.][a-z_.]+)"', written)
    # Whoever ends a span may give it more, by their names alone.
    more = [f"mainspring.{name}" for name in re.findall(r"_tracing[.]end\(.*?\b(\w+)=", written)]
    return list(dict.fromkeys([*named, *more]))


def all_labels() -> list[str]:
    """Return the labels that instruments have."""
    return sorted({label for instrument in Instruments() for label in instrument.definition.labels})


def all_writers() -> list[str]:
    """Return the modules that write files, as far as their code shows it."""
    return [
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        if any(_writes(node) for node in ast.walk(ast.parse(path.read_text())))
    ]


def _writes(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called, told = ast.unparse(node.func), ", ".join(ast.unparse(each) for each in node.args)
    if called.endswith(("write_text", "write_bytes", "mkstemp", "TemporaryDirectory", "TemporaryFile")):
        return True
    if called == "apsw.Connection":
        return not any("READONLY" in ast.unparse(each.value) for each in node.keywords)
    if called == "os.open":
        return "O_CREAT" in told
    return called.rpartition(".")[2] == "open" and re.search(r"'[rb]*[wax+]", told) is not None
