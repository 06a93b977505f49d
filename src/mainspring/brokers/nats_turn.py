"""Whose turn it is to consume from NATS: a lock in a bucket of the broker itself, renewed while it is held.

JetStream hands the messages of one consumer to any process that asks, and takes those that a dead process was given for
delivered until their time is up. Both would break the order of messages. So one process at a time asks, and a process
that takes over from one that did not leave in order waits until the time of all that it may have been given is up.

No two clocks are compared: a holder that has not renewed the lock for half its time takes nothing more, and a process
that has seen no renewal for the whole of it, by a clock of its own, takes over.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue

from mainspring.logs import logger

HELD: Final = b"held"
FREE: Final = b"free"
DOUBT: Final = b"doubt"
RENEWALS: Final = 4

log = logger("mainspring.brokers")


class Turn:
    """A lock under a key. `seconds` is how long its holder may be silent, and how long it may hold a delivery."""

    def __init__(self, bucket: KeyValue, key: str, owner: str, seconds: float) -> None:
        self._bucket = bucket
        self._key = key
        self._owner = owner.encode()
        self._seconds = seconds
        self._revision: int | None = None
        self._until = 0.0
        self._seen: int | None = None
        self._seen_at = 0.0
        self._renewing: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        # Until then, by the loop's time, something may be out that a former holder was given.
        self.doubt_until = 0.0

    @property
    def held(self) -> bool:
        """Whether it is this process's turn, and surely no other's."""
        return self._revision is not None and _now() < self._until

    async def take(self) -> bool:
        """Take the turn, if it is free or its holder is gone."""
        now = _now()
        try:
            entry = await self._bucket.get(self._key)
        except KeyNotFoundError:
            return await self._took(now, 0, 0.0)
        state = _state(entry)
        if state == HELD and entry.revision != self._seen:
            self._seen, self._seen_at = entry.revision, now
        if state == HELD and now - self._seen_at < self._seconds:
            return False
        silent = self._seen_at + 1.5 * self._seconds
        return await self._took(now, entry.revision or 0, {HELD: silent, DOUBT: now + self._seconds}.get(state, 0.0))

    async def _took(self, now: float, last: int, doubt_until: float) -> bool:
        try:
            if last:
                self._revision = await self._bucket.update(self._key, self._value(HELD), last=last)
            else:
                self._revision = await self._bucket.create(self._key, self._value(HELD))
        except KeyWrongLastSequenceError:
            return False
        self._until, self.doubt_until = now + self._seconds / 2, doubt_until
        self._renewing = asyncio.create_task(self._renew(), name="mainspring-nats-turn")
        return True

    async def _renew(self) -> None:
        while self._revision is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds / 2 / RENEWALS):
                    await self._over.wait()
            if self._over.is_set():
                return
            now = _now()
            try:
                self._revision = await self._renewed(self._revision)
            except Exception as error:  # noqa: BLE001  it is tried again as long as there is time
                log.info("the turn at NATS was not renewed: %s", error)
                continue
            self._until = now + self._seconds / 2

    async def _renewed(self, last: int) -> int | None:
        """Return the revision of a renewal, also of one whose answer was lost; None: another has the turn."""
        try:
            return await self._bucket.update(self._key, self._value(HELD), last=last)
        except KeyWrongLastSequenceError:
            with suppress(KeyNotFoundError):
                entry = await self._bucket.get(self._key)
                if entry.value == self._value(HELD):
                    return entry.revision
            return None

    async def release(self, *, doubt: bool) -> None:
        """Leave the turn to others; with `doubt`, something may still be out."""
        self._over.set()
        if self._renewing is not None:
            # Not cancelled: the revision of a renewal that is under way is needed.
            await asyncio.wait((self._renewing,))
        revision, self._revision = self._revision, None
        if revision is not None:
            with suppress(KeyWrongLastSequenceError):
                await self._bucket.update(self._key, self._value(DOUBT if doubt else FREE), last=revision)

    def abandon(self) -> None:
        """Renew it no longer: the connection is gone."""
        self._over.set()
        self._until = 0.0

    def _value(self, state: bytes) -> bytes:
        return state + b" " + self._owner


def _state(entry: Any) -> bytes:
    return (entry.value or b"").partition(b" ")[0]


def _now() -> float:
    return asyncio.get_running_loop().time()
