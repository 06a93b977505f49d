"""What adapters share: publishing to several addresses at once, and what goes wrong beside that.

One address that is in trouble keeps its own messages waiting, and no others. What goes wrong while something is closed
or given back keeps nothing else from it; it stands in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager

from mainspring.brokers.port import Outgoing
from mainspring.errors import WiringError, told
from mainspring.logs import Quoted, logger

Publish = Callable[[str, list[Outgoing]], Awaitable[list[Exception | None]]]


async def published_by_address(messages: Sequence[Outgoing], publish: Publish) -> list[Exception | None]:
    """Return the outcomes in the order of the messages, which `publish` was given address by address.

    >>> async def publish(address: str, messages: list[Outgoing]) -> list[Exception | None]:
    ...     return [None if address == "orders" else KeyError(address)] * len(messages)
    >>> there = [Outgoing(address, "1", b"{}") for address in ("orders", "other", "orders")]
    >>> asyncio.run(published_by_address(there, publish))
    [None, KeyError('other'), None]
    """
    outcomes: list[Exception | None] = [None] * len(messages)
    by_address: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        by_address.setdefault(message.address, []).append(index)

    async def publish_to(address: str, indexes: list[int]) -> None:
        batch = [messages[index] for index in indexes]
        for index, outcome in zip(indexes, await publish(address, batch), strict=True):
            outcomes[index] = outcome

    await asyncio.gather(*(publish_to(address, indexes) for address, indexes in by_address.items()))
    return outcomes


log = logger("mainspring.brokers")


@contextmanager
def going_on(what: str) -> Generator[None]:
    """Continue after something that may fail, because the broker itself finds out what is lost by that.

    >>> with going_on("closing a channel"):
    ...     raise OSError("the line is cut")
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  a client's own errors have no common base
        log.debug("%s: %s", what, Quoted(told(error)))


@contextmanager
def installed(adapter: str, library: str, *modules: str) -> Generator[None]:
    """Say which extra brings a broker's client, where one of its modules is not installed.

    >>> with installed("nats", "nats-py", "nats"):
    ...     raise ModuleNotFoundError(name="nats.js")
    Traceback (most recent call last):
    mainspring.errors.running.WiringError: mainspring.brokers.nats needs nats-py. Install mainspring[nats].
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in modules:
            raise
        raise WiringError(
            f"mainspring.brokers.{adapter} needs {library}", f"Install mainspring[{adapter}]."
        ) from missing
