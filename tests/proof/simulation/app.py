"""The app that every node runs, built afresh each time, and the outside world that its handlers change."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mainspring import Breaker, Context, DoNotRetryError, FeedEntry, Mainspring, Retry
from mainspring.app.internals import internals_of
from mainspring.brokers.port import Outgoing
from mainspring.brokers.sink import Publisher, Sink
from mainspring.brokers.source import BrokerSource, SourceOptions
from mainspring.port.store import Store
from tests.proof.crash.journey import CAPS, WORKFLOWS, Despair, Leg, LegDone, Paid, Pay, Steadied, Wave, Wobble
from tests.proof.simulation import consignments, contracts, petitions, score, workflows
from tests.proof.simulation.post import Branch

if TYPE_CHECKING:
    from tests.proof.simulation.node import Node, VirtualRuntime
    from tests.proof.simulation.world import World

Code: TypeAlias = Literal["old", "new"]

TIMEOUT: Final = timedelta(seconds=4)
RETRY: Final = Retry(max_attempts=40, first=timedelta(milliseconds=200), cap=timedelta(seconds=4))
POISON_RETRY: Final = Retry(max_attempts=3, first=timedelta(milliseconds=200))
# Tried as often as the kill loop's judge expects of each.
JOURNEY_RETRY: Final = {
    name: Retry(max_attempts=cap, first=timedelta(milliseconds=20), cap=timedelta(seconds=4))
    for name, cap in CAPS.items()
}


class OutsideError(Exception):
    """As planned."""


@dataclass(frozen=True)
class Seen:
    """A document of the projection: how many events of an instance were folded into it, and which was the last."""

    events: int
    last: int


@dataclass
class Outside:
    """What handlers change, and all that they did. It honours idempotency keys: what is done is not done again."""

    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    made: dict[str, str] = field(default_factory=dict[str, str])
    refused: set[str] = field(default_factory=set[str])
    reserved: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    # A step that was given up is not reserved by an attempt that was forgotten somewhere and comes later.
    given_up: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def make(self, key: str, what: Callable[[], None] | None, at_us: int) -> None:
        """Have an effect, once for each key."""
        if key in self.refused:
            raise DoNotRetryError("refused before")
        if key not in self.made:
            self.made[key] = ""
            self.lines.append({"effect": key, "at_us": at_us})
            if what is not None:
                what()

    def reserve(self, command: workflows.Reserve, key: str) -> None:
        """Take a room, unless it was given up already."""
        place = (command.holiday, command.step)
        if place not in self.given_up:
            self.reserved[place] = key

    def unreserve(self, command: workflows.Unreserve) -> None:
        """Give a room back."""
        self.given_up.add((command.holiday, command.step))
        self.reserved.pop((command.holiday, command.step), None)


class Hands:
    """The handlers' way to the outside, from one node: it takes time, and goes wrong as the plan says."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._world: World = node.world
        self.outside = node.world.outside
        self._random = node.world.plan.random(f"handlers/{node.party.name}")
        self.branch = Branch(node.world.post, node.party.name)
        self.sink = Sink(self.branch, consignments.REPORTED)

    def called(self, context: Context) -> None:
        """Take down a call."""
        self._line(
            call=context.idempotency_key,
            attempt=context.attempt,
            type=type(context.envelope.message).__name__,
            causation=context.envelope.causation_id,
            generation=self._node.worker,
        )

    def failed(self, context: Context) -> None:
        """Take down a failure."""
        self._line(failed=context.idempotency_key, attempt=context.attempt)

    def _line(self, **values: Any) -> None:
        self._world.outside.lines.append({**values, "at_us": self._world.loop.now_us})
        self._world.trace.line(self._node.party.name, " ".join(f"{name}={value}" for name, value in values.items()))

    async def make(self, context: Context, what: Callable[[], None] | None = None, *, refuses: bool = False) -> None:
        """Have an effect outside, or fail to: before it, after it, or by waiting for ever."""
        self.called(context)
        key = context.idempotency_key
        fault = self._fault(key)
        outside, loop = self._world.outside, self._world.loop

        def happen() -> None:
            if refuses:
                outside.refused.add(key)
                raise DoNotRetryError("no room")
            if fault != "handler_error":
                outside.make(key, what, loop.now_us)
            if fault is not None:
                raise OutsideError(fault)

        back = 1e6 if fault == "handler_hang" else self._random.uniform(0.001, 0.3)
        try:
            await loop.remote(happen, self._random.uniform(0.001, 0.3), back)
        except (Exception, asyncio.CancelledError):
            self.failed(context)
            raise

    async def make_surely(self, context: Context) -> None:
        """Have an effect outside that never fails: its command may be tried a few times only."""
        self.called(context)
        key, outside, loop = context.idempotency_key, self._world.outside, self._world.loop
        await loop.remote(lambda: outside.make(key, None, loop.now_us), self._random.uniform(0.001, 0.3), 0.001)

    def make_now(self, context: Context) -> None:
        """Have an effect outside at once, as a handler that blocks does."""
        self.called(context)
        self._world.outside.make(context.idempotency_key, None, self._world.loop.now_us)

    def _fault(self, key: str) -> str | None:
        for kind, share in (("handler_error", 0.25), ("handler_lost", 0.15), ("handler_hang", 0.1)):
            if self._world.active(kind) and self._random.random() < share:
                self._world.trace.fault(kind, self._node.party.name, key)
                return kind
        return None


HANDS: Final[ContextVar[Hands]] = ContextVar("hands")


def app_of(node: Node, runtime: VirtualRuntime, store: Store) -> Mainspring:
    """Return the app, for a node. What never changes while it runs, its registry, is read from its source once only."""
    app = Mainspring("memory://", runtime=runtime, store=store)
    internals = internals_of(app)
    internals.wiring = internals_of(whole(node.code)).registry
    internals.services.add(_Source(app, HANDS.get().branch))
    return app


class _Source:
    """What comes from the broker, as a service of the app."""

    def __init__(self, app: Mainspring, branch: Branch) -> None:
        options = SourceOptions(group="simulated", types=frozenset({"Ship", "Scan"}))
        self._source = BrokerSource(app, "parcels", branch, "post", consignments.TAKEN, options, Counter())
        internals_of(app).services.edges["parcels"] = self._source

    def prepare(self) -> None: ...

    async def start(self) -> None:
        self._source.start()

    async def stop(self) -> None:
        await self._source.stop()


class _Sink:
    """The process's own sink, whoever asks: what is registered is shared by all processes."""

    address = consignments.REPORTED

    async def publish(self, message: Outgoing) -> None:
        await HANDS.get().sink.publish(message)


def _report_deliveries(app: Mainspring) -> None:
    sink: Any = _Sink()
    publisher = Publisher(internals_of(app).registry.codec, consignments.SERVICE, sink)
    options = {"retry": RETRY, "timeout": TIMEOUT}
    internals_of(app).registry.add_subscriber(publisher.handler(consignments.Delivered, "to reports", "event", options))


@cache
def whole(code: Code) -> Mainspring:
    """Return an app that is never started, with the workflows of the older or the newer code."""
    app = Mainspring("memory://")
    own = {**workflows.OWN, **({"Score": score.OldScore()} if code == "old" else {})}
    app.add(*WORKFLOWS.values(), *own.values())
    if code == "new":
        app.add(contracts.NumberedContract())
    _report_deliveries(app)
    _journey_handlers(app)
    _own_handlers(app)

    @app.projections.add(
        key=lambda entry: f"{entry.workflow}/{entry.instance}", workflows=("Journey", "Holiday", "Project")
    )
    def seen(document: Seen | None, entry: FeedEntry) -> Seen | None:
        return Seen((document.events if document else 0) + 1, entry.stream_position)

    return app


def _journey_handlers(app: Mainspring) -> None:
    @app.handler(retry=JOURNEY_RETRY["Leg"], timeout=TIMEOUT, breaker=None)
    async def walk(command: Leg, context: Context) -> LegDone:
        await HANDS.get().make(context)
        return LegDone(command.journey, command.leg)

    @app.handler(retry=JOURNEY_RETRY["Wobble"], timeout=TIMEOUT, breaker=None)
    async def wobble(command: Wobble, context: Context) -> Steadied:
        if context.attempt == 1:
            HANDS.get().called(context)
            HANDS.get().failed(context)
            raise OutsideError("wobbles once")
        await HANDS.get().make_surely(context)
        return Steadied(command.journey)

    @app.handler(retry=JOURNEY_RETRY["Despair"], timeout=TIMEOUT, breaker=None)
    async def despair(command: Despair, context: Context) -> None:
        HANDS.get().called(context)
        HANDS.get().failed(context)
        raise OutsideError("never works")

    @app.handler(retry=JOURNEY_RETRY["Wave"], timeout=TIMEOUT, breaker=None)
    def wave(command: Wave, context: Context) -> None:
        HANDS.get().make_now(context)

    # It keeps no key: that each is paid once is the transaction's doing alone.
    @app.handler(transaction=timedelta(seconds=4), retry=JOURNEY_RETRY["Pay"], breaker=None)
    async def pay(command: Pay, context: Context) -> Paid:
        await context.connection.execute("INSERT INTO payments (command) VALUES ($1)", context.idempotency_key)
        return Paid(command.journey)


def _own_handlers(app: Mainspring) -> None:
    @app.handler(retry=RETRY, timeout=TIMEOUT, breaker=None)
    async def reserve(command: workflows.Reserve, context: Context) -> workflows.Reserved:
        outside, key = HANDS.get().outside, context.idempotency_key
        await HANDS.get().make(context, lambda: outside.reserve(command, key), refuses=command.breaks)
        return workflows.Reserved(command.holiday, command.step)

    @app.handler(retry=RETRY, timeout=TIMEOUT, breaker=None)
    async def unreserve(command: workflows.Unreserve, context: Context) -> None:
        outside = HANDS.get().outside
        await HANDS.get().make(context, lambda: outside.unreserve(command))

    @app.handler(retry=RETRY, timeout=TIMEOUT)
    async def fetch(command: workflows.Fetch, context: Context) -> workflows.Fetched:
        await HANDS.get().make(context)
        return workflows.Fetched(command.errand)

    @app.handler(retry=RETRY, timeout=TIMEOUT, breaker=None)
    async def weigh(command: workflows.Weigh, context: Context) -> workflows.Weight:
        await HANDS.get().make(context)
        return workflows.Weight(command.part + 1)

    @app.handler(retry=RETRY, timeout=TIMEOUT, breaker=None)
    async def bill(command: workflows.Bill, context: Context) -> workflows.Billed:
        await HANDS.get().make(context)
        return workflows.Billed(command.gauge, command.units)

    @app.handler(retry=RETRY, timeout=TIMEOUT, breaker=None)
    async def proofread(command: contracts.Proofread, context: Context) -> contracts.Proofed:
        await HANDS.get().make(context)
        return contracts.Proofed(command.contract, command.words)

    # It never fails but for poison: its breaker has no reason to open.
    @app.handler(retry=POISON_RETRY, timeout=timedelta(hours=1), breaker=Breaker(failures=1))
    async def stamp(command: petitions.Stamp, context: Context) -> petitions.Stamped:
        if command.poison:
            HANDS.get().called(context)
            HANDS.get().failed(context)
            raise OutsideError("poison")
        await HANDS.get().make_surely(context)
        return petitions.Stamped(command.petition)

    @app.subscribe(retry=RETRY, timeout=TIMEOUT)
    async def file_paper(paper: workflows.PaperDone, context: Context) -> None:
        await HANDS.get().make(context)

    @app.subscribe(retry=RETRY, timeout=TIMEOUT)
    async def frame_paper(paper: workflows.PaperDone, context: Context) -> None:
        await HANDS.get().make(context)
