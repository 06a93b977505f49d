"""The routing table: which type of message goes to which endpoint, and what each endpoint is at which broker.

```toml
[brokers.main]
url = "nats://localhost:4222"

[endpoints.orders]
broker = "main"
address = "orders.placed"

[endpoints.payments]
broker = "main"
address = "payments.commands"
replies = "results"          # where answers to what goes there come back

[endpoints.results]
broker = "main"
address = "payments.results"

[receives.orders]            # by the endpoint's name
types = ["PlaceOrder"]

[receives.results]
types = ["CardCharged", "CardRefused"]

[sends]
ChargeCard = "payments"

[publishes]
OrderShipped = ["events"]
```
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from msgspec import Struct, ValidationError, convert, field

from mainspring.brokers.port import PREFETCH, Broker
from mainspring.errors import SettingError

LARGEST_PREFETCH: Final = 10_000
NAME_CHARACTERS: Final = 200

# Which adapter speaks to which URL.
_ADAPTERS: Final = {
    "memory": ("memory", "MemoryBroker"),
    "nats": ("nats", "NatsBroker"),
    "tls": ("nats", "NatsBroker"),
    "redis": ("redis", "RedisBroker"),
    "rediss": ("redis", "RedisBroker"),
    "valkey": ("redis", "RedisBroker"),
    "amqp": ("rabbitmq", "RabbitBroker"),
    "amqps": ("rabbitmq", "RabbitBroker"),
    "kafka": ("kafka", "KafkaBroker"),
    "sqs": ("sqs", "SqsBroker"),
}


_WILDCARDS: Final = {"*": "[^./]+", ">": ".+", "#": ".*"}


class Endpoint(Struct, frozen=True, forbid_unknown_fields=True):
    """A place at a broker, under a name of our own: what is configured where the service runs.

    `replies` names the endpoint for replies: where answers to what goes there come from, or where replies to what
    comes from there go.
    """

    broker: str
    address: str
    replies: str | None = None


class Receive(Struct, frozen=True, forbid_unknown_fields=True):
    """What is taken from an endpoint. Without `types`: all that workflows take and functions subscribed to."""

    types: tuple[str, ...] | None = None
    group: str | None = None
    bare_type: str | None = None
    prefetch: int = PREFETCH


class Table(Struct, forbid_unknown_fields=True):
    """All of it.

    >>> table = Table.read({"endpoints": {"orders": {"broker": "main", "address": "orders"}}})
    >>> table.endpoints["orders"].address
    'orders'
    """

    brokers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    endpoints: dict[str, Endpoint] = field(default_factory=dict[str, Endpoint])
    receives: dict[str, Receive] = field(default_factory=dict[str, Receive])
    sends: dict[str, str] = field(default_factory=dict[str, str])
    publishes: dict[str, str | list[str]] = field(default_factory=dict[str, str | list[str]])

    @classmethod
    def read(cls, given: Mapping[str, Any] | str | Path) -> Table:
        """Return what a mapping, or the TOML file at a path, says; or raise what is wrong with it."""
        name, document = ("The routing table", given) if isinstance(given, Mapping) else (str(given), _toml(given))
        try:
            return convert(dict(cast("Mapping[str, Any]", document)), cls)
        except ValidationError as error:
            raise SettingError(name, str(error), "The how-to on brokers shows what it holds.") from None


def open_broker(url: str, options: Mapping[str, Any] | None = None) -> Broker:
    """Return the broker that a URL names; it connects when it is used.

    >>> type(open_broker("memory://")).__name__
    'MemoryBroker'
    """
    scheme = urlsplit(url).scheme if isinstance(url, str) else ""
    if scheme not in _ADAPTERS:
        # Never all of it: it may hold a password, and errors are logged.
        fix = f"Use one of {', '.join(f'{s}://' for s in _ADAPTERS)}."
        raise SettingError("The broker's URL", scheme or "without a scheme", fix)
    module, name = _ADAPTERS[scheme]
    adapter: Any = getattr(import_module(f"mainspring.brokers.{module}"), name)
    given = dict(options or {})
    try:
        return adapter(**given) if scheme == "memory" else adapter(url, **given)
    except TypeError as error:
        raise SettingError(f"An option of {name}", str(error), "Look at its arguments.") from None


def check_receive(endpoint: str, receive: Receive) -> None:
    """Refuse what makes no sense in how an endpoint is received from.

    >>> check_receive("orders", Receive(prefetch=0))
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: The prefetch of orders is 0. Use a whole number from 1 to 10,000.
    """
    if type(receive.prefetch) is not int or not 0 < receive.prefetch <= LARGEST_PREFETCH:
        raise SettingError(
            f"The prefetch of {endpoint}", receive.prefetch, f"Use a whole number from 1 to {LARGEST_PREFETCH:,}."
        )


def covers(received: str, published: str) -> bool:
    """Return True if what is published to an address comes to another one, perhaps by a wildcard of NATS or RabbitMQ.

    >>> covers("orders.>", "orders.paid"), covers("shop/*.paid", "shop/orders.paid"), covers("orders", "orders.paid")
    (True, True, False)
    """
    parts = (_WILDCARDS.get(part) or re.escape(part) for part in re.split(r"([./])", received))
    return received == published or re.fullmatch("".join(parts), published) is not None


def checked_name(what: str, name: object) -> str:
    """Return a name, if it can stand in ids, headers and tables.

    >>> checked_name("The endpoint", "orders")
    'orders'
    """
    if isinstance(name, str) and 0 < len(name) <= NAME_CHARACTERS and name.isprintable() and not {*" :"} & {*name}:
        return name
    raise SettingError(what, name, f"Use 1 to {NAME_CHARACTERS} visible characters without spaces and colons.")


def checked_seconds(what: str, seconds: object, least: float, most: float) -> float:
    """Return how long something may take, if that is a number within its limits.

    >>> checked_seconds("takeover_seconds", 10, 0.5, 3_600.0)
    10
    """
    if isinstance(seconds, int | float) and least <= seconds <= most:
        return seconds
    raise SettingError(what, seconds, f"Use seconds from {least:,g} to {most:,g}.")


def _toml(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # no UTF-8, no TOML, too many digits, too deep
        raise SettingError("The routing table", str(path), f"It cannot be read: {error}.") from None
