"""Redis or Valkey streams as a broker, by redis-py.

An address is the key of a stream; an entry has the message under `data` and its headers as other fields. A group is a
consumer group, of which one process at a time reads, so that order is kept: it has the turn, a key that expires when it
is not renewed. All of them read under one consumer's name, so its successor begins with what was not acknowledged.

Redis has no deduplication ids: a script adds an entry unless its id is remembered, and remembers it for a while
(`duplicate_seconds`). It keeps a stream in memory, and as durably as it is configured: with `appendonly yes` and
`appendfsync always` what was confirmed survives; with the usual `everysec` the last second may be lost in a crash, with
neither all of it. `wait_for_disk` confirms only when the log is synced. What a replica has not got yet is lost when it
takes over. Acknowledged entries stay in the stream, unless `delete` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any, Final, cast
from weakref import WeakSet

from mainspring.brokers.adapters import going_on, installed
from mainspring.brokers.port import Outgoing, Subscription
from mainspring.brokers.routing import checked_seconds
from mainspring.errors import BrokerError
from mainspring.logs import logger

with installed("redis", "redis", "redis"):
    from redis.asyncio import Redis
    from redis.exceptions import ResponseError

    from mainspring.brokers.redis_subscription import RedisSubscription

BODY: Final = "data"
CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 10.0
TAKEOVER_SECONDS: Final = 10.0
SHORTEST_TAKEOVER_SECONDS: Final = 0.5
LONGEST_TAKEOVER_SECONDS: Final = 3_600.0
DUPLICATE_SECONDS: Final = 600.0
SHORTEST_DUPLICATE_SECONDS: Final = 0.001
LONGEST_DUPLICATE_SECONDS: Final = 30 * 24 * 3_600.0
DISK_SECONDS: Final = 5.0

# Adds an entry unless one with its id was added a while ago. A script that fails is not undone by Redis: an id whose
# entry was refused must be forgotten, else the next attempt would be taken for a repetition.
_ADD: Final = """
if not redis.call('SET', KEYS[2], '1', 'NX', 'PX', ARGV[1]) then
    return false
end
local added = redis.pcall('XADD', KEYS[1], '*', unpack(ARGV, 2))
if type(added) == 'table' and added.err then
    redis.call('DEL', KEYS[2])
end
return added
"""

log = logger("mainspring.brokers")


class RedisBroker:
    """A broker by the URL of a Redis or Valkey server.

    `takeover_seconds` is after how long without a sign of life another process takes over. `delete` removes entries
    when they are acknowledged: for a stream that one group alone reads. `connect` is handed to the client.

    >>> broker = RedisBroker("redis://localhost:6379/0")
    """

    def __init__(
        self,
        url: str,
        *,
        takeover_seconds: float = TAKEOVER_SECONDS,
        duplicate_seconds: float = DUPLICATE_SECONDS,
        wait_for_disk: bool = False,
        delete: bool = False,
        connect: Mapping[str, Any] | None = None,
    ) -> None:
        checked_seconds("takeover_seconds", takeover_seconds, SHORTEST_TAKEOVER_SECONDS, LONGEST_TAKEOVER_SECONDS)
        checked_seconds("duplicate_seconds", duplicate_seconds, SHORTEST_DUPLICATE_SECONDS, LONGEST_DUPLICATE_SECONDS)
        self._url = f"redis{url.removeprefix('valkey')}" if url.startswith("valkey") else url
        self._takeover_ms = int(takeover_seconds * 1_000)
        self._duplicate_ms = int(duplicate_seconds * 1_000)
        self._wait_for_disk = wait_for_disk
        self._delete = delete
        self._connect = dict(connect or {})
        self._client: Redis | None = None
        self._subscriptions: WeakSet[RedisSubscription] = WeakSet()

    async def open(self) -> None:
        """Nothing to prepare: it connects on first use."""

    async def close(self) -> None:
        for subscription in self._subscriptions:
            subscription.abandon()
        client, self._client = self._client, None
        if client is not None:
            with going_on("closing the connection to Redis"):
                await client.aclose()

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        client = self._connected()
        try:
            await client.xgroup_create(address, group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise BrokerError("redis", f"has no group {group} for {address}: {error}", "Look at the key.") from None
        turn = beside(address, f"turn:{group}")
        subscription = RedisSubscription(
            client, address, group, turn, token_hex(8), prefetch, self._takeover_ms, delete=self._delete
        )
        self._subscriptions.add(subscription)
        return subscription

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        async with self._connected().pipeline(transaction=False) as pipe:
            for message in messages:
                fields = [part for field in message.headers.items() for part in field]
                known = beside(message.address, f"id:{message.id}")
                pipe.eval(_ADD, 2, message.address, known, self._duplicate_ms, BODY, message.body, *fields)
            if self._wait_for_disk:
                cast("Any", pipe).execute_command("WAITAOF", 1, 0, int(DISK_SECONDS * 1_000))
            answers: list[Any] = await pipe.execute(raise_on_error=False)
        if self._wait_for_disk and (unsynced := _unsynced(answers.pop())):
            return [unsynced] * len(messages)
        return [answer if isinstance(answer, Exception) else None for answer in answers]

    async def lag(self, address: str, group: str) -> int | None:
        client = self._connected()
        if not await client.exists(address):
            return 0
        for found in await client.xinfo_groups(address):
            if found["name"] == group.encode():
                lag = found.get("lag")
                return None if lag is None else int(lag) + int(found["pending"])
        return int(await client.xlen(address))

    def _connected(self) -> Redis:
        if self._client is None:
            options: dict[str, Any] = {
                "socket_connect_timeout": CONNECT_SECONDS,
                "socket_timeout": ANSWER_SECONDS,
                "decode_responses": False,
                **self._connect,
            }
            self._client = cast("Redis", cast("Any", Redis).from_url(self._url, **options))
        return self._client


def beside(address: str, what: str) -> str:
    """Return a key that a cluster keeps where it keeps the stream.

    >>> beside("orders", "turn:shop"), beside("{shop}:orders", "turn:shop")
    ('{orders}:mainspring:turn:shop', '{shop}:orders:mainspring:turn:shop')
    """
    return f"{address}:mainspring:{what}" if "{" in address else f"{{{address}}}:mainspring:{what}"


def _unsynced(answer: Any) -> Exception | None:
    """Return why it is not known that the log was synced."""
    if isinstance(answer, Exception):
        return answer
    if not answer or int(answer[0]) < 1:
        return BrokerError("redis", "did not sync its log in time", "It is sent again under the same id.")
    return None
