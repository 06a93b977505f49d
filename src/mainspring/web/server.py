"""A server of its own: on loopback unless users must authenticate, and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator, Iterable
from functools import partial
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI

from mainspring.errors import SettingError
from mainspring.telemetry.logs import bounded_logging
from mainspring.telemetry.scraping import ACCEPTED_AT_ONCE, QUEUE, is_loopback
from mainspring.web.access import Access
from mainspring.web.connections import Connection, Limits, Room
from mainspring.web.guard import LOOPBACK

HOST: Final = "127.0.0.1"
PORT: Final = 8420
PORTS_TRIED: Final = 20
STOP_SECONDS: Final = 5
"""How long requests under way may take when the server stops; listeners are let go at once."""
SWEEP_TICKS: Final = 10
LOGGED_BY_OTHERS: Final = ("asyncio", "uvicorn.error", "mainspring.web")
"""Loggers that write a line for what a client does, as often as it does it."""


def checked_host(host: str, access: Access) -> str:
    """Return an address to listen on, if it cannot be reached without authentication."""
    if not is_loopback(host) and not access.asks:
        raise SettingError(
            "The address",
            host,
            "It can be reached from elsewhere, and would ask for no token: give tokens, or a proxy's "
            f"headers; or stay on {HOST}.",
        )
    return host


def hosts_of(host: str, names: Iterable[str] = ()) -> frozenset[str] | None:
    """Return the names under which a server on an address is reached; None: any.

    On loopback only the names of loopback count, and those that a proxy in front goes by. Elsewhere any name does,
    unless some are given: a token comes in a header, which no page from elsewhere can make a browser send.

    >>> sorted(hosts_of("127.0.0.1", ["studio.example.com"]))
    ['127.0.0.1', '[::1]', 'localhost', 'studio.example.com']
    >>> hosts_of("0.0.0.0") is None
    True
    """
    given = frozenset(names)
    if is_loopback(host):
        return LOOPBACK | given
    return given | LOOPBACK if given else None


def bound(host: str, port: int | None) -> socket.socket:
    """Return a socket on a port: the one that is given, or the first free one from 8420 on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = range(PORT, PORT + PORTS_TRIED) if port is None else (port,)
    problem: OSError | None = None
    for number in wanted:
        # Only a socket that says so is known to be TCP: else asyncio would let small answers wait for 40 ms.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            # Only a listening socket has the port: two that were bound to it would both believe so.
            made.listen(QUEUE)
        except OSError as error:
            made.close()
            problem = error
        else:
            return made
    told = f"{host}, port {port}" if port is not None else f"{host}, ports {PORT} to {PORT + PORTS_TRIED - 1}"
    why = problem.strerror if problem is not None else "none was tried"
    raise SettingError("The address", f"{told}: {why}", "Choose another with --host and --port.")


def address_of(made: socket.socket) -> str:
    """Return the URL of a socket."""
    host, port = made.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _files() -> int | None:
    """Return how many files this process may open; None: not known."""
    try:
        import resource  # noqa: PLC0415  not on every system
    except ModuleNotFoundError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


class Server(uvicorn.Server):
    """A server that is stopped from outside: its caller handles the signals."""

    def __init__(self, app: FastAPI, limits: Limits | None = None) -> None:
        self._app = app
        self._room = Room(limits or Limits(), _files())
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                # Only the address that a proxy connects from identifies it; its own headers about that do not.
                proxy_headers=False,
                http=cast("Any", partial(Connection, room=self._room)),
                ws="none",
                backlog=ACCEPTED_AT_ONCE,  # the reserve has more places: else a flood would drive out health probes
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to others."""
        yield

    def stop(self) -> None:
        """Take no more requests, let those under way finish, and let listeners go."""
        self.should_exit = True
        live: Any = getattr(self._app.state, "live", None)
        if live is not None:
            live.close()

    async def on_tick(self, counter: int) -> bool:
        """Look every second for connections whose time is over."""
        if counter % SWEEP_TICKS == 0:
            self._room.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def run_on(self, made: socket.socket, ready: asyncio.Event | None = None) -> None:
        """Serve on a socket until it is stopped."""
        with bounded_logging(*LOGGED_BY_OTHERS):
            await self._run_on(made, ready)

    async def _run_on(self, made: socket.socket, ready: asyncio.Event | None) -> None:
        serving = asyncio.create_task(self.serve([made]))
        try:
            while not self.started and not serving.done():  # noqa: ASYNC110  it has no signal of its own
                await asyncio.sleep(0.01)
            if self.started:
                made.listen(QUEUE)  # asyncio lets as many wait as it lets in at once
                if ready is not None:
                    ready.set()
            await serving
        finally:
            self.stop()
            if not serving.done():
                await serving
