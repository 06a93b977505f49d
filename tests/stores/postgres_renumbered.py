"""A store whose numbers have no gaps, whatever those of the store behind it are.

PostgreSQL's sequences skip numbers, and its feed counts by transactions. Here keys, positions and ids are numbered in
the order of their first appearance, as the memory store does it, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from mainspring.port.records import (
    Claims,
    Committed,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Loaded,
    Outcome,
    OutputClaim,
    OutputKey,
    Ref,
    Unit,
)
from mainspring.port.store import Store

NOWHERE = 10**12


class Numbers:
    """Numbers from 1 on for numbers that increase."""

    def __init__(self) -> None:
        self._own: dict[int, int] = {0: 0}
        self._theirs: dict[int, int] = {0: 0}

    def own(self, theirs: int) -> int:
        if theirs not in self._own:
            self._own[theirs] = len(self._own)
            self._theirs[self._own[theirs]] = theirs
        return self._own[theirs]

    def theirs(self, own: int) -> int:
        return self._theirs.get(own, NOWHERE + own)


def renumbered(store: Store) -> Any:
    """Return a store before a store, with numbers of its own."""
    return _Renumbered(store)


class _Renumbered:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys = Numbers()
        self._positions = Numbers()
        self._letters = Numbers()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        outcomes = await self._store.commit(worker, [self._unit(unit) for unit in units])
        for letter in await self._store.dead_letters(10_000):
            self._letters.own(letter.id)
        own = self._positions.own
        return [
            Committed(self._keys.own(one.key), *(tuple(map(own, part)) for part in (one.positions, one.unclaimed)))
            if isinstance(one, Committed)
            else one
            for one in outcomes
        ]

    async def claim(self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int) -> Claims:
        claims = await self._store.claim(worker, destinations, workflows, limit)
        outputs, inputs = map(self._claim, claims.outputs), map(self._input, claims.inputs)
        return replace(claims, outputs=list(outputs), inputs=list(inputs))

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        return [one and replace(one, row=self._row(one.row)) for one in await self._store.load(refs, most)]

    async def instances(self, where: InstanceFilter, limit: int) -> list[InstanceRow]:
        return [self._row(row) for row in await self._store.instances(where, limit)]

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        assert after == 0
        return [(n, ref, event) for n, (_, ref, event) in enumerate(await self._store.feed(0, limit), 1)]

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return [self._input(row) for row in await self._store.inbox(ref, limit)]

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        return [self._claim(claim) for claim in await self._store.outputs(ref, timers, limit)]

    async def dead_letters(self, limit: int) -> list[DeadLetter]:
        return [
            replace(letter, id=self._letters.own(letter.id), output=letter.output and self._output(letter.output))
            for letter in await self._store.dead_letters(limit)
        ]

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        return await self._store.restore_output(self._letters.theirs(dead_letter), expected_version)

    async def holds(self, worker: int) -> list[OutputKey]:
        return [self._output(output) for output in await self._store.holds(worker)]

    def _unit(self, unit: Unit) -> Unit:
        return replace(
            unit,
            key=unit.key and self._keys.theirs(unit.key),
            settles=tuple(map(self._spot, unit.settles)),
            retries=tuple(replace(retry, output=self._spot(retry.output)) for retry in unit.retries),
            consumes=None if unit.consumes is None else self._positions.theirs(unit.consumes),
            releases=tuple(map(self._positions.theirs, unit.releases)),
            discards=tuple(map(self._letters.theirs, unit.discards)),
            dead_letters=tuple(
                replace(letter, output=letter.output and self._spot(letter.output)) for letter in unit.dead_letters
            ),
        )

    def _spot(self, output: OutputKey) -> OutputKey:
        return OutputKey(self._keys.theirs(output.instance), output.version)

    def _output(self, output: OutputKey) -> OutputKey:
        return OutputKey(self._keys.own(output.instance), output.version)

    def _claim(self, claim: OutputClaim) -> OutputClaim:
        return replace(claim, output=self._output(claim.output))

    def _row(self, row: InstanceRow) -> InstanceRow:
        return replace(row, key=self._keys.own(row.key))

    def _input(self, row: InputRow) -> InputRow:
        return replace(row, position=self._positions.own(row.position))
