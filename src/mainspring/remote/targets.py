"""Where a request goes: unambiguous URLs, and the list of those that are allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from mainspring.errors import SettingError
from mainspring.remote.addresses import LOOPBACK, Address, Network

URL_CHARACTERS: Final = 2_000
PORTS: Final = {"https": 443, "http": 80}

_NAME: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.ASCII)
# Visible ASCII but for what some parsers read as something else.
_PATH: Final = re.compile(r"/[!$%&'()*+,\-./0-9:;=?@A-Z_a-z~]*", re.ASCII)


class Target(Struct, frozen=True):
    """A URL in its parts. What is connected to is made of these parts, never of the text again.

    >>> target_of("https://hooks.example.com/orders?shop=1")
    Target(scheme='https', host='hooks.example.com', port=443, path='/orders?shop=1')
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port."""
        return self.scheme, self.host, self.port

    @property
    def url(self) -> str:
        """All of it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if PORTS[self.scheme] == self.port else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"

    def __str__(self) -> str:
        # A query may hold a token, and errors are logged.
        return self.url.partition("?")[0]


def target_of(url: object) -> Target:
    """Return a URL in its parts, if it says one thing only: no names or passwords, no fragments, nothing invisible.

    Plain http goes no further than this machine.

    >>> target_of("http://127.0.0.1:8080/hook").port
    8080
    >>> target_of("http://example.com/")
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: The URL is 'http://example.com/'. Use https: http is for loopback only.
    """
    if not isinstance(url, str) or not url.isascii() or not 0 < len(url) <= URL_CHARACTERS:
        raise _refused(url, f"Use a text of at most {URL_CHARACTERS:,} ASCII characters (xn--… for others).")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _refused(url, f"It cannot be read: {error}.") from None
    if parts.scheme not in PORTS or parts.username is not None or parts.password is not None or "#" in url:
        raise _refused(url, "Use https://host/path, without a user, a password and a fragment.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    address = _address(host)
    if (address is None and not _NAME.fullmatch(host)) or not _PATH.fullmatch(path):
        raise _refused(url, "Use a host's name or address, and a path with its special characters percent-encoded.")
    target = Target(parts.scheme, host, PORTS[parts.scheme] if port is None else port, path)
    if parts.scheme == "http" and not is_local(target):
        raise _refused(url, "Use https: http is for loopback only.")
    if url not in (target.url, target.url.removesuffix("/")):
        raise _refused(url, f"Write it as {target}, which is how it is read.")
    return target


def is_local(target: Target) -> bool:
    """Return True if a URL names this very machine.

    >>> is_local(target_of("https://localhost/"))
    True
    """
    address = _address(target.host)
    return target.host == "localhost" or (address is not None and any(address in network for network in LOOPBACK))


def own_networks(target: Target) -> tuple[Network, ...]:
    """Return the networks in which the host of a URL may be that the author of an app wrote down.

    An address that stands there is meant; a name may be anywhere that is public.

    >>> own_networks(target_of("https://10.0.0.7/")), own_networks(target_of("https://example.com/"))
    ((IPv4Network('10.0.0.7/32'),), ())
    """
    address = _address(target.host)
    if address is not None:
        return (ip_network(address),)
    return LOOPBACK if target.host == "localhost" else ()


class AllowList:
    """URLs that may be called: all of an origin, or exactly one path of it.

    >>> allowed = AllowList(["https://hooks.example.com", "https://example.com/orders"])
    >>> allowed.target("https://hooks.example.com/any").path
    '/any'
    >>> allowed.target("https://example.com/others")
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: The URL is 'https://example.com/others'. It is not on the allow-list.
    """

    def __init__(self, urls: Iterable[str]) -> None:
        given = (urls,) if isinstance(urls, str) else tuple(urls)
        self._entries = [target_of(url) for url in given]
        if any("?" in entry.path for entry in self._entries):
            raise SettingError("allow", "a URL with a query", "Leave the query out: whatever stands there is allowed.")
        if not self._entries:
            raise SettingError("allow", given, "Name what may be called, as in allow=['https://hooks.example.com'].")

    @property
    def hosts(self) -> dict[str, tuple[Network, ...]]:
        """In which networks each of its hosts may be."""
        return {entry.host: own_networks(entry) for entry in self._entries}

    def target(self, url: object) -> Target:
        """Return a URL in its parts, if it is allowed."""
        target = target_of(url)
        for entry in self._entries:
            if entry.origin == target.origin and entry.path in ("/", target.path.partition("?")[0]):
                return target
        raise _refused(url, "It is not on the allow-list.")


def _address(host: str) -> Address | None:
    try:
        return None if "%" in host else ip_address(host)
    except ValueError:
        return None


def _refused(url: object, fix: str) -> SettingError:
    # What stands before an @ may be a password, what stands behind a ? a token, and errors are logged.
    shown = url.partition("?")[0] if isinstance(url, str) else url
    return SettingError("The URL", "not shown" if isinstance(url, str) and "@" in url else shown, fix)
