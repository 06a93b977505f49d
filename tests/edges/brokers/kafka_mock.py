"""Kafka for tests: librdkafka's mock cluster, which speaks Kafka's protocol on a port of this process.

The wheel of `confluent-kafka` brings it. Its Python side has no way to set what tests need (partitions of a topic, no
wait of three seconds before a group's first assignment), so the library's own functions are called.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka.consumer.group_coordinator import (  # pyright: ignore[reportMissingTypeStubs]
    CoordinatorGroupRebalance,
    GroupCoordinator,
)

_PRODUCER: Final = 0
_UNKNOWN_TOPIC: Final = 3
_ERROR_BYTES: Final = 512
_LEADER_SECONDS: Final = 0.05
_FOLLOWER_SECONDS: Final = 1.0


class KafkaMock:
    """A cluster in this process. Records are in memory, and gone with it."""

    def __init__(self, brokers: int = 1) -> None:
        self._library = _library()
        self._brokers = brokers
        self._begin()

    def _begin(self) -> None:
        why = ctypes.create_string_buffer(_ERROR_BYTES)
        settings = self._library.rd_kafka_conf_new()
        # It would say that it knows no cluster, which it is about to make.
        self._library.rd_kafka_conf_set(settings, b"log_level", b"0", why, _ERROR_BYTES)
        self._client = self._library.rd_kafka_new(_PRODUCER, settings, why, _ERROR_BYTES)
        if not self._client:
            raise RuntimeError(f"librdkafka made no client: {why.value.decode()}")
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, self._brokers)
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)

    @property
    def servers(self) -> str:
        """Where it listens: `host:port`, separated by commas."""
        return self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        if error := self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1):
            raise RuntimeError(f"the mock cluster made no topic {topic}: error {error}")

    def hide(self, topic: str) -> None:
        """Let a topic be unknown, which else is made when somebody asks for it."""
        self._library.rd_kafka_mock_topic_set_error(self._cluster, topic.encode(), _UNKNOWN_TOPIC)

    def down(self, broker: int = 1) -> None:
        """Cut a broker off: connections are closed, and new ones refused."""
        self._library.rd_kafka_mock_broker_set_down(self._cluster, broker)

    def up(self, broker: int = 1) -> None:
        """Let a broker take connections again. It has kept what it had."""
        self._library.rd_kafka_mock_broker_set_up(self._cluster, broker)

    def begin_anew(self) -> None:
        """Forget everything: another cluster, at another port."""
        self.close()
        self._begin()

    def close(self) -> None:
        """End the cluster."""
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)


@contextmanager
def leader_last() -> Generator[None]:
    """Let the leader of a group hand partitions round only when all others have asked for their share.

    The mock (and no real broker) refuses a member that asks for its share after that.
    """
    coordinator: Any = GroupCoordinator
    rebalance: Any = CoordinatorGroupRebalance
    shares, follows = coordinator._perform_assignment, rebalance._on_join_follower  # noqa: SLF001  a fault of the mock
    asked: set[tuple[int, str]] = set()

    async def follow(self: Any) -> Any:
        asked.add((self._coordinator.generation, self._coordinator.member_id))
        return await follows(self)

    async def last(self: Any, response: Any) -> Any:
        others = {(self.generation, member) for member, *_ in response.members if member != self.member_id}
        ends = asyncio.get_running_loop().time() + _FOLLOWER_SECONDS
        while not others <= asked and asyncio.get_running_loop().time() < ends:  # noqa: ASYNC110  several may ask
            await asyncio.sleep(_LEADER_SECONDS)  # one that has left meanwhile never asks
        if others:
            # What they wrote is on its way, and the mock tells nobody when it came.
            await asyncio.sleep(_LEADER_SECONDS)
        return await shares(self, response)

    coordinator._perform_assignment, rebalance._on_join_follower = last, follow  # noqa: SLF001  as above
    try:
        yield
    finally:
        coordinator._perform_assignment, rebalance._on_join_follower = shares, follows  # noqa: SLF001  as above


@cache
def _library() -> Any:
    """Return the library that the wheel brings, with its functions' types; or skip the test."""
    package = importlib.util.find_spec("confluent_kafka")
    if package is None or package.origin is None:
        pytest.skip("no Kafka: the package confluent-kafka is not installed")
    beside = Path(package.origin).parent.parent / "confluent_kafka.libs"
    found = sorted(beside.glob("librdkafka*.so*"))
    if not found:
        pytest.skip("no Kafka: this platform's wheel of confluent-kafka has no librdkafka of its own")
    library: Any = ctypes.CDLL(str(found[0]))
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "rd_kafka_new": (pointer, [number, pointer, text, ctypes.c_size_t]),
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_conf_set": (number, [pointer, text, text, text, ctypes.c_size_t]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_new": (pointer, [pointer, number]),
        "rd_kafka_mock_cluster_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_topic_create": (number, [pointer, text, number, number]),
        "rd_kafka_mock_topic_set_error": (None, [pointer, text, number]),
        "rd_kafka_mock_broker_set_down": (number, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_broker_set_up": (number, [pointer, ctypes.c_int32]),
    }
    for name, (returned, taken) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = returned, taken
    return library
