"""Brokers of an app: what comes from where, and what goes where, wired into it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mainspring.app.internals import internals_of
from mainspring.app.services import Source
from mainspring.brokers.port import PREFETCH, Broker
from mainspring.brokers.routing import Endpoint, Receive, Table, check_receive, checked_name, covers, open_broker
from mainspring.brokers.sink import Publisher, Sink
from mainspring.brokers.source import BrokerSource, SourceOptions
from mainspring.core.messages import type_of
from mainspring.engine.registry import is_internal
from mainspring.errors import WiringError

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring


class Brokers:
    """The brokers of an app, under the name of this service: others see it as `/name`, and its group has that name.

    >>> import asyncio
    >>> from mainspring import Mainspring
    >>> from mainspring.brokers.memory import MemoryBroker
    >>> from mainspring.brokers.port import Outgoing
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> brokers = Brokers(app, "counting")
    >>> main = brokers.add("main", MemoryBroker())
    >>> brokers.endpoint("counts", "main", "counts.made")
    >>> brokers.receive("counts", Count)
    >>> async def run() -> None:
    ...     async with app:
    ...         headers = {"ce-id": "7", "ce-source": "/door", "ce-type": "Count"}
    ...         await main.publish([Outgoing("counts.made", "7", b'{"counter": "c-1"}', headers)])
    ...         while await main.lag("counts.made", "counting"):
    ...             await asyncio.sleep(0.01)
    ...         print(await app.instance(Counter, "c-1").state())
    >>> asyncio.run(run())
    Counted(times=1)
    """

    def __init__(self, app: Mainspring, name: str) -> None:
        self.name = checked_name("The service's name", name)
        """The name of this service, as others see it."""
        self._app = app
        self._brokers: dict[str, Broker] = {}
        self._table = Table()
        self._sent: list[tuple[type[Any] | str, str, dict[str, Any]]] = []
        self._published: list[tuple[type[Any] | str, str, dict[str, Any]]] = []
        self._sinks: dict[str, Sink] = {}
        self._sources: list[BrokerSource] = []
        self._asking: Counter[str] = Counter()
        self._prepared = False
        internals_of(app).services.add(self)
        app.resource(f"brokers:{self.name}")(self._opened)

    # ---- declaring

    def add(self, name: str, broker: Broker | str) -> Broker:
        """Add a broker, or the one that a URL names, and return it."""
        self._check_open()
        if checked_name("The broker's name", name) in self._brokers:
            raise WiringError(f"Two brokers are named {name}", "Name one of them otherwise.")
        self._brokers[name] = open_broker(broker) if isinstance(broker, str) else broker
        return self._brokers[name]

    def broker(self, name: str) -> Broker:
        """Return a broker by its name."""
        if name not in self._brokers:
            raise WiringError(f"There is no broker {name}", f"There are: {', '.join(self._brokers) or 'none'}.")
        return self._brokers[name]

    def source(self, name: str) -> Source:
        """Return what receives from an endpoint, to pause it and to see how it does, once the app has started."""
        sources = {source.name: source for source in self._sources}
        if name not in sources:
            raise WiringError(f"Nothing is received from {name}", f"There are: {', '.join(sources) or 'none'}.")
        return sources[name]

    def endpoint(self, name: str, broker: str, address: str, *, replies: str | None = None) -> None:
        """Name a place at a broker: a subject, a stream, a queue or a topic.

        `replies` names the endpoint for replies: where answers to what goes there come from, or where replies to
        what comes from there go.
        """
        self._check_open()
        if checked_name("The endpoint's name", name) in self._table.endpoints:
            raise WiringError(f"Two endpoints are named {name}", "Name one of them otherwise.")
        self._table.endpoints[name] = Endpoint(broker, address, replies)

    def receive(
        self,
        endpoint: str,
        *types: type[Any] | str,
        group: str | None = None,
        prefetch: int = PREFETCH,
        bare_type: type[Any] | str | None = None,
    ) -> None:
        """Take messages of these types from an endpoint; of all types that the app takes, if none is named.

        Workers of one `group` share them; it is this service's name if none is given. `bare_type` is the type of
        messages that do not say theirs.
        """
        self._check_open()
        if endpoint in self._table.receives:
            raise WiringError(f"{endpoint} is received from twice", "Name all its types in one place.")
        names = tuple(_name(each) for each in types) or None
        bare = None if bare_type is None else _name(bare_type)
        receive = Receive(names, group, bare, prefetch)
        check_receive(endpoint, receive)
        self._table.receives[endpoint] = receive

    def send(self, message_type: type[Any] | str, *, to: str, **options: Any) -> None:
        """Let an endpoint carry out what workflows send of a type. `options` are a handler's: retry, breaker, rate."""
        self._check_open()
        self._sent.append((message_type, to, options))

    def publish(self, message_type: type[Any] | str, *, to: str, **options: Any) -> None:
        """Send an endpoint what is published of a type. `options` are a subscriber's: retry, timeout, name."""
        self._check_open()
        self._published.append((message_type, to, options))

    def configure(self, table: Mapping[str, Any] | str | Path) -> None:
        """Add what a routing table says: a mapping, or the path of a TOML file. See `mainspring.brokers.routing`."""
        read = Table.read(table)
        for name, settings in read.brokers.items():
            options = {**settings}
            url = options.pop("url", None)
            if not isinstance(url, str):
                raise WiringError(f"The broker {name} has no url", f'Write url = "nats://…" under [brokers.{name}].')
            self.add(name, open_broker(url, options))
        for name, endpoint in read.endpoints.items():
            self.endpoint(name, endpoint.broker, endpoint.address, replies=endpoint.replies)
        for name, receive in read.receives.items():
            self.receive(
                name,
                *(receive.types or ()),
                group=receive.group,
                prefetch=receive.prefetch,
                bare_type=receive.bare_type,
            )
        for type_name, to in read.sends.items():
            self.send(type_name, to=to)
        for type_name, several in read.publishes.items():
            for to in [several] if isinstance(several, str) else several:
                self.publish(type_name, to=to)

    # ---- as a service

    def prepare(self) -> None:
        """Wire sources and sinks into the app, or raise what does not fit together."""
        if self._prepared:
            return
        for name, endpoint in self._table.endpoints.items():
            if endpoint.broker not in self._brokers:
                raise WiringError(
                    f"The endpoint {name} is at the broker {endpoint.broker}, which was not added",
                    f"There are: {', '.join(self._brokers) or 'none'}.",
                )
            if endpoint.replies is not None:
                self._endpoint(endpoint.replies, f"the replies of {name}")
        self._add_sinks()
        self._add_sources()
        self._prepared = True

    async def start(self) -> None:
        """Begin to receive."""
        for source in self._sources:
            source.start()

    async def stop(self) -> None:
        """Receive no more."""
        await asyncio.gather(*(source.stop() for source in self._sources))

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Brokers]:
        """Have the brokers open as long as handlers may publish."""
        async with AsyncExitStack() as exits:
            for broker in self._brokers.values():
                await broker.open()
                exits.push_async_callback(broker.close)
            yield self

    # ---- wiring

    def _add_sinks(self) -> None:
        registry = internals_of(self._app).registry
        for given, to, options in self._sent:
            cls = self._type(given)
            sink = self._publisher(to, cls.__name__).handler(cls, f"to {to}", "command", options)
            registry.add_handler(sink)
        for given, to, options in self._published:
            cls = self._type(given)
            sink = self._publisher(to, cls.__name__).handler(cls, f"to {to}", "event", options)
            registry.add_subscriber(sink)
            self._refuse_loop(type_of(cls).name, to)
        for name in self._table.receives:
            back = self._endpoint(name, "what is received").replies
            if back is not None:
                registry.reply_handlers[back] = self._publisher(back, f"replies to {name}").reply_handler(f"to {back}")

    def _publisher(self, to: str, what: str) -> Publisher:
        endpoint = self._endpoint(to, what)
        sink = self._sinks.get(to)
        if sink is None:
            sink = self._sinks[to] = Sink(self._brokers[endpoint.broker], endpoint.address)
        back = None if endpoint.replies is None else self._endpoint(endpoint.replies, to).address
        return Publisher(internals_of(self._app).registry.codec, f"/{self.name}", sink, reply_to=back)

    def _add_sources(self) -> None:
        for name, receive in self._table.receives.items():
            endpoint = self._endpoint(name, "what is received")
            known = self._known_inputs()
            for wanted in (*(receive.types or ()), *((receive.bare_type,) if receive.bare_type else ())):
                if wanted not in known:
                    raise WiringError(
                        f"{wanted} is received from {name}, and nothing here takes it",
                        "Add the workflow that takes it with app.add(…), or a function with @app.subscribe.",
                    )
            options = SourceOptions(
                group=receive.group or self.name,
                types=None if receive.types is None else frozenset(known[wanted] for wanted in receive.types),
                bare_type=receive.bare_type,
                prefetch=receive.prefetch,
                reply_to=endpoint.replies,
            )
            broker, address = self._brokers[endpoint.broker], endpoint.address
            source = BrokerSource(self._app, name, broker, endpoint.broker, address, options, self._asking)
            services = internals_of(self._app).services
            if name in services.edges:
                raise WiringError(f"Two edges of this app are named {name}", "Name one of them otherwise.")
            services.edges[name] = services.sources[name] = source
            self._sources.append(source)

    def _refuse_loop(self, type_name: str, to: str) -> None:
        """What is received from where it is published to would go round without end."""
        address = self._table.endpoints[to]
        for name, receive in self._table.receives.items():
            source = self._table.endpoints.get(name)
            same = source is not None and source.broker == address.broker and covers(source.address, address.address)
            if same and (receive.types is None or type_name in receive.types):
                raise WiringError(
                    f"{type_name} is published to {to} and received from {name}, which are the same place",
                    "It would go round without end: name the types that are received, without this one.",
                )

    def _endpoint(self, name: str, what: str) -> Endpoint:
        found = self._table.endpoints.get(name)
        if found is None:
            raise WiringError(
                f"There is no endpoint {name} for {what}", f"There are: {', '.join(self._table.endpoints) or 'none'}."
            )
        return found

    def _type(self, given: type[Any] | str) -> type[Any]:
        """Return a type, by its name among all that workflows of the app send, publish or take."""
        if not isinstance(given, str):
            return given
        for entry in internals_of(self._app).registry.entries():
            for cls in () if is_internal(entry.name) else (*entry.definition.outputs, *entry.definition.inputs):
                if type_of(cls).name == given:
                    return cls
        raise WiringError(f"No workflow of this app knows {given}", "Correct its name, or app.add(…) the workflow.")

    def _known_inputs(self) -> dict[str, str]:
        """Return the names of what may come in, former ones too, each with its name of today."""
        registry = internals_of(self._app).registry
        inputs = [cls for entry in registry.entries() if not is_internal(entry.name) for cls in entry.definition.inputs]
        subscribed = [known[0].message_type for known in registry.subscribers.values()]
        declared = [type_of(cls) for cls in (*inputs, *subscribed)]
        return {name: each.name for each in declared for name in (each.name, *each.aliases)}

    def _check_open(self) -> None:
        if self._prepared:
            raise WiringError("This app was started before", "Declare its brokers before it starts.")


def _name(message_type: type[Any] | str) -> str:
    return message_type if isinstance(message_type, str) else type_of(message_type).name
