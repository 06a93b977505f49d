"""The world of a run: nodes on one database, faults for a while, then peace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.proof.simulation import petitions
from tests.proof.simulation.app import Code, Outside
from tests.proof.simulation.clients import Clients
from tests.proof.simulation.database import Database
from tests.proof.simulation.loop import VirtualLoop
from tests.proof.simulation.node import Node
from tests.proof.simulation.plan import Plan
from tests.proof.simulation.post import Post
from tests.proof.simulation.trace import Trace

LEASE_SECONDS: Final = 30
LONGEST_BACKOFF_SECONDS: Final = 4
# By invariant 17: lease, longest backoff, and half a minute. A breaker that opened last rests for a minute more.
QUIET_SECONDS: Final = LEASE_SECONDS + LONGEST_BACKOFF_SECONDS + 30 + 60
# So long it is watched that quiet stays quiet: a worker that was held may still come back.
AFTERMATH_SECONDS: Final = 15
# Processes with the newer code come among those with the older one; in peace there are only such.
NEW_SHARE: Final = 0.4
FAR_SECONDS: Final = 600


class World:
    """All of it."""

    def __init__(self, plan: Plan, *, kept: bool) -> None:
        self.plan = plan
        self.trace = Trace(kept=kept)
        self.loop = VirtualLoop(self.trace)
        self.trace.seconds = self.loop.time
        self.database = Database(self.loop)
        self.outside = Outside()
        self.post = Post(self)
        self.nodes: list[Node] = []
        self.peace = False
        self.last_echo = 0.0
        self.unquiet: list[str] = []
        self.complaints: list[str] = []
        self._made = 0
        self._deploys = plan.random("deploys")
        self.clients = Clients(self)
        self.loop.set_exception_handler(self._complain)

    def active(self, kind: str) -> bool:
        """Tell whether a kind of fault may fire now."""
        return not self.peace and kind in self.plan.faults

    def run(self) -> None:
        """Let everything happen."""
        handler = _Log(self)
        logger = logging.getLogger("mainspring")
        before = logger.level, logger.propagate
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        try:
            self.loop.run_until_complete(self.loop.begin(self.loop.world, self._story(), "story"))
        finally:
            logger.removeHandler(handler)
            logger.level, logger.propagate = before

    async def _story(self) -> None:
        for _ in range(self.plan.nodes):
            self.add_node()
        troubles = [
            self.loop.create_task(self._trouble(kind, trouble), name=kind) for kind, trouble in self._troubles().items()
        ]
        work = self.loop.create_task(self.clients.work(), name="clients")
        await asyncio.sleep(self.plan.fault_seconds)
        self.trace.line("world", "---- peace")
        self.peace = True
        for trouble in troubles:
            trouble.cancel()
        for node in self.nodes:
            node.party.turns_left = None
            if node.party.held is not None:
                self.loop.release(node.party)
            if node.code == "old":
                node.stop()
        # An answer that was lost before may still be waited for; that is the last of the faults.
        await asyncio.sleep(max(0, self.last_echo - self.loop.time()))
        await self._become_quiet(work)
        await work
        await asyncio.sleep(AFTERMATH_SECONDS)

    async def _become_quiet(self, work: asyncio.Task[None]) -> None:
        """Wait until nothing is to be done any more, as long as the design allows."""
        for _ in range(QUIET_SECONDS):
            await self.clients.settle()
            if work.done() and not self._open():
                self.trace.line("world", "---- quiet")
                return
            await asyncio.sleep(1)
        self.unquiet = self._open()

    def _open(self) -> list[str]:
        busy = self.database.busy(self.loop.now_us + FAR_SECONDS * 1_000_000)
        return busy + self.clients.open() + self.post.waiting()

    # ---- nodes

    def add_node(self) -> None:
        """Start a process. When it is over, another one takes its place after a while."""
        self._made += 1
        code: Code = "new" if self.peace or self._deploys.random() < NEW_SHARE else "old"
        node = Node(self, f"node-{self._made}", self._made, code)
        self.nodes.append(node)
        self.loop.create_task(self._replace(node), name=f"replace-{node.party.name}")

    async def _replace(self, node: Node) -> None:
        await node.over.wait()
        self.nodes.remove(node)
        seconds = self.plan.random(f"replace/{node.party.name}").choice((0.1, 1.0, 5.0, 35.0))
        # Where nobody else is left, or in peace, an operator does not wait.
        await asyncio.sleep(seconds if self.nodes and not self.peace else 0.1)
        self.add_node()

    def ready_nodes(self) -> list[Node]:
        """Return the processes that serve clients."""
        return [node for node in self.nodes if node.ready]

    # ---- troubles

    def _troubles(self) -> dict[str, Callable[[Node, Random], Any]]:
        return {
            "crash": self._crash,
            "crash_at_commit": lambda node, random: node.die_at_commit(random.choice(("before", "after"))),
            "pause": self._pause,
            "lease": self._end_lease,
            "restart": self._restart,
        }

    async def _trouble(self, kind: str, trouble: Callable[[Node, Random], Any]) -> None:
        if kind not in self.plan.faults:
            return
        random = self.plan.random(kind)
        while True:
            await asyncio.sleep(random.choice((0.05, 0.3, 1, 4, 12)) * random.random())
            ready = self.ready_nodes()
            if ready:
                trouble(random.choice(ready), random)
            await asyncio.sleep(random.uniform(1, 15))

    def _crash(self, node: Node, random: Random) -> None:
        turns = random.choice((1, 5, 20, 100, 400))
        node.party.turns_left = random.randrange(turns)
        self.trace.fault("crash", node.party.name, f"will die in {node.party.turns_left} turns")

    def _pause(self, node: Node, random: Random) -> None:
        seconds = random.choice((5, 25, 35, 50))
        self.trace.fault("pause", node.party.name, f"is held for {seconds} s")
        self.loop.hold(node.party)

        def release() -> None:
            if node.party.held is not None:
                self.trace.line(node.party.name, "goes on")
                self.loop.release(node.party)

        self.loop.elsewhere(seconds, release)

    def _end_lease(self, node: Node, _: Random) -> None:
        self.trace.fault("lease", node.party.name, "its lease ends")
        self.database.end_session(node.party.name)

    def _restart(self, node: Node, _: Random) -> None:
        self.trace.fault("restart", node.party.name, "stops in order")
        node.stop()

    def _complain(self, _: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.complaints.append(f"{context.get('message')}: {error!r}")
        self.trace.line("world", f"unhandled: {context.get('message')}: {error!r}")


class _Log(logging.Handler):
    """What the engine logs belongs to the story; what it logs with a trace is a mistake of its own."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self._world.trace.line("log", f"{record.levelname} {text}")
        if record.exc_info and record.exc_info[0] not in (None, petitions.DoubtError):
            formatter = logging.Formatter()
            self._world.complaints.append(f"{text}\n{formatter.formatException(record.exc_info)}")
