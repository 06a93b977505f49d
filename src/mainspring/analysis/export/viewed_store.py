"""A store as seen by someone with limited permissions: of errors only the kinds, which alone can be searched."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from mainspring.analysis.export.redaction import Redaction
from mainspring.engine.operations.known_pauses import pauses_of
from mainspring.engine.operations.pauses import Pause
from mainspring.port.attempts import Attempt
from mainspring.port.pages import Page
from mainspring.port.records import (
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Loaded,
    OutputClaim,
    Ref,
)
from mainspring.port.searches import Found
from mainspring.port.store import Store
from mainspring.stores.wrapped import WrappedStore


def viewed(store: Store, redaction: Redaction) -> Store:
    """Return a store in which errors are found and read as they may be shown. Bodies are as they are: code reads them.

    >>> from mainspring.stores.memory import MemoryStore
    >>> from mainspring.testing.clock import VirtualClock
    >>> store = MemoryStore(VirtualClock())
    >>> viewed(store, Redaction(payloads=True)) is store
    True
    """
    return ViewedStore(store, redaction) if redaction.fields else store


async def paused(store: Store) -> tuple[Pause, ...]:
    """Return what is paused, and why as far as that may be shown: people write reasons as they like."""
    pauses = await pauses_of(store)
    if not isinstance(store, ViewedStore):
        return pauses
    return tuple(dataclasses.replace(pause, reason=store.redaction.error(pause.reason)) for pause in pauses)


class ViewedStore(WrappedStore):
    """Overrides the verbs in which errors travel. All others are the store's own."""

    def __init__(self, store: Store, redaction: Redaction) -> None:
        super().__init__(store)
        self.redaction = redaction

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        page = Page[InstanceRow, InstanceRow](limit, lambda row: self._found(row, where))
        while page.wants:
            page.take(await self._store.instances(_any_error(where), page.wants, page.last.key if page.last else after))
        return page.records

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        # Where a look ends must not depend on what was looked for either: the caller sees it.
        rows, behind = await self._store.search(_any_error(where), limit, after, newest)
        return Found([found for row in rows if (found := self._found(row, where)) is not None], behind)

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        found = await self._store.load(refs, most)
        return [None if each is None else replace(each, row=self._shown(each.row)) for each in found]

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        return [self._shown(claim) for claim in await self._store.outputs(ref, timers, limit)]

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        return [self._shown(one) for one in await self._store.attempts(ref, limit)]

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        return [self._letter(letter) for letter in await self._store.dead_letters(limit, after, ids)]

    async def messages(self, ref: Ref, message_id: str) -> list[InputRow | EventRow | DeadLetter]:
        found = await self._store.messages(ref, message_id)
        return [self._letter(one) if isinstance(one, DeadLetter) else one for one in found]

    def _letter(self, letter: DeadLetter) -> DeadLetter:
        return replace(self._shown(letter), reason=self.redaction.rule(letter.reason))

    def _found(self, row: InstanceRow, where: InstanceFilter) -> InstanceRow | None:
        shown = self._shown(row)
        return shown if where.error is None or where.error in (shown.error or "") else None

    def _shown(self, row: Any) -> Any:
        return row if row.error is None else replace(row, error=self.redaction.error(row.error))


def _any_error(where: InstanceFilter) -> InstanceFilter:
    return where if where.error is None else replace(where, error="")
