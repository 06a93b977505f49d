"""A place among the readers of a stream of Redis. Only the holder of the turn reads, and so renews it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from mainspring.brokers.adapters import going_on
from mainspring.brokers.port import Delivery
from mainspring.errors import BrokerError
from mainspring.logs import logger

# All who read for a group do so under one name: what it has not acknowledged is the next one's.
CONSUMER: Final = "mainspring"
BODY: Final = b"data"
BEGINNING: Final = "0-0"
NEW: Final = ">"
CLAIMS_PER_CALL: Final = 1_000
LOOKS: Final = 10
CLOSE_SECONDS: Final = 3.0
RENEWALS: Final = 4

# Reads, if it is the reader's turn, and renews that.
_READ: Final = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
    return redis.error_reply('TURN lost')
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return redis.call('XREADGROUP', 'GROUP', ARGV[3], ARGV[4], 'COUNT', ARGV[5], 'STREAMS', KEYS[1], ARGV[6])
"""
# One whose answer was lost, with a cancellation as a rule, may be its own already.
_TAKE: Final = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
    return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RENEW: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
"""
_RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
"""

log = logger("mainspring.brokers")


class RedisSubscription:
    """One reader of a group."""

    def __init__(
        self,
        client: Redis,
        address: str,
        group: str,
        turn: str,
        owner: str,
        prefetch: int,
        takeover_ms: int,
        *,
        delete: bool,
    ) -> None:
        self._client: Any = client  # the annotations of redis-py leave too much open
        self._address = address
        self._group = group
        self._turn = turn
        self._owner = owner
        self._prefetch = prefetch
        self._takeover_ms = takeover_ms
        self._delete = delete
        self._has_turn = False
        # Behind which of the entries that are not acknowledged to read on; None: they were all read.
        self._cursor: str | None = BEGINNING
        self._last_id = BEGINNING
        self._out: set[bytes] = set()
        self._renewing: asyncio.Task[None] | None = None

    # ---- the contract

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        deadline = _now() + wait_seconds
        if not await self._took_turn(deadline):
            return []
        while True:
            room = min(limit, self._prefetch - len(self._out))
            if room > 0 and (found := await self._read(room)):
                return found
            left = deadline - _now()
            if left <= 0:
                return []
            if room > 0:
                await self._wait_for_entries(left)
            else:
                await asyncio.sleep(min(left, self._look_seconds))

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        ids = [delivery.token for delivery in deliveries]
        if not ids:
            return
        async with self._client.pipeline(transaction=self._delete) as pipe:
            pipe.xack(self._address, self._group, *ids)
            if self._delete:
                pipe.xdel(self._address, *ids)
            await pipe.execute()
        self._out.difference_update(ids)

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        # No other consumer had them: they are read once more, before anything new.
        self._out.difference_update(delivery.token for delivery in deliveries)
        self._cursor = BEGINNING

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        if not await self._client.eval(_RENEW, 1, self._turn, self._owner, self._takeover_ms):
            raise self._lost()

    async def close(self) -> None:
        self.abandon()
        with going_on("giving the turn at Redis back"):
            async with asyncio.timeout(CLOSE_SECONDS):
                # Perhaps it has the turn, and the answer was lost.
                await self._client.eval(_RELEASE, 1, self._turn, self._owner)

    def abandon(self) -> None:
        """Renew the turn no longer: the connection is gone."""
        renewing, self._renewing = self._renewing, None
        if renewing is not None:
            renewing.cancel()

    # ---- reading

    @property
    def _look_seconds(self) -> float:
        return self._takeover_ms / 1_000 / LOOKS

    async def _took_turn(self, deadline: float) -> bool:
        """Return True if it is this one's turn; wait for that until the deadline."""
        while not self._has_turn:
            if await self._client.eval(_TAKE, 1, self._turn, self._owner, self._takeover_ms):
                self._has_turn = True
                self._renewing = asyncio.create_task(self._renew(), name="mainspring-redis-turn")
                try:
                    await self._claim_all()
                except BaseException:
                    self._has_turn = False  # else the rest would not be claimed any more
                    self.abandon()
                    raise
                break
            left = deadline - _now()
            await asyncio.sleep(max(0.0, min(left, self._look_seconds)))
            if left <= self._look_seconds:
                return False
        return True

    async def _renew(self) -> None:
        """Keep the turn as long as this process lives. A failure is seen by the next read or extend."""
        # A cancellation may be lost in Python 3.11, whose `wait_for` the client uses: so the task checks too.
        while self._has_turn and self._renewing is asyncio.current_task():
            await asyncio.sleep(self._takeover_ms / 1_000 / RENEWALS)
            try:
                await self._client.eval(_RENEW, 1, self._turn, self._owner, self._takeover_ms)
            except Exception as error:  # noqa: BLE001  it is tried again as long as this process lives
                log.info("the turn at Redis was not renewed: %s", error)

    async def _claim_all(self) -> None:
        """Claim what readers under other names did not acknowledge: only this process has the turn."""
        cursor: Any = BEGINNING
        while True:
            cursor, *_ = await self._client.xautoclaim(
                self._address, self._group, CONSUMER, 0, start_id=cursor, count=CLAIMS_PER_CALL, justid=False
            )
            if cursor in (b"0-0", BEGINNING):
                return

    async def _read(self, room: int) -> list[Delivery]:
        """Return the next entries: those that were not acknowledged, then new ones."""
        while self._cursor is not None:
            entries = await self._entries(self._cursor, room + len(self._out))
            if not entries:
                self._cursor = None
                break
            self._cursor = entries[-1][0].decode()
            fresh = [entry for entry in entries if entry[0] not in self._out]
            await self._forget_deleted([id for id, fields in fresh if not fields])
            found = [entry for entry in fresh if entry[1]][:room]
            if found:
                self._cursor = found[-1][0].decode()
                return self._deliveries(found, attempt=2)
        entries = await self._entries(NEW, room)
        if entries:
            self._last_id = entries[-1][0].decode()
        return self._deliveries(entries, attempt=1)

    async def _entries(self, after: str, count: int) -> list[tuple[bytes, list[bytes]]]:
        # If it fails in between, entries may have been given out whose answer was lost: they are read as not
        # acknowledged.
        cursor, self._cursor = self._cursor, BEGINNING
        try:
            answer = await self._client.eval(
                _READ, 2, self._address, self._turn, self._owner, self._takeover_ms, self._group, CONSUMER, count, after
            )
        except ResponseError as error:
            raise self._lost() if "TURN" in str(error) else _refused(error) from None
        self._cursor = cursor
        return [(id, fields or []) for id, fields in answer[0][1]] if answer else []

    async def _forget_deleted(self, ids: list[bytes]) -> None:
        """Acknowledge what was removed from the stream: nothing of it is left."""
        if ids:
            await self._client.xack(self._address, self._group, *ids)

    async def _wait_for_entries(self, seconds: float) -> None:
        """Wait until there may be something new; this delivers nothing."""
        wait_ms = max(1, int(min(seconds, self._look_seconds) * 1_000))
        if self._last_id == BEGINNING:
            (group,) = [
                found
                for found in await self._client.xinfo_groups(self._address)
                if found["name"] == self._group.encode()
            ]
            self._last_id = group["last-delivered-id"].decode()
        await self._client.xread({self._address: self._last_id}, count=1, block=wait_ms)

    def _deliveries(self, entries: Sequence[tuple[bytes, list[bytes]]], attempt: int) -> list[Delivery]:
        self._out.update(id for id, _ in entries)
        return [self._delivery(id, fields, attempt) for id, fields in entries]

    def _delivery(self, id: bytes, fields: list[bytes], attempt: int) -> Delivery:
        named = dict(zip(fields[::2], fields[1::2], strict=True))
        body = named.pop(BODY, b"")
        headers = {_text(name).lower(): _text(value) for name, value in named.items()}
        return Delivery(body, headers, f"redis:{self._address}/{id.decode()}", None, attempt, id)

    def _lost(self) -> BrokerError:
        self._has_turn, self._cursor = False, BEGINNING
        self.abandon()
        return BrokerError("redis", "let the turn go to another consumer", "It waits for its turn again.")


def _refused(error: ResponseError) -> BrokerError:
    return BrokerError("redis", f"refused to read: {error}", "Look at the stream and its group.")


def _text(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


def _now() -> float:
    return asyncio.get_running_loop().time()
