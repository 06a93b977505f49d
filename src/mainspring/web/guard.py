"""What every request has to pass, and every answer carries, before and behind the routes.

A page from elsewhere can make a browser send requests to a port of its own machine, and a name in the DNS can be made
to lead there. So requests must name a host that is ours, and those that change something must come from our own page,
or from no page at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException

from mainspring.telemetry.scraping import host_in
from mainspring.web.asgi import App, Message, Receive, Scope, Send, headers_of
from mainspring.web.problems import Problem

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
BODY_BYTES: Final = 2 * 1_024 * 1_024
# More of a length are not read: it is over the limit by then.
LENGTH_DIGITS: Final = 12
# Where a signature is the only proof, no page gains anything by making a browser call: see `hooks`.
SIGNED: Final = "/api/hooks/"
# From which pages a browser says that a request comes: our own, or none (typed, or a bookmark).
_OUR_PAGES: Final = frozenset({"same-origin", "none"})

_SOURCES: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
CONTENT_POLICY: Final = "; ".join(f"{what} {where}" for what, where in _SOURCES.items())
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Stands before an ASGI app. `hosts` are the names under which it is reached; None: any.

    >>> async def nothing(scope, receive, send): ...
    >>> Guard(nothing, hosts=["studio.example.com"]).knows("studio.example.com:8080")
    True
    """

    def __init__(self, app: App, *, hosts: Iterable[str] | None = LOOPBACK, body_bytes: int = BODY_BYTES) -> None:
        self._app = app
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._body_bytes = body_bytes

    def knows(self, host: str) -> bool:
        """Return True if a Host header names us, with or without a port."""
        return self._hosts is None or host_in(host) in self._hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        answer = _Answer(send)
        problem = self._refusal(scope, headers)
        if problem is not None:
            await problem.send(answer)
            return
        await self._app(scope, _Body(receive, self._body_bytes).receive, answer)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Problem | None:
        host = headers.get("host", "")
        if host and host_in(host) is None:
            return Problem(400, "not understood", "Its Host is not one name, with or without a port.", "BadRequest")
        if not self.knows(host):
            return Problem(421, "unknown host", f"{host or 'No host'} is not served here.", "UnknownHost")
        if scope["method"] not in SAFE and not _is_signed(scope) and not _is_ours(headers, host):
            return Problem(403, "from another page", "Only this server's own page may ask for that.", "CrossOrigin")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return Problem(400, "not understood", "Its Content-Length is no number.", "BadRequest")
        return self._too_large() if int(length[:LENGTH_DIGITS]) > self._body_bytes else None

    def _too_large(self) -> Problem:
        return Problem(413, "too large", _limit(self._body_bytes), "BodyTooLarge")


def _is_signed(scope: Scope) -> bool:
    """Return True if a request is for a route whose proof is a signature, wherever this app is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")).startswith(SIGNED)


def _is_ours(headers: Mapping[str, str], host: str) -> bool:
    """Return True if a request comes from our own page, or from no browser's page at all."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in _OUR_PAGES
    origin = headers.get("origin")
    return origin is None or (bool(host) and origin.partition("://")[2].lower() == host.lower())


def _limit(body_bytes: int) -> str:
    return f"A body has at most {body_bytes:,} bytes."


class _Body:
    """Counts what comes in: not every request says beforehand how long it is."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = self._left = limit

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                # The one kind of error that passes through whatever reads the body.
                raise HTTPException(413, _limit(self._limit))
        return message


class _Answer:
    """Adds our headers to an answer, where it has none of its own."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            given: list[Any] = list(message.get("headers", ()))
            names = {bytes(name).lower() for name, _ in given}
            added = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in names]
            message = {**message, "headers": [*given, *added]}
        await self._send(message)
