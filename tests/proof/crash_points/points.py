"""Crash points: counted in a process that is to die at one of them, by hooks that only tests install."""

from __future__ import annotations

import functools
import os
import re
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.stores.postgres import PostgresStore
from mainspring.stores.sqlite import SqliteStore
from mainspring.stores.sqlite.place import Place as SqlitePlace

Point: TypeAlias = int | str

NEVER: Final = 0
OPENED: Final = "after register_worker"
"""Behind it work is done; before it a database is opened, and brought up to date if it is an older one."""
STATEMENT_CHARACTERS: Final = 80
VERBS: Final = (
    *("open", "register_worker", "heartbeat", "release_worker", "relieve", "commit", "lend", "claim", "restore_output"),
    *("relay", "hand", "pick", "advance", "clear_documents", "purge"),
)
"""The verbs of the port that write."""


class Points:
    """Counts crash points, and kills this process at one: by its number, or by how its name begins.

    By a name it is killed at the first behind the opening, which has statements of the same names.
    """

    def __init__(self, last: Point, note: Path) -> None:
        self._last = last
        self._note = note
        self._passed: list[str] = []
        self._is_opened = False
        self._one = threading.Lock()  # the store has a thread of its own

    def reach(self, what: str) -> None:
        """Be at the next crash point. At the last one, write down what it is, and die."""
        with self._one:
            self._passed.append(what)
            self._is_opened = self._is_opened or what == OPENED
            if self._is_here(what):
                self.write_down()
                os.kill(os.getpid(), signal.SIGKILL)

    def _is_here(self, what: str) -> bool:
        if isinstance(self._last, str):
            return self._is_opened and what.startswith(self._last)
        return len(self._passed) == self._last

    def write_down(self) -> None:
        """Say which points were passed, one a line."""
        self._note.write_text("\n".join(self._passed))

    def install(self) -> None:
        """Have points around each verb of a store that writes, and around each statement inside."""
        for store in (SqliteStore, PostgresStore):
            for verb in VERBS:
                setattr(store, verb, self._around(verb, getattr(store, verb)))
        self._watch_sqlite()
        self._watch_postgres()

    def _around(self, name: str, verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(verb)
        async def watched(*values: Any, **named: Any) -> Any:
            self.reach(f"before {name}")
            answer = await verb(*values, **named)
            self.reach(f"after {name}")
            return answer

        return watched

    def _watch_sqlite(self) -> None:
        connect = SqlitePlace.connect

        def seen(event: dict[str, Any]) -> None:
            when = "before" if event["code"] == apsw.SQLITE_TRACE_STMT else "after"
            self.reach(f"{when} {_shown(event['sql'])}")

        def watched(self: SqlitePlace, *, writes: bool) -> apsw.Connection:
            connection = connect(self, writes=writes)
            if writes:
                connection.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, seen)
            return connection

        SqlitePlace.connect = watched

    def _watch_postgres(self) -> None:
        library: Any = asyncpg
        connect = library.connect

        def watched(*values: Any, **named: Any) -> Any:
            return connect(*values, connection_class=_connection_class(self), **named)

        library.connect = watched


def _connection_class(points: Points) -> type[Any]:
    library: Any = asyncpg

    class Watched(library.Connection):
        """A connection with a point before and after each statement, also of those that travel together."""

        async def execute(self, query: str, *values: Any, **named: Any) -> Any:
            # Outside a transaction, statements that travel together are one; they stay so.
            together = values or not (self.is_in_transaction() or query.startswith("BEGIN"))
            answer = None
            for statement in [query] if together else statements(query):
                answer = await _passed(points, statement, super().execute(statement, *values, **named))
            return answer

        async def executemany(self, command: str, *values: Any, **named: Any) -> Any:
            return await _passed(points, command, super().executemany(command, *values, **named))

        async def fetch(self, query: str, *values: Any, **named: Any) -> Any:
            return await _passed(points, query, super().fetch(query, *values, **named))

        async def fetchval(self, query: str, *values: Any, **named: Any) -> Any:
            return await _passed(points, query, super().fetchval(query, *values, **named))

    return Watched


async def _passed(points: Points, statement: str, running: Awaitable[Any]) -> Any:
    points.reach(f"before {_shown(statement)}")
    answer = await running
    points.reach(f"after {_shown(statement)}")
    return answer


def statements(script: str) -> list[str]:
    """Return the statements of a script. None here has a semicolon inside a text."""
    return [part.strip() for part in re.sub(r"--[^\n]*", "", script).split(";") if part.strip()]


def _shown(statement: str) -> str:
    return " ".join(statement.split())[:STATEMENT_CHARACTERS]
