"""Which addresses may be called: public addresses, and networks that were named.

A URL may come out of a message, and a name in the DNS may lead anywhere: to this very machine, to a neighbour that
trusts it, or to the place where a cloud keeps its credentials. What is not public is therefore refused unless it was
allowed by name; IANA's registries of special addresses say what is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from mainspring.errors import SettingError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

LOOPBACK: Final[tuple[Network, ...]] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))

_NOT_PUBLIC_4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind a carrier's NAT; a cloud's metadata too
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's own services, at a public address
        "169.254.0.0/16",  # link-local; most clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; a cloud's metadata too
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays to IPv6
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved; broadcast
    )
)
# All that is public lies in here: neither loopback, link-local, private, multicast, mapped IPv4 nor NAT64 do.
_PUBLIC_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, tunnels
        "2001:db8::/32",  # documentation
        "2002::/16",  # IPv4 inside IPv6
        "3fff::/20",  # documentation
    )
)
# Networks of IPv6 whose last four bytes are an address of IPv4, which counts as well.
_HOLDS_IPV4: Final = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))


def networks_of(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return networks that may be called although they are not public.

    >>> networks_of(["10.1.0.0/16"])
    (IPv4Network('10.1.0.0/16'),)
    """
    found: list[Network] = []
    for text in (texts,) if isinstance(texts, str) else texts:
        try:
            found.append(ip_network(text))
        except ValueError as error:
            raise SettingError("A network", text, f"Write it as in 10.1.0.0/16 ({error}).") from None
    return tuple(found)


def may_be_called(address: str, allowed: Sequence[Network] = ()) -> bool:
    """Return True if an address is public, or in a network that is allowed.

    >>> may_be_called("93.184.215.14"), may_be_called("169.254.169.254"), may_be_called("::ffff:127.0.0.1")
    (True, False, False)
    >>> may_be_called("10.1.2.3", networks_of(["10.1.0.0/16"]))
    True
    """
    try:
        # With a zone it is link-local.
        return "%" not in address and _passes(ip_address(address), allowed)
    except ValueError:
        return False


def _passes(address: Address, allowed: Sequence[Network]) -> bool:
    if not (_is_public(address) or any(address in network for network in allowed)):
        return False
    inner = _inner(address)
    return inner is None or _passes(inner, allowed)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def _inner(address: Address) -> IPv4Address | None:
    """Return the address of IPv4 that one of IPv6 leads to: to allow a NAT64 is not to allow all that is behind it."""
    if isinstance(address, IPv6Address) and address != IPv6Address("::1"):
        for network in _HOLDS_IPV4:
            if address in network:
                return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
