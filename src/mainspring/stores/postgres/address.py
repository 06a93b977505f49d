"""Where the database is: a URL, with what is ours in it taken out."""

from __future__ import annotations

from hashlib import blake2b
from os import environ
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from mainspring.errors import SettingError

DEFAULT_SCHEMA: Final = "mainspring"
DEFAULT_CONNECTIONS: Final = 5
_SCHEMA_BYTES: Final = 63
_EXAMPLE: Final = "postgresql://user@db-1:5432,db-2:5433/database"


class Address:
    """A server, a database, and a schema in it.

    >>> address = Address("postgresql://ann:secret@db.example/shop?schema=orders&sslmode=require")
    >>> address.schema, address.pooled, address.connections
    ('orders', False, 5)
    >>> address.database
    'shop'
    >>> str(address)
    'postgresql://db.example/shop?schema=orders'
    >>> address.dsn
    'postgresql://ann:secret@db.example/shop?sslmode=require'
    >>> [*Address("postgresql://shop@db-1:5432,db-2:5433/shop").dsns]
    ['db-1:5432', 'db-2:5433']
    >>> [*Address("postgresql://shop@/shop?host=db-1,db-2&port=5432,5433").dsns]
    ['db-1:5432', 'db-2:5433']
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("postgresql", "postgres"):
            raise SettingError("The store's URL", parts.scheme, "Write postgresql://user@host/database?schema=shop.")
        settings = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.schema = _schema(settings.pop("schema", DEFAULT_SCHEMA))
        self.pooled = _pooled(settings.pop("pooler", "session"))
        self.connections = _connections(settings.pop("connections", str(DEFAULT_CONNECTIONS)))
        user, at, named = parts.netloc.rpartition("@")
        # Which of several is preferred is known only after asking them all.
        each = [named] if settings.get("target_session_attrs", "").startswith("prefer-") else _hosts(named, settings)
        hosts = ",".join(each)
        dsn = parts._replace(
            scheme="postgresql", netloc=f"{user}{at}{hosts}", query=urlencode(settings, quote_via=quote)
        )
        self.dsn = urlunsplit(dsn)
        self._wants_primary = settings.get("target_session_attrs") in ("primary", "read-write")
        self.dsns = {host: urlunsplit(dsn._replace(netloc=f"{user}{at}{host}")) for host in each}
        # Not behind a pooler: it may know the database by another name.
        self.database = None if self.pooled else unquote(parts.path.strip("/")) or None
        # Without user and password: this is what errors and logs say.
        self._shown = f"postgresql://{hosts}{parts.path}?schema={self.schema}"

    def __str__(self) -> str:
        return self._shown

    def prefer(self, host: str) -> None:
        """Let a host be the first to be tried from now on: one that hangs costs its time once.

        Unless any host will do: the first may be the primary, and this one a standby that was there meanwhile.
        """
        if not self._wants_primary:
            return
        self.dsns = {host: self.dsns[host]} | self.dsns

    @property
    def lock_class(self) -> int:
        """The first of the two numbers of this schema's advisory locks."""
        number = blake2b(self.schema.encode(), digest_size=4).digest()
        return int.from_bytes(number, "big", signed=True)

    @property
    def channel(self) -> str:
        """The channel on which processes notify each other of work; short, however long the schema's name is."""
        return f"mainspring_{blake2b(self.schema.encode(), digest_size=8).hexdigest()}"


def _hosts(named: str, settings: dict[str, str]) -> list[str]:
    """Return each of several hosts with its port; those that stand elsewhere in the URL are taken out of there."""
    listed = named or settings.get("host") or environ.get("PGHOST", "")
    if "," not in listed:
        return [named]  # asyncpg looks for it in the same places
    if "," in (ports := environ.get("PGPORT", "")):
        raise SettingError("PGPORT", ports, f"Unset it, and name each port in the URL: {_EXAMPLE}.")
    if named:
        return named.split(",")
    settings.pop("host", None)
    hosts, ports = listed.split(","), settings.pop("port", "").split(",")
    if len(ports) not in (1, len(hosts)):
        raise SettingError("The ports of the store's URL", ",".join(ports), f"Name one for each host: {_EXAMPLE}.")
    each = zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
    return [f"{quote(host, safe=':[]')}:{port}".removesuffix(":") for host, port in each]


def _schema(name: str) -> str:
    if not name or len(name.encode()) > _SCHEMA_BYTES or name.startswith("pg_") or "\0" in name:
        raise SettingError("The store's schema", name, "Use a name of 1 to 63 bytes that does not begin with pg_.")
    return name


def _pooled(pooler: str) -> bool:
    if pooler not in ("session", "transaction"):
        raise SettingError(
            "The store's pooler", pooler, "Write pooler=transaction behind one in that mode, or nothing."
        )
    return pooler == "transaction"


def _connections(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 1_000:
        raise SettingError("The store's connections", text, "Write a number from 2 to 1000.")
    return int(text)
