"""One instance's way through its stream, told to a miner.

Many streams, page by page: those of all instances that are found, or of a sample.

A workflow of an app, ready to be drawn: its machine, read from its code, and what its instances did.
"""

from __future__ import annotations

import sys
from typing import Final

from mainspring.analysis.diagram.miner import DECISIONS, SELDOM, UNCOUNTED, Mined, Miner, Output
from mainspring.analysis.outlines import outline_pages, pages_of
from mainspring.analysis.reading.model import COMPENSATED, Machine, without_roots
from mainspring.analysis.streams import sampled
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import ENDED, InstanceFilter, InstanceRow, Outline
from mainspring.port.store import Store

MOVES_KEPT: Final = 10_000
"""Of one instance: how many of its latest changes of state are remembered at least, for a reset to find back."""

_INPUTS: Final = frozenset({"InitiatedBy", "Received"})
_ENDS: Final = {"Completed": "completed", "Failed": "failed"}
_FROM_OUTSIDE: Final = {"Cancelled": "cancelled", "Terminated": "terminated"}


class Trail:
    """One instance's way through its stream, told to a miner."""

    __slots__ = (
        "_ended_us",
        "_ends",
        "_entered_us",
        "_first",
        "_instance",
        "_message",
        "_miner",
        "_moves",
        "_outputs",
        "_source",
        "_state",
        "_version",
        "_waited",
    )

    def __init__(self, miner: Miner, instance: InstanceRow) -> None:
        miner.begin()
        self._miner = miner
        self._instance = instance
        self._state: str | None = miner.initial
        self._entered_us: int | None = None
        # Where it was from which version on. What is too long ago to be kept is not known any more.
        self._first: str | None = miner.initial
        self._moves: list[tuple[int, str | None]] = []
        self._version = 0
        # The step that is being read. It is over at the next input, or where the stream branches or ends.
        self._message: str | None = None
        self._source: str | None = None
        self._waited = False
        self._outputs: list[Output] = []
        self._ends: str | None = None
        self._ended_us = 0

    def take(self, outline: Outline, back_to: int | None = None) -> None:
        """Take the next event. `back_to` is the version to which a Reset went back, which its outline does not say."""
        _, version, event, time_us, type, _, cause, state, _, _, _, _ = outline
        if version != self._version + 1:
            self._settle()
            self._state = self._first = self._entered_us = None
            self._moves.clear()
        self._version = version
        if event in _INPUTS:
            self._input(type, state, time_us)
        elif event == "AnswerRefused":
            self._input(type, state, time_us)
            self._outputs.append((event, None))
        elif event in DECISIONS:
            self._output(event, type, cause, time_us)
        elif event == "Compensated":
            self._settle()
            self._message, self._source = COMPENSATED, self._state
            self._waited = True
        elif event in _FROM_OUTSIDE:
            self._settle()
            self._leave(time_us)
        elif event in SELDOM:
            self._settle()
            self._miner.seldom(event if event != "Began" or version > 1 else None)
            self._branch(event, version, time_us, back_to)

    def end(self) -> None:
        """The stream is over: the row of the instance says where it stands now."""
        instance = self._instance
        if self._ends is not None and self._message == COMPENSATED:
            # What failed behind its compensations took no input that could name the state.
            self._move(instance.state, instance.updated_us)
        self._settle()
        if instance.status in _FROM_OUTSIDE.values():
            self._miner.outside(instance.state or "an unknown state", instance.status)
        elif instance.status not in ENDED and instance.state is not None:
            self._miner.stays(instance.state)

    def _input(self, message: str | None, state: str | None, time_us: int) -> None:
        self._settle()
        self._source, self._message = self._state, message
        self._waited = self._entered_us is not None
        if self._source is None or message is None:
            self._miner.seldom(UNCOUNTED)
        self._move(state, time_us)

    def _output(self, event: str, type: str | None, cause: int | None, time_us: int) -> None:
        if event == "Compensating" and cause is None:
            # An operator cancelled the instance: no step decided that, and no row names the state that it led to.
            self._settle()
            self._leave(time_us)
            self._state = None
            return
        self._outputs.append((event, type))
        self._ends = _ENDS.get(event)
        self._ended_us = time_us

    def _branch(self, event: str, version: int, time_us: int, back_to: int | None) -> None:
        """Go on elsewhere than where the last step led to."""
        if event == "Began":
            self._state = self._first = self._miner.initial
            self._entered_us = None
            self._moves.clear()
        elif event == "Reset":
            while self._moves and self._moves[-1][0] > (back_to or 0):
                self._moves.pop()
            self._leave(time_us)
            self._state = self._moves[-1][1] if self._moves else self._first
            self._entered_us = time_us
        elif event == "Migrated" and not self._miner.trusts(self._state):
            self._state = self._entered_us = None

    def _move(self, state: str | None, time_us: int) -> None:
        """Be in a state from now on."""
        if state == self._state and (self._entered_us is not None or state is None):
            return
        self._leave(time_us)
        if state is not None:
            self._miner.entered(state)
        self._state, self._entered_us = state, time_us
        self._moves.append((self._version, state))
        if len(self._moves) > 2 * MOVES_KEPT:
            del self._moves[:MOVES_KEPT]
            self._first = None

    def _leave(self, time_us: int) -> None:
        """Count a stay that is over. In its initial state an instance is from its first input on, if it stays there."""
        if self._state is not None and self._entered_us is not None:
            self._miner.left(self._state, time_us - self._entered_us)
        self._entered_us = None

    def _settle(self) -> None:
        """Count the step that is over now, if all of it is known."""
        message, source, target = self._message, self._source, self._state
        if self._ends is not None and source == target and self._waited:
            # A state that the last step led to was not waited in.
            self._leave(self._ended_us)
        elif self._ends is not None:
            self._entered_us = None
        if message is not None and source is not None:
            if target is None:
                self._miner.seldom(UNCOUNTED)
            else:
                self._miner.step(source, message, target, self._ends, self._outputs)
        self._message = self._source = self._ends = None
        self._outputs.clear()


async def mine(store: Store, where: InstanceFilter, miner: Miner, sample: int | None = None) -> Mined:
    """Read the streams of the instances that are found, page by page, and return what they did.

    With `sample`, of so many at most: those whose ids have the lowest checksums, which is as good as by lot, and the
    same ones every time.
    """
    chosen = None if sample is None else await sampled(store, [where], sample)
    pages = outline_pages(store, where) if chosen is None else pages_of(store, chosen)
    trail: Trail | None = None
    of = 0
    instances: dict[int, InstanceRow] = {}
    async for page in pages:
        if page.instances:
            instances = {row.key: row for row in page.instances}
        resets = page.resets
        for outline in page.rows:
            if outline[0] != of or trail is None:
                if trail is not None:
                    trail.end()
                of = outline[0]
                trail = Trail(miner, instances[of])
            trail.take(outline, resets.get((of, outline[1])) if resets else None)
        miner.settle()
    if trail is not None:
        trail.end()
    return miner.mined()


def machine_of(entry: WorkflowEntry) -> Machine:
    """Return a workflow as its code says it is."""
    from mainspring.analysis.reading.machine import read_machine  # noqa: PLC0415  history is drawn without it

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
