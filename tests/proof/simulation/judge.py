"""The judge: holds what clients were told, what was committed and what handlers did against the design's invariants.

It knows the workflows and the rows, and nothing of the engine. What the kill loop's judge checks is checked by it, as
far as its workload goes; what is here needs the whole log of commits, or workflows which that one does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.proof.crash import checker
from tests.proof.crash.checker import Checker, Fault
from tests.proof.crash.journey import JOURNEY, WORKFLOWS
from tests.proof.simulation import cases, checks, edges, moments
from tests.proof.simulation.evidence import evidence_of
from tests.proof.simulation.workflows import OWN

if TYPE_CHECKING:
    from tests.proof.simulation.world import World

# The journeys' own; what looks at samples of a kill, or forbids that a worker which was held calls again, does not fit.
OF_JOURNEYS: Final[tuple[checker.Check, ...]] = (
    checker.nothing_unasked,
    checker.versions,
    checker.carried_out,
    checker.causes,
    checker.folds,
    checker.ends,
    checker.late_inputs,
    checker.payments,
    checker.dead_letters,
    checker.at_rest,
)
OF_ALL: Final[tuple[checker.Check, ...]] = (
    checker.acknowledged_once,
    checker.accepted_order,
    checker.one_committer,
)
OF_KEPT: Final[tuple[checker.Check, ...]] = (checker.same_id_same_answer,)
OWN_CHECKS: Final[tuple[Callable[[checks.Case], Iterable[Fault]], ...]] = (
    checks.quiet,
    checks.complaints,
    checks.log_is_stream,
    checks.inbox_order,
    checks.folds,
    checks.snapshots,
    checks.timers,
    moments.held,
    moments.in_turn,
    moments.timers_taken,
    moments.one_body,
    moments.subscribers,
    checks.ends,
    checks.results,
    checks.failures,
    checks.effects,
    checks.calls,
    checks.carried_out,
    checks.causes,
    checks.projection,
    cases.replies,
    cases.tasks,
    cases.sagas,
    cases.projects,
    cases.gauges,
    cases.scores,
    edges.contracts,
    edges.purges,
    edges.taken,
    edges.reported,
)


@dataclass
class Verdict:
    """What was found, and how much each check looked at."""

    faults: list[Fault] = field(default_factory=list[Fault])
    seen: Counter[str] = field(default_factory=Counter[str])


def judged(world: World) -> Verdict:
    """Judge a run."""
    verdict = Verdict()
    names = {*WORKFLOWS, *OWN}
    for workflows, chosen in (
        (WORKFLOWS, OF_JOURNEYS),
        (names, OF_ALL),
        (names - {"Gauge"}, OF_KEPT),
    ):
        looking = Checker(evidence_of(world, workflows), JOURNEY)
        for check in chosen:
            looking.seen = 0
            verdict.faults += _faults(check, looking)
            verdict.seen[f"crash.{check.__name__}"] += looking.seen
    case = checks.Case(world, verdict.seen)
    for check in OWN_CHECKS:
        case.check = check.__name__
        verdict.faults += _faults(check, case)
    return verdict


def _faults(check: Callable[[Any], Iterable[Fault]], subject: Any) -> list[Fault]:
    """Return what a check finds. What makes no sense at all, even to the check, is a fault too."""
    try:
        return list(check(subject))
    except Exception as error:  # noqa: BLE001  rows that no engine should write may break it in any way
        return [Fault(0, f"{check.__name__} cannot make sense of what is there: {error!r}")]
