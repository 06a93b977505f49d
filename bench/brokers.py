"""Brokers: how many messages a second come in and go out through each, with one worker."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import aio_pika
from msgspec import json

from bench.checks import NotDoneError
from bench.measure import Figures, Meter
from bench.settings import Settings
from mainspring import Complete, Decisions, Event, Mainspring, Send, Workflow
from mainspring.app.internals import internals_of
from mainspring.brokers import Broker, Brokers, Outgoing
from mainspring.brokers.nats import NatsBroker
from mainspring.brokers.rabbitmq import RabbitBroker
from mainspring.brokers.redis import RedisBroker
from tests.edges.brokers.servers import Server, nats_server, valkey_server

PER_S = 2_000
BATCH = 500
PATIENCE_SECONDS = 600.0
LOOK_SECONDS = 0.005
RABBITMQ = "MAINSPRING_TEST_RABBITMQ"
KAFKA = "MAINSPRING_TEST_KAFKA"
USUAL_RABBITMQ = "amqp://guest:guest@127.0.0.1:5672/"
PADDING = "x" * 150


@dataclass(frozen=True)
class Noted:
    """About 200 bytes of JSON."""

    id: str
    text: str


@dataclass(frozen=True)
class Tell:
    id: str
    text: str


@dataclass(frozen=True)
class Told:
    id: str
    text: str


@dataclass(frozen=True)
class Open:
    """The only state."""


class Notes(Workflow[Noted | Tell, Open, Told]):
    """What comes in is noted in one step, or told on in one."""

    begins = Noted | Tell
    initial_state = Open()

    def route(self, message: Noted | Tell, /) -> str | None:
        return message.id

    def decide(self, message: Noted | Tell, state: Open, /) -> Decisions[Any, Told] | None:
        match message:
            case Noted():
                return [Complete()]
            case Tell(id, text):
                return [Send(Told(id, text)), Complete()]

    def evolve(self, state: Open, event: Event[Any, Any], /) -> Open | None:
        return None


class Measured(asyncio.Event):
    """A broker under measurement: counts what it confirmed."""

    def __init__(self, broker: Broker, wanted: int) -> None:
        super().__init__()
        self._broker = broker
        self._left = wanted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def publish(self, messages: list[Outgoing]) -> list[Exception | None]:
        outcomes = await self._broker.publish(messages)
        self._left -= sum(outcome is None for outcome in outcomes)
        if self._left <= 0:
            self.set()
        return outcomes


def run(settings: Settings) -> Figures:
    """Take n messages from each broker that there is, each accepted and stepped; then send n to each, confirmed."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    figures: Figures = {}
    busy: list[float] = []
    names: list[str] = []
    for name, make in (("nats", _nats), ("redis", _redis), ("rabbitmq", _rabbitmq), ("kafka", _kafka)):
        async with AsyncExitStack() as exits:
            broker = make(exits)
            if broker is None:
                continue
            names.append(name)
            found = await _measured(settings, name, broker)
            busy.append(found.pop("others_busy"))
            figures |= found
    figures["slowest_per_s"] = min(figures[f"{name}_{way}_per_s"] for name in names for way in ("in", "out"))
    figures["per_s_target"] = PER_S
    figures["others_busy"] = max(busy)
    return figures


async def _measured(settings: Settings, name: str, broker: Broker) -> Figures:
    place = f"bench.{name}.{uuid4().hex[:8]}"
    await broker.open()
    try:
        await _fill(broker, f"{place}.in", settings.n)
        figures = {**await _in(settings, name, broker, place), **await _out(settings, name, broker, place)}
    finally:
        await broker.close()
        if name == "rabbitmq":
            await _removed(f"{place}.in", f"{place}.out")
    return figures


async def _removed(*queues: str) -> None:
    """Leave no queues behind at a server that is not the bench's own."""
    async with await aio_pika.connect(_rabbitmq_url()) as connection, connection.channel() as channel:
        for queue in queues:
            await channel.queue_delete(queue)


async def _fill(broker: Broker, address: str, n: int) -> None:
    for begin in range(0, n, BATCH):
        messages = [
            Outgoing(
                address,
                f"{address}-{number}",
                json.encode(Noted(f"{address}-{number}", PADDING)),
                {"ce-specversion": "1.0", "ce-id": str(number), "ce-source": "/bench", "ce-type": "Noted"},
                key=str(number),
            )
            for number in range(begin, min(begin + BATCH, n))
        ]
        failed = [outcome for outcome in await broker.publish(messages) if outcome is not None]
        if failed:
            raise NotDoneError(f"{len(failed)} messages were not confirmed: {failed[0]}")


async def _in(settings: Settings, name: str, broker: Broker, place: str) -> Figures:
    """From the start of a worker to the last acknowledgement."""
    async with _app(settings, broker, place) as app:
        source = internals_of(app).services.sources["in"]
        with Meter(settings.server_pid) as meter:
            await _until(lambda: source.figures.received >= settings.n)
        figures = source.figures
        if figures.accepted != settings.n or figures.undelivered:
            raise NotDoneError(f"{figures.accepted:,} of {settings.n:,} messages were accepted through {name}")
    return _named(name, "in", settings.n, meter)


async def _out(settings: Settings, name: str, broker: Broker, place: str) -> Figures:
    """From the first send to the last confirmation; each is a step that sends."""
    watched = Measured(broker, settings.n)
    async with _app(settings, cast("Broker", watched), place) as app:
        with Meter(settings.server_pid) as meter:
            for begin in range(0, settings.n, settings.chunk):
                numbers = range(begin, min(begin + settings.chunk, settings.n))
                await app.send_many([Tell(f"{place}.out-{number}", PADDING) for number in numbers])
            async with asyncio.timeout(PATIENCE_SECONDS):
                await watched.wait()
        if (left := (await app.stats()).dead_letters) != 0:
            raise NotDoneError(f"{left} messages to {name} became dead letters")
    return _named(name, "out", settings.n, meter)


@asynccontextmanager
async def _app(settings: Settings, broker: Broker, place: str) -> AsyncGenerator[Mainspring]:
    app = Mainspring(settings.url)
    app.add(Notes())
    brokers = Brokers(app, "bench")
    brokers.add("main", cast("Broker", _Kept(broker)))
    brokers.endpoint("in", "main", f"{place}.in")
    brokers.endpoint("out", "main", f"{place}.out")
    brokers.receive("in", Noted)
    brokers.send(Told, to="out")
    async with app:
        yield app


class _Kept:
    """A broker that stays open when its app stops."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def close(self) -> None:
        """Stay open."""


async def _until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not done():  # noqa: ASYNC110  what is counted tells nobody
            await asyncio.sleep(LOOK_SECONDS)


def _named(name: str, way: str, n: int, meter: Meter) -> Figures:
    found = meter.figures(n)
    return {
        f"{name}_{way}_per_s": round(n / meter.seconds),
        f"{name}_{way}_cpu_us_each": found["cpu_us_each"],
        "others_busy": found["others_busy"],
    }


# ---- the brokers that there are


def _nats(exits: AsyncExitStack) -> Broker | None:
    server = _running(nats_server(), exits)
    return NatsBroker(f"nats://127.0.0.1:{server.port}", streams={"BENCH": ["bench.>"]})


def _redis(exits: AsyncExitStack) -> Broker | None:
    server = _running(valkey_server("--appendonly", "yes", "--appendfsync", "everysec"), exits)
    return RedisBroker(f"redis://127.0.0.1:{server.port}")


def _rabbitmq(exits: AsyncExitStack) -> Broker | None:
    url = _rabbitmq_url()
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or 5672), timeout=1).close()
    except OSError:
        return None
    return RabbitBroker(url)


def _kafka(exits: AsyncExitStack) -> Broker | None:
    # The mock cluster of the tests answers at the end of each wait: what it would measure is that wait.
    servers = os.environ.get(KAFKA)
    from mainspring.brokers.kafka import KafkaBroker  # noqa: PLC0415  no other measurement is to have it in memory

    return KafkaBroker(f"kafka://{servers}") if servers else None


def _rabbitmq_url() -> str:
    return os.environ.get(RABBITMQ, USUAL_RABBITMQ)


def _running(server: Server, exits: AsyncExitStack) -> Server:
    server.start()
    exits.callback(server.remove)
    return server


def _missed(figures: Figures) -> str:
    """Return which of the targets were missed, if any was."""
    wanted = [(name, way) for name in ("nats", "redis") for way in ("in", "out")]
    below = [f"{name} {way}" for name, way in wanted if figures[f"{name}_{way}_per_s"] < PER_S]
    return f" Less than wanted: {', '.join(below)}." if below else ""


def section(figures: Figures) -> str:
    """Return a result as a few lines for a report."""
    table = ["| | in, messages a second | out, messages a second | CPU of the worker, in / out |", "|---|---|---|---|"]
    for name in [key.removesuffix("_in_per_s") for key in figures if key.endswith("_in_per_s")]:
        ways = [figures[f"{name}_{way}_per_s"] for way in ("in", "out")]
        cpu = [figures[f"{name}_{way}_cpu_us_each"] for way in ("in", "out")]
        table.append(f"| {name} | {ways[0]:,.0f} | {ways[1]:,.0f} | {cpu[0]:.0f} / {cpu[1]:.0f} µs a message |")
    end = (
        f"{figures['n']:,.0f} messages of about 200 bytes, one worker; at least {PER_S:,} a second wanted on NATS and "
        "Redis. In: from the start of the worker to the last acknowledgement, each message accepted and stepped in an "
        "instance of its own. Out: from the first send to the last confirmation, each sent by a step of its own. "
        "NATS with its defaults, Valkey with `appendfsync everysec`, RabbitMQ with quorum queues"
        f"{'' if 'kafka_in_per_s' in figures else f'; no Kafka ({KAFKA} names none)'}. Others took "
        f"{figures['others_busy']:.0%} of the machine meanwhile. Medians of {figures['repeats']} runs."
        f"{' Set up as `mainspring worker` is.' if figures.get('tuned') else ''}{_missed(figures)}"
    )
    return "\n".join([f"## Brokers, on {figures['store']}", "", *table, "", end])
