"""Internals: what an app is made of. Mainspring's own packages and tools reach it; authors have no business here."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Unpack

from mainspring.app.given import checked_processes
from mainspring.app.observing import Looks, observing, telemetry_of_environment
from mainspring.app.purging import checked_age
from mainspring.app.resources import Resources
from mainspring.app.services import Services
from mainspring.engine.engine import Engine
from mainspring.engine.handlers.policies.retry import Retry
from mainspring.engine.inputs.intake import Envelopes
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.errors import WiringError
from mainspring.flows.flow import Flow
from mainspring.port.store import Store
from mainspring.sealing.seals import Seal, Seals
from mainspring.stores import open_store
from mainspring.stores.sealed import sealed
from mainspring.telemetry.telemetry import Parts, Telemetry

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring
    from mainspring.app.hooks import Hook
    from mainspring.app.schedules import DeclaredSchedule

SHORTEST_RETENTION: Final = timedelta(microseconds=1)


class Internals:
    """What an app is made of: its settings, what was registered, and the engine while it runs."""

    def __init__(
        self,
        url: str,
        seal: Seal | Sequence[Seal] | None,
        retention: timedelta | None,
        processes: int | None,
        steps_per_hour: int | None,
        runtime: Runtime | None,
        store: Store | None,
    ) -> None:
        self.url = url
        self.seal: Seal | None = Seals(seal) if isinstance(seal, Sequence) else seal
        # None keeps everything. Else workers purge ended instances after so long; a workflow may say its own time.
        self.retention = None if retention is None else checked_age("retention", retention, least=SHORTEST_RETENTION)
        self.runtime = runtime or Runtime()
        if processes is not None:
            # How many run handlers with executor="process" at most. None: as many as there are cores.
            self.runtime.processes = checked_processes(processes)
        self.wiring = Registry(steps_per_hour)
        """What was registered, but for flows that were declared and not looked at yet: decorators add to it."""
        self._flows: list[tuple[Flow[Any, Any], Retry | None]] = []
        self.resources = Resources()
        self.schedules: dict[str, DeclaredSchedule] = {}
        self.hooks: dict[str, Hook] = {}
        self.services = Services()
        """What runs beside the engine while the app works, such as the sources of brokers."""
        self.telemetry = observing(self.runtime, telemetry_of_environment())
        """What the app reports about itself, if anything."""
        self.looks = Looks(self)
        self.running: Engine | None = None
        self.exits: AsyncExitStack | None = None
        """Closes what the running app has opened."""
        self.given_store: Store | None = store

    @property
    def registry(self) -> Registry:
        """What was registered. Flows are read when it is first looked at: then all that their code names is defined."""
        while self._flows:
            flow, retry = self._flows.pop(0)
            self.wiring.add_workflow(flow, retry)
        return self.wiring

    def declare_flow(self, flow: Flow[Any, Any], retry: Retry | None) -> None:
        """Add a flow, whose code may name what is not defined yet."""
        self._flows.append((flow, retry))

    @property
    def engine(self) -> Engine:
        """The running engine."""
        if self.running is None:
            raise WiringError("This app is not running", "Use it inside `async with app:`, or await app.start() first.")
        if self.running.fault is not None:
            raise self.running.fault.with_traceback(None)
        return self.running

    @property
    def envelopes(self) -> Envelopes:
        """What makes inputs of messages: the running engine's intake, or one that needs no engine."""
        if self.running is not None:
            return self.engine.intake
        return Envelopes(self.registry, self.runtime, self.runtime.clock.now_us)

    def check_not_running(self, fix: str) -> None:
        """Refuse what is possible only before an app starts."""
        if self.running is not None:
            raise WiringError("This app runs already", fix)

    def observe(self, **parts: Unpack[Parts]) -> None:
        """Turn more of its telemetry on."""
        self.check_not_running("Say what is to be observed before it starts.")
        more = Telemetry(**parts) if self.telemetry is None else self.telemetry.add(**parts)
        self.telemetry = observing(self.runtime, more)

    def new_store(self) -> Store:
        """Return the store to be opened, with its seal."""
        store = self.given_store or open_store(self.url, self.runtime.clock)
        return store if self.seal is None else sealed(store, self.seal)

    def another_store(self) -> Store | None:
        """Return another connection to the database, for another thread to open; None where only this one sees it."""
        return None if self.given_store is not None or self.url.startswith("memory:") else self.new_store()

    @contextmanager
    def standing_on(self, runtime: Runtime, store: Store, resources: Mapping[str, Any]) -> Generator[None]:
        """Use another runtime and store, no seal, and stand-ins for resources, in a `with` block: for a simulation."""
        self.check_not_running("Stop it first; a simulation starts the app itself.")
        own = self.runtime, self.given_store, self.resources, self.seal
        self.runtime, self.given_store, self.seal = runtime, store, None
        self.resources = self.resources.with_stand_ins(resources)
        self.services.prepare()
        self.services.idle = True
        try:
            yield
        finally:
            self.services.idle = False
            self.runtime, self.given_store, self.resources, self.seal = own


def internals_of(app: Mainspring) -> Internals:
    """Return what an app is made of.

    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> list(internals_of(app).registry.workflows)
    ['Counter']
    """
    return app._internals  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001  the one way in, so that none is public
