"""A place to be scraped from: as much HTTP as one GET needs, for a worker that serves nothing else."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import Final, TypeAlias

from mainspring.errors import SettingError, told
from mainspring.logs import Quoted, logger
from mainspring.telemetry.logs import bounded_logging

HOST: Final = "127.0.0.1"
PATH: Final = "/metrics"
HEAD_BYTES: Final = 8_192
REQUEST_SECONDS: Final = 10.0
REQUESTS_AT_ONCE: Final = 20
QUEUE: Final = 2_048
ACCEPTED_AT_ONCE: Final = 4
"""How many of them are let in before others are served again. It takes four such rounds until one is let in, read and
answered, or driven out. With asyncio's own hundred, files run out first, and each of them is logged with a traceback.
"""
LEAST_SECRET_CHARACTERS: Final = 20
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
# A name or an address, and perhaps a port. Nothing else: what stands behind it might be another one's name.
_HOST: Final = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{0,5})?", re.IGNORECASE | re.ASCII)
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    421: "Misdirected Request",
    503: "Service Unavailable",
}

Expose: TypeAlias = Callable[[str], Awaitable[tuple[bytes, str]]]
"""Returns what is scraped, and its content type, for what an Accept header says."""
Reply: TypeAlias = tuple[int, bytes, str]

log = logger("mainspring.telemetry")


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may lead anywhere


def host_in(header: str) -> str | None:
    """Return the one name in a Host header, without its port and in lower case; None: it is not one name.

    >>> host_in("localhost:8080"), host_in("[::1]:8080"), host_in("127.0.0.1:1, evil"), host_in("[::1]evil")
    ('localhost', '[::1]', None, None)
    """
    found = _HOST.fullmatch(header)
    return None if found is None else found[1].lower()


class Scraped:
    """Answers GET /metrics, on loopback unless clients have to show a token.

    >>> Scraped(lambda accept: None, "0.0.0.0")
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: The metrics' address is '0.0.0.0'. It can be reached from elsewhere: set \
MAINSPRING_METRICS_TOKEN, which a scraper has to show; or stay on 127.0.0.1.
    """

    def __init__(self, expose: Expose, host: str = HOST, port: int = 0, token: str | None = None) -> None:
        if token is not None and len(token) < LEAST_SECRET_CHARACTERS:
            fix = f"Use {LEAST_SECRET_CHARACTERS} characters or more, as secrets.token_urlsafe() makes them."
            raise SettingError("The metrics' token", f"{len(token)} characters long", fix)
        if token is None and not is_loopback(host):
            fix = "It can be reached from elsewhere: set MAINSPRING_METRICS_TOKEN, which a scraper has to show; "
            raise SettingError("The metrics' address", host, f"{fix}or stay on {HOST}.")
        self._expose = expose
        self._host, self._port = host, port
        self._token = token
        self._server: asyncio.Server | None = None
        self._logging = ExitStack()
        self._open: set[asyncio.StreamWriter] = set()
        self._silent: dict[asyncio.StreamWriter, None] = {}
        """Those of them who have not asked yet, the longest first."""

    def prepare(self) -> None:
        """Nothing to prepare: any app can have it among its services."""

    async def start(self) -> None:
        """Begin."""
        self._logging.enter_context(bounded_logging("asyncio", log.name))
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host, self._port, limit=HEAD_BYTES, backlog=ACCEPTED_AT_ONCE
            )
        except OSError as error:
            self._logging.close()
            place = f"{self._host}, port {self._port}: {error.strerror or error}"
            raise SettingError("The metrics' address", place, "Choose another port.") from error
        for one in self._server.sockets:
            with one.dup() as made:
                made.listen(QUEUE)  # asyncio lets as many wait as it lets in at once
        log.info("metrics at %s", self.address)

    @property
    def address(self) -> str:
        """Where it is scraped, while it runs."""
        if self._server is None:
            return ""
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    async def stop(self) -> None:
        """End, even while a client is being answered: the next scrape is as good."""
        if self._server is not None:
            self._server.close()
            for writer in self._open:
                writer.transport.abort()
            await self._server.wait_closed()
            self._server = None
            self._logging.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._silent) >= REQUESTS_AT_ONCE:
            # Else a silent client keeps others out.
            longest = next(iter(self._silent))
            del self._silent[longest]
            self._open.discard(longest)  # it asks nothing
            longest.transport.abort()
        self._open.add(writer)
        self._silent[writer] = None
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                self._silent.pop(writer, None)
                writer.write(_written(*await self._reply(head.decode("latin-1"))))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug("a request for metrics did not come to its end: %s", error)
            writer.transport.abort()  # else it stays open until the client reads what was written
        finally:
            self._open.discard(writer)
            self._silent.pop(writer, None)
            writer.close()

    async def _reply(self, head: str) -> Reply:
        request, *lines = head.split("\r\n")
        headers: dict[str, str] = {}
        for name, _, value in (line.partition(":") for line in lines):
            known = name.strip().lower()
            # One that stands twice is no longer what either of them says.
            headers[known] = f"{headers[known]}\n{value.strip()}" if known in headers else value.strip()
        method, _, rest = request.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        refusal = self._refusal(method, path, headers)
        if refusal is not None:
            return refusal
        try:
            body, content_type = await self._expose(headers.get("accept", ""))
        except Exception as error:  # noqa: BLE001  whatever it is, the scraper has to see that there is nothing
            log.warning("nothing to be scraped: %s", Quoted(told(error)))
            return _plain(503, "Metrics cannot be read now; the log says why.")
        return 200, body, content_type

    def _refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Reply | None:
        if len(self._open) - len(self._silent) > REQUESTS_AT_ONCE:
            return _plain(503, "Too many ask at once.")
        if not path.startswith("/"):
            return _plain(400, "This is no request.")
        # A name in the DNS that leads here would let a page from elsewhere read what this machine alone may see.
        host = headers.get("host", "")
        if self._token is None and host_in(host) not in _LOOPBACK:
            return _plain(421, f"The host {host!a} is not served here.")
        if self._token is not None and not hmac.compare_digest(
            headers.get("authorization", "").encode(), f"Bearer {self._token}".encode()
        ):
            return _plain(401, "Send the token: Authorization: Bearer …")
        if path != PATH:
            return _plain(404, f"There is {PATH} here, and nothing else.")
        return None if method == "GET" else _plain(405, "Only GET is understood.")


def _plain(status: int, text: str) -> Reply:
    return status, f"{text}\n".encode(), "text/plain; charset=utf-8"


def _written(status: int, body: bytes, content_type: str) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
    )
    if status == 401:
        head += "WWW-Authenticate: Bearer\r\n"
    return f"{head}\r\n".encode("latin-1") + body
