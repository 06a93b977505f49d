"""What happens to a PostgreSQL server while workers use it: it ends in order or by a crash, and it ends sessions."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Final

from tests.proof.crash.tables import AWAY, Database
from tests.support.postgres.server import Server

SESSIONS_END: Final = 0.3
# Some pauses are longer than those between two looks for the dead, so that they are relieved.
SHORTEST_PAUSE_SECONDS: Final = 1.5
LONGEST_PAUSE_SECONDS: Final = 9.0


@dataclass
class Counts:
    """How much of it there was."""

    stops: int = 0
    crashes: int = 0
    sessions: int = 0


class Upheaval:
    """A server of the run's own, with the durability that PostgreSQL has by itself."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._server = Server()
        self.counts = Counts()
        self._restart_at = 0.0

    @property
    def url(self) -> str:
        return self._server.url

    def start(self) -> None:
        self._server.start()
        self._restart_at = self._next()

    def end(self) -> None:
        self._server.remove()

    def happen(self) -> None:
        """Maybe end some sessions, maybe restart the server."""
        if self._chance.random() < SESSIONS_END:
            self._end_sessions()
        if time.monotonic() >= self._restart_at:
            self._restart()

    def _end_sessions(self) -> None:
        ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'mainspring' ORDER BY pid"
        database = Database(self.url)
        try:
            pids = [pid for (pid,) in database.rows(ours)]
            for pid in self._chance.sample(pids, self._chance.randint(0, len(pids))):
                database.rows("SELECT pg_terminate_backend(?1)", pid)
                self.counts.sessions += 1
        except AWAY:
            pass  # a server that has just started may still say no
        finally:
            database.close()

    def _restart(self) -> None:
        crashes = self._chance.random() < 0.5
        self._server.stop(kill=crashes)
        # For a while nobody is there: some who come back come too early.
        time.sleep(self._chance.choice((0.0, 0.0, 0.3)))
        self._server.start()
        self.counts.crashes += crashes
        self.counts.stops += not crashes
        self._restart_at = self._next()

    def _next(self) -> float:
        return time.monotonic() + self._chance.uniform(SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
