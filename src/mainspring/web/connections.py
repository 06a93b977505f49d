"""Connections within limits: no client keeps others out by slow, long or unfinished requests.

A connection *waits* as long as its client has a part of a request to send: it may be closed for another one, the
longest waiting first. One whose request is here whole, and is carried out or answered, never is. So a client that opens
connections and sends nothing takes the place of others that do the same, and a new one that sends something is served.
Where all of them are at work, a few more are taken in all the same: they get an answer that there is no room, and
whether the process is healthy.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable
from typing import Any, Final, Literal

from msgspec import Struct, structs
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mainspring.errors import SettingError
from mainspring.logs import logger
from mainspring.web.asgi import App, Receive, Scope, Send
from mainspring.web.problems import Problem

# What is answered when there is no room for anything else: health probes ask for these.
HEALTH: Final = frozenset({"/api/health", "/api/ready"})
PIPELINED: Final = 16
"""How many requests of a connection may wait behind the one that is under way."""

MOMENT_SECONDS: Final = 1.0
"""For so long no recent connection is closed for another, where hardly any waits."""

log = logger("mainspring.web")


class Limits(Struct, frozen=True):
    """What a client may ask of the server.

    >>> Limits().header_bytes
    65536
    >>> Limits(connections=0)
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: The limit connections is 0. Use a number above 0.
    """

    header_bytes: int = 65_536
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    unread_seconds: float = 60.0
    idle_seconds: float = 75.0
    connections: int = 1_000
    connections_per_client: int = 500
    reserved_connections: int = 32

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not getattr(self, name) > 0:
                raise SettingError(f"The limit {name}", getattr(self, name), "Use a number above 0.")


def read_limits(texts: Iterable[str]) -> Limits:
    """Return limits as they stand in a setting: NAME=NUMBER.

    >>> read_limits(["connections=2000", "header_seconds=2.5"]).connections
    2000
    >>> read_limits(["conections=2000"])
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: A limit is 'conections=2000'. Write NAME=NUMBER, with one of header_bytes, \
header_seconds, body_seconds, unread_seconds, idle_seconds, connections, connections_per_client, reserved_connections.
    """
    given: dict[str, Any] = {}
    known = {field.name: field.type for field in structs.fields(Limits)}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            given[name] = known[name](number)
        except (KeyError, ValueError):
            raise SettingError("A limit", text, f"Write NAME=NUMBER, with one of {', '.join(known)}.") from None
    return Limits(**given)


class Room:
    """Which clients are connected, which of them wait, and which have to make room.

    At most half of the `files` that the process may open are connections: the database needs some too.

    >>> Room(Limits(), files=1_024).places, Room(Limits(), files=1_024).places_per_client
    (480, 240)
    """

    def __init__(self, limits: Limits, files: int | None = None) -> None:
        self.limits = limits
        fitting = limits.connections if files is None else max(1, files // 2 - limits.reserved_connections)
        self.places = min(limits.connections, fitting)
        self.places_per_client = max(1, limits.connections_per_client * self.places // limits.connections)
        self._all: dict[Connection, None] = {}
        self._of: dict[str, dict[Connection, None]] = {}
        self._reserve: dict[Connection, None] = {}

    def enter(self, new: Connection) -> bool:
        """Admit a connection, for which another may have to be closed. False: only for health probes."""
        own = self._of.get(new.name, {})
        others = own if len(own) >= self.places_per_client else self._all
        if others is own or len(self._all) >= self.places:
            waiting = [each for each in others if each.until is not None]
            # The last that came have had no time to send anything yet.
            newest = self.limits.reserved_connections
            silent = waiting[:-newest] or [each for each in waiting if each.since < new.since - MOMENT_SECONDS]
            if not silent:
                self._enter_reserve(new)
                return False
            log.warning("%d connections are open: for a new one of %s another is closed", len(self._all), new.name)
            silent[0].end("another one came")
        self._all[new] = self._of.setdefault(new.name, {})[new] = None
        return True

    def _enter_reserve(self, new: Connection) -> None:
        log.warning("no room for another connection: %s gets only health", new.name)
        if len(self._reserve) >= self.limits.reserved_connections:
            waiting = [each for each in self._reserve if each.until is not None]
            # As above: of a few that wait, all may have come this moment.
            first = waiting[0] if 2 * len(waiting) > len(self._reserve) else next(iter(self._reserve))
            first.end("another one came")
        self._reserve[new] = None

    def leave(self, gone: Connection) -> None:
        """Forget a connection, if it is known."""
        self._reserve.pop(gone, None)
        self._all.pop(gone, None)
        own = self._of.get(gone.name)
        if own is not None:
            own.pop(gone, None)
            if not own:
                del self._of[gone.name]

    def wait_anew(self, one: Connection) -> None:
        """Queue a served connection behind those that wait already."""
        for line in (self._all, self._of.get(one.name, {})):
            if one in line:
                del line[one]
                line[one] = None

    def sweep(self, now: float) -> None:
        """Close those whose time is over."""
        for each in [*self._all, *self._reserve]:
            if each.until is not None and each.until < now:
                each.end(each.late)
            elif each.unread_since is not None and each.unread_since + self.limits.unread_seconds < now:
                each.end("the client does not read the answer")


class Connection(HttpToolsProtocol):
    """One connection. `until` says how long it may wait for its client; None: its request is here, and carried out."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        room: Room,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._room = room
        self._limits = room.limits
        self._served: App = self.app
        self._has_place = True
        self._in: Literal["head", "body"] | None = "head"
        self._came = False
        self._deaf = False
        self._head_bytes = 0
        self.name = ""
        self.late = "no whole request came in time"
        self.since = 0.0
        self.until: float | None = None
        self.unread_since: float | None = None

    # ---- its life

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.name = name_of(self.client[0] if self.client else "")
        self.since = self.loop.time()
        self.until = self.since + self._limits.header_seconds
        self._has_place = self._room.enter(self)
        if not self._has_place:
            self._served = _Spare(self._served)

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.leave(self)
        super().connection_lost(exc)

    def end(self, why: str) -> None:
        """Close it at once: a client that does not send may not read either."""
        log.info("a connection of %s is closed: %s", self.name, why)
        self._room.leave(self)
        self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        """Leave it to the sweep: a stray line break stops that timer, and an answer that is not read outlives it."""

    def pause_writing(self) -> None:
        self.unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.unread_since = None
        super().resume_writing()

    # ---- what comes in

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._came = False
        super().data_received(data)
        # A header, or what stands behind the last part of a body, is kept by the parser until its end.
        self._head_bytes = self._head_bytes + len(data) if self._in is not None and not self._came else 0
        if self._head_bytes > self._limits.header_bytes and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        self._in = "head"
        self._wait_for(self._limits.header_seconds)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # What stands behind the body is none of its headers: no proxy in front has checked it.
        if self._in == "head":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            self.end("too many requests at once")
            raise ConnectionAbortedError  # the parser goes no further
        self._in = "body"
        self._wait_for(self._limits.body_seconds)
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        fits = size <= self._limits.header_bytes
        self.app = self._served if fits else _Refused(self._too_long())
        super().on_headers_complete()
        # After an upgrade request, what follows would be read as requests that no proxy in front has checked.
        self._deaf = self.parser is not None and self.parser.should_upgrade()
        if self._deaf or not (fits and self._has_place):
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._came = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._came, self._in = True, None
        super().on_message_complete()
        self._rest()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in is None:
            self._rest()
        else:  # the next one has begun to come meanwhile
            self._wait_for(self._limits.header_seconds if self._in == "head" else self._limits.body_seconds)

    def _wait_for(self, seconds: float) -> None:
        """Wait for the rest of a request; not while the one before it is carried out, which is not closed for that."""
        if self.cycle is None or self.cycle.response_complete:
            self.until = self.loop.time() + seconds

    def _rest(self) -> None:
        """Wait for another request, unless one is here."""
        if self.cycle.response_complete:
            self.since = self.loop.time()
            self.until = self.since + self._limits.idle_seconds
            self._room.wait_anew(self)
        else:
            self.until = None

    def _too_long(self) -> Problem:
        detail = f"The headers of a request have at most {self._limits.header_bytes:,} bytes."
        return Problem(431, "headers too long", detail, "HeadersTooLong")

    def _refuse_head(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_written(self._too_long()))
        self.transport.close()


class _Refused:
    """Answers everything with a problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._problem.send(send)


class _Spare:
    """Answers health probes, and all other requests that there is no room."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = Problem(503, "busy", "There is no room for another connection. Come back in a moment.", "NoRoom")
        await (self._app if scope["path"] in HEALTH else _Refused(problem))(scope, receive, send)


def _written(problem: Problem) -> bytes:
    """Return an answer to what did not become a request."""
    headers = {**problem.headers, "content-length": str(len(problem.body)), "connection": "close"}
    lines = [f"HTTP/1.1 {problem.status} {problem.title}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + problem.body


def name_of(address: str) -> str:
    """Return under which name the connections of an address are counted: a network of IPv6 has as many as it likes.

    >>> name_of("192.0.2.7"), name_of("::ffff:192.0.2.7"), name_of("2001:db8:1:2:3::7"), name_of("")
    ('192.0.2.7', '192.0.2.7', '2001:db8:1:2::/64', '')
    """
    if ":" not in address:
        return address
    found = ipaddress.IPv6Address(address.partition("%")[0])
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
