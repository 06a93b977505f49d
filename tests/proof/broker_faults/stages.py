"""The brokers of the drills, each with servers of its own, and who is killed there."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.edges.brokers.kafka_mock import KafkaMock
from tests.edges.brokers.servers import nats_server, valkey_server
from tests.proof.broker_faults.drill import Stage, Victim
from tests.proof.broker_faults.parcels import POSTED, POSTS
from tests.proof.broker_faults.servers import RabbitMQ, nats_cluster

STREAMS: Final = {"POSTS": [POSTS], "POSTED": [POSTED]}
# How long a worker that gives no sign of life is waited for: short, as it is killed all the time, but not so short that
# on a busy machine all of them seem dead: half of it without a renewal is enough for that.
TAKEOVER_SECONDS: Final = 1.5
# The mock takes the last second of it for handing partitions round.
SESSION_SECONDS: Final = 1.5
PARTITIONS: Final = 2

WORKERS: Final[tuple[Victim, ...]] = ("before acknowledging", "after acknowledging", "after publishing", "worker")
ALL: Final[tuple[Victim, ...]] = (*WORKERS, "broker", *WORKERS, "broker")


@contextmanager
def nats(folder: Path) -> Generator[Stage]:
    server = nats_server(synced=True)
    try:
        server.start()
        options = {"streams": STREAMS, "takeover_seconds": TAKEOVER_SECONDS}
        yield Stage("NATS", f"nats://127.0.0.1:{server.port}", options, [server])
    finally:
        server.remove()


@contextmanager
def nats_of_three(folder: Path) -> Generator[Stage]:
    with nats_cluster() as servers:
        urls = ",".join(f"nats://127.0.0.1:{server.port}" for server in servers)
        options = {"streams": STREAMS, "replicas": len(servers), "takeover_seconds": TAKEOVER_SECONDS}
        yield Stage("NATS, 3 nodes", urls, options, servers)


@contextmanager
def valkey(folder: Path) -> Generator[Stage]:
    server = valkey_server(synced=True)
    try:
        server.start()
        options = {"takeover_seconds": TAKEOVER_SECONDS}
        yield Stage("Valkey", f"redis://127.0.0.1:{server.port}", options, [server])
    finally:
        server.remove()


@contextmanager
def rabbitmq(folder: Path) -> Generator[Stage]:
    server = RabbitMQ(folder / "server")
    try:
        server.start()
        yield Stage("RabbitMQ", server.url, {}, [server])
    finally:
        server.end()


@contextmanager
def kafka(folder: Path) -> Generator[Stage]:
    """The mock has everything in memory: only workers are killed."""
    mock = KafkaMock()
    try:
        for topic in (POSTS, POSTED):
            mock.create(topic, PARTITIONS)
        yield Stage("Kafka's mock", f"kafka://{mock.servers}", {"session_seconds": SESSION_SECONDS})
    finally:
        mock.close()


STAGES: Final[dict[str, tuple[Callable[[Path], AbstractContextManager[Stage]], tuple[Victim, ...]]]] = {
    "nats": (nats, ALL),
    "nats-cluster": (nats_of_three, (*WORKERS, "broker", "worker", "broker", "broker")),
    "valkey": (valkey, ALL),
    "rabbitmq": (rabbitmq, ALL),
    "kafka": (kafka, (*WORKERS, *WORKERS)),
}
