"""The catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.proof.postgres_faults import clocks, locks, room, server, sessions, standby
from tests.proof.postgres_faults.stage import Stage
from tests.support.postgres.server import Server


@asynccontextmanager
async def straight(stage: Stage) -> AsyncGenerator[list[str]]:
    """Let all go straight to the server."""
    yield [stage.url]


@dataclass(frozen=True)
class Fault:
    """What goes wrong, how often in a short run (0: only in a long one), and by which ways workers go to the server."""

    name: str
    what: str
    trouble: Callable[[Stage, int], Coroutine[Any, Any, Counter[str]]]
    short: int
    long: int
    around: Callable[[Stage], AbstractAsyncContextManager[list[str]]] = straight
    server: Callable[[], Server] | None = None
    """What makes the server that it needs; any other will do unless given."""
    ends_server: bool = False
    """Whether it ends the server that it is given."""

    @property
    def own_server(self) -> bool:
        """Whether nobody else can use the server meanwhile."""
        return self.ends_server or self.server is not None


_LOCKED = partial(locks.held, setting="lock_timeout")
_SLOW = partial(locks.held, setting="statement_timeout")
_CABLE = sessions.through_a_cable
_ONE_CABLE = sessions.one_through_a_cable
_POOR = sessions.as_a_poor_user
_LATE = partial(standby.takes_over, standby_away=True)

FAULTS: Final = (
    Fault("stop", "the server is stopped and started", partial(server.restarts, kill=False), 0, 30, ends_server=True),
    Fault("crash", "the server crashes and is started", partial(server.restarts, kill=True), 1, 30, ends_server=True),
    Fault(
        "recovery",
        "the server crashes, and crashes again while it recovers",
        server.dies_in_recovery,
        0,
        30,
        ends_server=True,
    ),
    Fault("read-only", "the server lets nobody write for a while", server.read_only, 0, 20),
    Fault("sessions", "all sessions are ended again and again", sessions.ended, 1, 100),
    Fault("listeners", "the sessions that listen are ended", sessions.listeners_ended, 0, 100),
    Fault("commits", "the line is cut between COMMIT and its answer", sessions.commits_cut, 8, 1_000, _CABLE),
    Fault("stall", "nothing passes for longer than a lease", sessions.stalled, 0, 20, _ONE_CABLE),
    Fault("half-open", "connections end at the server's end alone", sessions.half_open, 0, 20, _ONE_CABLE),
    Fault("connections", "there are fewer connections than are wanted", sessions.starved, 0, 20, _POOR),
    Fault("deadlocks", "others lock our rows in the other order", locks.deadlocks, 0, 100),
    Fault("locks", "a lock is held for longer than we wait for it", _LOCKED, 0, 50),
    Fault("timeouts", "statements take longer than they may", _SLOW, 1, 50),
    Fault("left-open", "a transaction is left open", locks.left_open, 0, 20),
    Fault("clocks", "workers' clocks are wrong by an hour", clocks.wrong, 0, 10),
    Fault("failover", "a synchronous standby takes over", standby.takes_over, 0, 10, standby.with_a_standby, Server),
    Fault("standby", "it does, after commits had to wait for it", _LATE, 0, 10, standby.with_a_standby, Server),
    Fault("memory", "there is no memory for statements", room.no_memory, 0, 20),
    Fault("disk", "the disk of the tables is full for a while", room.tables_full, 1, 10, server=room.small_tables),
    Fault("log", "the disk of the log is full, and the server ends", room.log_full, 0, 10, server=room.small_log),
)
