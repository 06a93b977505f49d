"""The client by which others are called: it connects to the given target, and nowhere else.

A name is resolved once, each of its addresses is checked, and the connection goes to one of those that were checked:
an answer of the DNS that changes between the check and the connection cannot lead elsewhere. TLS is spoken with the
name, whose certificate is verified. There are no proxies of the environment, no redirects, no cookies, no compression;
time and bytes are bounded.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Final, Self, TypeAlias, cast

from msgspec import Struct, json

from mainspring.errors import CallError, DoNotRetryError, RetryLaterError, SettingError, told
from mainspring.errors.reading import UNREADABLE
from mainspring.remote.addresses import Network, may_be_called
from mainspring.remote.targets import Target

try:
    import httpcore
except ModuleNotFoundError:
    fix = "It needs httpcore: install mainspring[webhooks]."
    raise SettingError("mainspring.remote", "not available", fix) from None

CONNECT_SECONDS: Final = 5.0
CONNECTIONS: Final = 100
IDLE_SECONDS: Final = 30.0
ADDRESSES: Final = 16
ANSWER_BYTES: Final = 64 * 1_024
PROBLEM_CHARACTERS: Final = 500
RETRY_AFTER_DIGITS: Final = 9
# They say that the same request may well be answered otherwise later; 409: that one with this key is under way.
PASSING: Final = frozenset({408, 409, 425, 429})

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


class Answer(Struct, frozen=True):
    """What was answered. Names of headers are in lower case; `cut` says that the body was longer than was asked for."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False


class _Problem(Struct, frozen=True):
    detail: str | None = None
    title: str | None = None


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as the machine knows them.

    >>> asyncio.run(resolve("127.0.0.1", 80))
    ['127.0.0.1']
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class _Pinned(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were checked at this very moment."""

    def __init__(self, networks: Sequence[Network], hosts: Mapping[str, Sequence[Network]], resolve: Resolve) -> None:
        self._networks = networks
        self._hosts = hosts
        self._resolve = resolve
        self._inner = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._checked(host, port)
        problem: Exception | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem or httpcore.ConnectError(f"{host} has no address")

    async def _checked(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} is not found: {error}") from None
        allowed = (*self._networks, *self._hosts.get(host, ()))
        for address in addresses:
            # One refused address refuses them all: such an answer is an attack, or a wrong setup.
            if not may_be_called(address, allowed):
                raise _RefusedError(f"leads to {address}, which is not public")
        return addresses[:ADDRESSES]

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _RefusedError(Exception):
    """An address may not be called."""


class Client:
    """Calls others. Opened with the app, closed with it.

    `networks` are those that may be called although they are not public, `hosts` those of single hosts and of no other.
    `tls` is for a certificate authority of one's own; by default those of the machine count.

    >>> async def main() -> None:
    ...     async with Client() as client:
    ...         print(client.networks)
    >>> asyncio.run(main())
    ()
    """

    def __init__(
        self,
        *,
        networks: Sequence[Network] = (),
        hosts: Mapping[str, Sequence[Network]] | None = None,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        self.networks = tuple(networks)
        self._hosts = hosts or {}
        if tls is not None and (tls.verify_mode is not ssl.CERT_REQUIRED or not tls.check_hostname):
            raise SettingError(
                "tls", "a context that verifies nothing", "Use ssl.create_default_context(cafile=…), as it is."
            )
        self._tls = tls
        self._resolve = resolve
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def __aenter__(self) -> Self:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=self._tls or _default_tls(),
            max_connections=CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_Pinned(self.networks, self._hosts, self._resolve),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def post(
        self,
        target: Target,
        headers: Mapping[str, str],
        body: bytes,
        *,
        timeout: timedelta,
        most_bytes: int = ANSWER_BYTES,
    ) -> Answer:
        """Post a body and return what is answered, within a time for all of it; else raise a CallError."""
        assert self._pool is not None, "it is opened with the app"  # noqa: S101  a mistake of ours
        seconds = timeout.total_seconds()
        waits = {"connect": min(seconds, CONNECT_SECONDS), "read": seconds, "write": seconds, "pool": seconds}
        url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        try:
            async with (
                asyncio.timeout(seconds),
                self._pool.stream(
                    "POST", url, headers=_written(headers), content=body, extensions={"timeout": waits}
                ) as response,
            ):
                return await _read(response, most_bytes)
        except TimeoutError:
            raise CallError(str(target), f"did not answer within {seconds:g} s", "Look at its log.") from None
        except _RefusedError as refused:
            fix = "If it is meant to be called, allow its network: networks=['10.1.0.0/16']."
            raise CallError(str(target), str(refused), fix) from None
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, ssl.SSLError) as error:
            problem = f"could not be called: {told(error, PROBLEM_CHARACTERS)}"
            raise CallError(str(target), problem, "Look at the network, and at its log.") from None


@cache
def _default_tls() -> ssl.SSLContext:
    """Return the authorities of the machine: some hundred certificates, read once."""
    return httpcore.default_ssl_context()


def checked(target: Target, answer: Answer) -> Answer:
    """Return a successful answer; else raise what its status means for another attempt.

    >>> checked(Target("https", "example.com", 443, "/"), Answer(404, {}, b"no such order"))
    Traceback (most recent call last):
    mainspring.errors.running.DoNotRetryError: https://example.com/ answered 404: no such order
    """
    status = answer.status
    if 200 <= status < 300:
        return answer
    text = f"{target} answered {status}"
    said = _said(answer)
    if 300 <= status < 400:
        raise DoNotRetryError(f"{text}: redirects are not followed; use the URL that it leads to, if it is right.")
    if status < 500 and status not in PASSING:
        raise DoNotRetryError(f"{text}: {said}" if said else text)
    after = _retry_after(answer.headers.get("retry-after", ""))
    if after is not None:
        raise RetryLaterError(f"{text}: {said}" if said else text, after)
    problem = f"answered {status}: {said}" if said else f"answered {status}"
    raise CallError(str(target), problem, "Look at its log.")


async def _read(response: httpcore.Response, most_bytes: int) -> Answer:
    body = bytearray()
    cut = False
    async for part in response.aiter_stream():
        body += part
        if len(body) > most_bytes:
            cut = True
            break
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    return Answer(response.status, headers, bytes(body[:most_bytes]), cut)


def _written(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


def _said(answer: Answer) -> str:
    """Return what an answer says of itself: the detail of a problem (RFC 9457), or the beginning of its text."""
    try:
        problem = json.decode(answer.body, type=_Problem)
        said = problem.detail or problem.title
    except UNREADABLE:
        said = None
    if said is None:
        said = answer.body[: 4 * PROBLEM_CHARACTERS].decode(errors="replace")
    return " ".join(said.split())[:PROBLEM_CHARACTERS]


def _retry_after(text: str) -> timedelta | None:
    """Return how long a Retry-After asks to wait: seconds, or a date."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=int(text[:RETRY_AFTER_DIGITS]))
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(timedelta(0), (date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC))
