"""Every place where content could be kept or shown, as the code has it: what `content.py` must have a word about."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import click

from docs.site import routes, tables
from mainspring import Mainspring
from mainspring.cli.group import commands
from mainspring.sources import syntax_tree
from mainspring.telemetry.instruments import Instruments
from mainspring.web import api

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src/mainspring"
# Libraries by which one speaks with somebody else's server.
CLIENTS = (
    *(
        "aio_pika",
        "aiohttp",
        "aiokafka",
        "aiormq",
        "botocore",
        "http.client",
        "httpcore",
        "httpx",
        "nats",
        "redis",
        "requests",
    ),
    *("smtplib", "urllib.request", "websockets"),
)
# What makes envelopes of messages, and writes them.
ENVELOPING = {"envelope_of", "written"}
WRITERS = (
    *("write_text", "write_bytes", ".touch", "mkstemp", "mkdtemp", "TemporaryDirectory", "TemporaryFile"),
    *("FileHandler", ".backup", "shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move"),
    *("shutil.copyfileobj", "shutil.make_archive"),
)
# They write if their mode says so.
OPENERS = ("open", "fdopen", "ZipFile")
# Reading one word of each call is cheap; writing each out as text is not.
MAY_WRITE = (*(name.rpartition(".")[2] for name in WRITERS), *OPENERS, "Connection")
VACUUM = "VACUUM INTO"
WIRE = "mainspring.codec.wire"
# What must stand in a module that writes or sends: to parse and walk all of them takes seconds.
WRITING = re.compile(rf"(?:{'|'.join(MAY_WRITE)})\s*\(|{VACUUM}")
SENDING = re.compile(rf"^\s*(?:import|from)\b.*\b(?:{'|'.join(map(re.escape, (*CLIENTS, WIRE)))})\b", re.MULTILINE)


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


@cache
def all_routes() -> list[str]:
    """Return all routes, as in `GET /api/timers`."""
    return [route.replace(":path}", "}") for route in routes.listed(api(Mainspring("memory://")).routes)]


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


@cache
def all_writers() -> list[str]:
    """Return the modules that write files, as far as their code shows it."""
    return [name for name, text in _sources().items() if WRITING.search(text) and writes(_read(name))]


@cache
def all_senders() -> list[str]:
    """Return the modules that make envelopes for others, or speak with the server of somebody else.

    The database is none: what is kept there, its columns tell. Spans and metrics go where their provider sends them.
    """
    return [name for name, text in _sources().items() if SENDING.search(text) and sends(_read(name))]


@cache
def _sources() -> dict[str, str]:
    return {path.relative_to(SOURCE).as_posix(): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


@cache
def _read(name: str) -> ast.Module:
    return syntax_tree(_sources()[name])


def sends(module: ast.AST) -> bool:
    """Return True if a module sends something elsewhere.

    >>> sends(ast.parse("from nats.aio.client import Client")), sends(ast.parse("import socket"))
    (True, False)
    """
    for node in ast.walk(module):
        if isinstance(node, ast.Import) and any(_is_client(each.name) for each in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            named = {each.name for each in node.names}
            if _is_client(node.module) or (node.module == WIRE and named & ENVELOPING):
                return True
    return False


def _is_client(library: str) -> bool:
    return any(library == each or library.startswith(f"{each}.") for each in CLIENTS)


def writes(module: ast.AST) -> bool:
    """Return True if a module writes a file.

    >>> writes(ast.parse("path.open(mode='w')")), writes(ast.parse("path.open()"))
    (True, False)
    """
    return any(_writes(node) for node in ast.walk(module))


def _writes(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and VACUUM in node.value
    if not isinstance(node, ast.Call):
        return False
    last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if not last.endswith(MAY_WRITE):
        return False
    called = ast.unparse(node.func)
    told = ", ".join(ast.unparse(each) for each in [*node.args, *(each.value for each in node.keywords)])
    if called.endswith(WRITERS):
        return True
    if called == "apsw.Connection":
        return "READONLY" not in told
    if called == "os.open":
        return "O_CREAT" in told
    return called.rpartition(".")[2] in OPENERS and re.search(r"'[rb]*[wax+]", told) is not None
