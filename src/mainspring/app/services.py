"""Services: what runs beside the engine, as the sources of brokers do. They begin after it and end before it drains."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from mainspring.logs import logger
from mainspring.port.records import DeadLetter

SourceState: TypeAlias = Literal["stopped", "connecting", "running", "paused", "failing"]

STOP_SECONDS: Final = 15.0

log = logger("mainspring.app")


class Service(Protocol):
    """Something that an app runs while it works.

    >>> class Ticker:
    ...     def prepare(self) -> None: ...
    ...     async def start(self) -> None: ...
    ...     async def stop(self) -> None: ...
    >>> service: Service = Ticker()
    """

    def prepare(self) -> None:
        """Declare what is missing, or raise a WiringError: called before the wiring is checked, also by clients."""
        ...

    async def start(self) -> None:
        """Start. The engine runs."""
        ...

    async def stop(self) -> None:
        """Stop accepting. What was accepted is still carried out afterwards."""
        ...


class Edge(Protocol):
    """A place where messages come in from outside. It can retry one that it could not take: see `undelivered`."""

    async def again(self, letter: DeadLetter, message: Any, actor: str | None) -> None:
        """Take a dead letter of this edge, or `message` in its place; raise if it cannot be taken still."""
        ...


class SourceFigures(Struct, frozen=True):
    """Figures of a source, in this process since it began: `lag` is for all processes, None where that is not known.

    `state` is `stopped`, `connecting`, `running`, `paused`, or `failing` with the `error`. Of what was `received`,
    messages were `accepted`, known already (`duplicates`), without a taker (`skipped`), or could not be taken
    (`undelivered`) and are dead letters.
    """

    name: str
    broker: str
    address: str
    group: str
    state: SourceState
    error: str | None = None
    lag: int | None = None
    received: int = 0
    accepted: int = 0
    duplicates: int = 0
    skipped: int = 0
    undelivered: int = 0


class Source(Protocol):
    """An edge that fetches messages by itself, and can be paused: `brokers.source("orders")`.

    >>> from mainspring import Mainspring
    >>> from mainspring.brokers import Brokers
    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> brokers = Brokers(app, "shop")
    >>> _ = brokers.add("main", "memory://")
    >>> brokers.endpoint("counts", "main", "counts.made")
    >>> brokers.receive("counts")
    >>> brokers.prepare()
    >>> brokers.source("counts").figures.state
    'stopped'
    """

    @property
    def figures(self) -> SourceFigures:
        """Its figures, without its lag."""
        ...

    async def lag(self) -> int | None:
        """Return how many messages wait for it at its broker; None where that is not known."""
        ...

    async def pause(self, reason: str = "by an operator", *, actor: str | None = None) -> None:
        """Stop receiving, in all processes, until it is resumed. What waits stays at the broker."""
        ...

    async def resume(self) -> None:
        """Receive messages again."""
        ...

    async def paused(self) -> str | None:
        """Return why it is paused, and by which actor; None if it is not."""
        ...


class Services:
    """The services of an app, and its edges and sources by their names."""

    def __init__(self) -> None:
        self.edges: dict[str, Edge] = {}
        self.sources: dict[str, Source] = {}
        # In a simulation nothing comes in by itself.
        self.idle = False
        self._services: list[Service] = []
        self._running: list[Service] = []

    def add(self, service: Service) -> None:
        """Run a service whenever the app works."""
        self._services.append(service)

    def prepare(self) -> None:
        """Have each declare what is missing."""
        for service in self._services:
            service.prepare()

    async def start(self) -> None:
        """Start all, in the order in which they were added."""
        for service in () if self.idle else self._services:
            await service.start()
            self._running.append(service)

    async def stop(self) -> None:
        """Stop all, the last one first. One that is late, or fails, does not keep others from stopping."""
        while self._running:
            service = self._running.pop()
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await service.stop()
            except Exception as error:  # noqa: BLE001  whatever it is, the engine must drain
                log.warning("%s did not stop in order: %s", type(service).__name__, error or type(error).__name__)
