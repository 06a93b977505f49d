"""A workflow of an app, ready to be drawn: its machine, read from its code, and what its instances did."""

from __future__ import annotations

import sys

from mainspring.analysis.mining import Mined, Miner, mine
from mainspring.analysis.model import Machine
from mainspring.analysis.places import without_roots
from mainspring.analysis.reading import read_machine
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import InstanceFilter
from mainspring.port.store import Store


def machine_of(entry: WorkflowEntry) -> Machine:
    """Return a workflow as its code says it is."""
    return without_roots(read_machine(entry.workflow), sys.path)


async def mined_of(
    store: Store,
    workflow: str,
    entry: WorkflowEntry | None,
    where: InstanceFilter | None = None,
    sample: int | None = None,
) -> Mined:
    """Return what the instances of a workflow did; of those that `where` finds, all or a sample."""
    miner = Miner(workflow)
    if entry is not None:
        states = entry.definition.states
        miner = Miner(workflow, states[type(entry.workflow.initial_state)], states.values())
    return await mine(store, where or InstanceFilter(workflow=workflow), miner, sample)
