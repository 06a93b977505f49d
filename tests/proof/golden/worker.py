"""`python -m tests.proof.golden.worker URL EFFECTS`: a worker of the app, with the sources of any commit.

It says `working` when it has started. With `--dies-at N` it kills itself before the N-th statement with which it would
change the schema, or when it commits that. A worker that met a newer schema ends with the exit code 3; one of a commit
that does not know how to, with 4.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, Final

import apsw

from mainspring.errors import NewerSchemaError
from mainspring.stores.postgres.session import Session
from tests.proof.golden.golden_app import Hands, shop

NEWER: Final = 3
UNAWARE: Final = 4
_CHANGES: Final = re.compile(
    r"\s*(--.*\s+)*(CREATE|ALTER|INSERT INTO (mainspring\.)?(endings|schema_migrations)|COMMIT)", re.IGNORECASE
)


class Deadline:
    """Counts statements that migrate, and kills the process before one of them."""

    def __init__(self, dies_at: int) -> None:
        self._left = dies_at

    def saw(self, statement: str) -> None:
        if _CHANGES.match(statement):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """See every statement that reaches SQLite, and every script that goes to a server."""

        def hook(connection: apsw.Connection) -> None:
            def trace(_cursor: Any, statement: str, _bindings: Any) -> bool:
                self.saw(statement)
                return True

            connection.exec_trace = trace

        apsw.connection_hooks.append(hook)
        for name in ("run", "rows"):
            setattr(Session, name, self._seen(getattr(Session, name)))
        commit = Session.commit

        async def committing(session: Session) -> None:
            self.saw("COMMIT")
            await commit(session)

        setattr(Session, "commit", committing)  # noqa: B010  as above, by its name

    def _seen(self, ask: Any) -> Any:
        def seen(session: Session, statement: str, *values: Any) -> Any:
            self.saw(statement)
            return ask(session, statement, *values)

        return seen


async def main(url: str, effects: Path, dies_at: int) -> int:
    if dies_at:
        Deadline(dies_at).watch()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    app = shop(url, Hands(effects))
    if not hasattr(app, "ended"):
        return UNAWARE
    try:
        await app.start()
    except NewerSchemaError:
        return NEWER
    sys.stdout.write("working\n")
    sys.stdout.flush()
    waiting = {asyncio.create_task(stop.wait()), asyncio.create_task(app.ended())}
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await app.stop()
    return NEWER if any(isinstance(task.exception(), NewerSchemaError) for task in done) else 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR, format="%(asctime)s worker %(levelname)s %(message)s")
    parser = argparse.ArgumentParser(prog="python -m tests.proof.golden.worker", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("effects", type=Path)
    parser.add_argument("--dies-at", type=int, default=0)
    asked = parser.parse_args()
    sys.exit(asyncio.run(main(asked.url, asked.effects, asked.dies_at)))
