"""Bugs to plant: what the harness must find, so that its silence means something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from mainspring.port.records import Committed, Outcome, Unit
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.sqlite import SqliteStore

STORES: Final[tuple[type[Any], ...]] = (SqliteStore, PostgresStore)


def outbox_behind_the_commit() -> None:
    """Write the outputs of a step in a second transaction, behind the one that has its events."""
    for store in STORES:
        commit = store.commit

        async def late(
            self: Any, worker: int, units: Sequence[Unit], commit: Callable[..., Any] = commit
        ) -> list[Outcome]:
            outcomes: list[Outcome] = await commit(self, worker, [replace(unit, outputs=()) for unit in units])
            owed = [
                Unit(
                    unit.workflow,
                    unit.instance,
                    key=outcome.key,
                    expected_version=(unit.expected_version or 0) + len(unit.events),
                    outputs=unit.outputs,
                    status=unit.status,
                    state=unit.state,
                )
                for unit, outcome in zip(units, outcomes, strict=True)
                if unit.outputs and isinstance(outcome, Committed)
            ]
            if owed:
                await commit(self, worker, owed)
            return outcomes

        store.commit = late


def settled_behind_the_commit() -> None:
    """Settle an output in a second transaction, behind the one that takes its result."""
    for store in STORES:
        commit = store.commit

        async def late(
            self: Any, worker: int, units: Sequence[Unit], commit: Callable[..., Any] = commit
        ) -> list[Outcome]:
            outcomes: list[Outcome] = await commit(self, worker, [replace(unit, settles=()) for unit in units])
            settled = [
                Unit(unit.workflow, unit.instance, settles=unit.settles)
                for unit, outcome in zip(units, outcomes, strict=True)
                if unit.settles and isinstance(outcome, Committed)
            ]
            if settled:
                await commit(self, worker, settled)
            return outcomes

        store.commit = late


PLANTS: Final[dict[str, Callable[[], None]]] = {
    plant.__name__: plant for plant in (outbox_behind_the_commit, settled_behind_the_commit)
}
