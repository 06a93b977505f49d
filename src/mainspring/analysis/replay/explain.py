"""Explain: why a decision was made. Its input, the state, the code, and the branches of decide and evolve.

decide is run once more, in the state that was recorded before the input, under the purity guard: it can do nothing but
decide. What was recorded stays the truth. If today's code decides otherwise, that is said.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from mainspring.analysis.replay.branches import Branch, Trace, branches_taken
from mainspring.core.definition import definition_of
from mainspring.core.events import Began, StreamEvent
from mainspring.core.fold import fold, placed
from mainspring.core.workflow import Workflow
from mainspring.engine.recording.redecision import decided
from mainspring.engine.recording.walk import Moment, beside_input
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import told
from mainspring.flows.flow import decided as decided_by_flow
from mainspring.flows.flow import flow_of
from mainspring.purity.guarding import guarded, with_method

_STYLES: Final = ("mainspring.core.", "mainspring.styles.", "mainspring.flows.")


class Evolved(Struct, frozen=True):
    """The branches of evolve that an event led to."""

    position: int
    branches: tuple[Branch, ...]


class Explanation(Struct, frozen=True):
    """Why an input led to its decisions.

    `workflow_version` and `fingerprint` are those of the code that was asked, today's. `recorded` is what was
    decided, `decided` what today's code decides; they are the same unless it was changed. With an `error`, it decides
    nothing. `asked` is False where the input was decided under another version of the workflow, before a migration:
    today's decide was not asked then. `cut` says that decide ran for so long that its branches are not all known,
    `blind` that none of them are: a debugger or another tool uses all that Python has for it.

    >>> Explanation(2, 1, "0f3a", (), (), recorded=(), decided=()).agrees
    True
    """

    position: int
    workflow_version: int
    fingerprint: str
    decide: tuple[Branch, ...]
    evolve: tuple[Evolved, ...]
    recorded: tuple[StreamEvent[Any, Any], ...]
    decided: tuple[StreamEvent[Any, Any], ...]
    error: str | None = None
    asked: bool = True
    cut: bool = False
    blind: bool = False

    @property
    def agrees(self) -> bool:
        """Whether today's code decides what was recorded, as far as it was asked."""
        return not self.asked or (self.error is None and self.recorded == self.decided)


def explain(entry: WorkflowEntry, moment: Moment, *, evolve: bool = True) -> Explanation | None:
    """Explain the step of a moment; None where no input was taken, so that nothing was decided.

    Without `evolve`, only decide's branches are looked for, which takes half the time.
    """
    if moment.envelope is None:
        return None
    recorded = tuple(beside_input([happened.entry.event for happened in moment.happened]))
    evolved = _evolved(entry.workflow, moment) if evolve else ()
    if moment.migrated:
        return Explanation(
            moment.position, entry.version, entry.fingerprint, (), evolved, recorded, recorded, asked=False
        )
    trace = Trace(own_files(entry.workflow))
    now: tuple[StreamEvent[Any, Any], ...] = ()
    error: str | None = None
    try:
        traced = _traced_step(entry.workflow, trace)
        decide = guarded(f"{type(entry.workflow).__name__}.decide", traced)
        seen = with_method(entry.workflow, "decide_on", decide)
        now = tuple(decided(entry, seen, moment, moment.envelope))
    except Exception as failed:  # noqa: BLE001  an author's decide may raise anything; it is the answer
        error = told(failed)
    return Explanation(
        moment.position,
        entry.version,
        entry.fingerprint,
        tuple(branches_taken(trace.ran())),
        evolved,
        recorded,
        now,
        error,
        cut=trace.cut,
        blind=trace.blind,
    )


def own_files(workflow: Workflow[Any, Any, Any]) -> frozenset[str]:
    """Return the files that a workflow's class and its bases are written in, without those of its style.

    >>> from mainspring.testing import samples
    >>> own_files(samples.Counter()) == {samples.__file__}
    True
    """
    modules = {base.__module__ for base in type(workflow).__mro__ if issubclass(base, Workflow)}
    own = [name for name in modules if not name.startswith(_STYLES)]
    return frozenset(file for name in own if (file := getattr(sys.modules.get(name), "__file__", None)))


def _evolved(workflow: Workflow[Any, Any, Any], moment: Moment) -> tuple[Evolved, ...]:
    """Return the branches of evolve, for each event of a moment for which there are any."""
    found: list[Evolved] = []
    definition, state = definition_of(type(workflow)), moment.before
    if moment.begins:
        first = moment.happened[0].entry
        state = fold(workflow, state, placed(definition, [Began()], first.position - 2, first.time))
    for happened in moment.happened:
        entry = happened.entry
        if not entry.event.folded:
            continue
        trace = Trace(own_files(workflow))
        # It was folded before, so that it does not fail; an impure one is decide's and lint's business.
        seen = placed(definition, [entry.event], entry.position - 1, entry.time, entry.cause)
        state = fold(with_method(workflow, "evolve", _traced(workflow.evolve, trace)), state, seen)
        taken = branches_taken(trace.ran())
        # Most events mean nothing to evolve, and to say so each time would hide those that do.
        if any(branch.kind != "no case" for branch in taken):
            found.append(Evolved(entry.position, tuple(taken)))
    return tuple(found)


def _traced_step(workflow: Workflow[Any, Any, Any], trace: Trace) -> Callable[..., Any]:
    """Return a decide that is traced; of a flow only what it does at this input, and not the way to it."""
    flow = flow_of(workflow)
    if flow is None:
        return _traced(workflow.decide_on, trace)

    def decide(asked: Any, state: Any) -> Any:
        return decided_by_flow(flow, asked, state, lambda run, now: trace.call(run.decide, now))

    return decide


def _traced(method: Callable[..., Any], trace: Trace) -> Callable[..., Any]:
    return lambda *arguments: trace.call(method, *arguments)


def because(taken: Sequence[Branch], function: str) -> Branch | None:
    """Return the branch that says most in one line: the innermost case of a function, else the last one at all.

    >>> because([], "decide") is None
    True
    """
    own = [branch for branch in taken if branch.function.rpartition(".")[2] == function] or taken
    cases = [branch for branch in own if branch.kind in ("case", "no case")]
    return (cases or own or (None,))[-1]
