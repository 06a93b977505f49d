"""The plan of a run: all that a seed chooses before anything happens, as a value that can be made smaller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

CORE_FAULTS: Final = {
    "crash": "a process dies at some await",
    "crash_at_commit": "a process dies just before or just after a commit of its",
    "error": "the database refuses before anything was done",
    "lost_answer": "the database did it, and the answer is lost",
    "pause": "a process is held beyond its lease, and goes on",
    "lease": "a lease ends in the middle of work",
    "skew": "the clocks of processes are up to an hour apart",
    "slow": "the database takes seconds",
    "slow_reader": "reads come back seconds old",
    "partial": "claims bring fewer than there are",
    "deaf": "wake-ups are lost",
    "restart": "a process stops in order, and starts again",
    "drop": "a client's message never arrives",
    "delay": "a client's message takes seconds",
    "reorder": "a client's messages overtake each other",
    "duplicate": "a client's message arrives twice",
    "handler_error": "a handler fails before its effect",
    "handler_lost": "a handler fails after its effect",
    "handler_hang": "a handler hangs beyond its timeout",
    "operator": "somebody suspends, cancels, or retries",
}
EDGE_FAULTS: Final = {
    "purge": "what has ended is purged while others work",
    "redelivery": "a broker delivers again what was acknowledged",
    "late_acknowledgement": "who acknowledges is taken for gone, and its messages go to another",
    "lost_confirmation": "a broker has a message, and its confirmation is lost",
    "broker_away": "a broker refuses",
    "paused": "somebody pauses handlers and workflows for all, and resumes them",
}
FAULTS: Final = {**CORE_FAULTS, **EDGE_FAULTS}
CORE_CAST: Final = ("journey", "holiday", "project", "approval", "gauge", "score")
EDGE_CAST: Final = ("contract", "parcel")
CAST: Final = (*CORE_CAST, *EDGE_CAST, "petition")


@dataclass(frozen=True)
class Plan:
    """What a run is made of. `cast` says how many instances of each kind there are."""

    seed: int
    nodes: int
    faults: frozenset[str]
    fault_seconds: int
    cast: tuple[tuple[str, int], ...]
    known_dead: bool
    """Whether a dead process is noticed at once, as by its session on PostgreSQL; else by its lease alone."""
    plant: str | None = None

    @property
    def instances(self) -> int:
        """How many instances clients begin."""
        return sum(count for _, count in self.cast)

    def random(self, purpose: str) -> Random:
        """Return a source of chance for one purpose: what is left out of a plan does not change the rest."""
        return Random(f"{self.seed}/{purpose}")  # noqa: S311  no secret

    def command(self) -> str:
        """Return what repeats this very run."""
        parts = [f"python -m simulate --seed {self.seed}"]
        whole = plan_of(self.seed)
        if self.faults != whole.faults:
            parts.append(f"--only {','.join(sorted(self.faults)) or 'none'}")
        if self.cast != whole.cast:
            parts.append(f"--cast {','.join(f'{name}={count}' for name, count in self.cast if count) or 'none'}")
        if self.nodes != whole.nodes:
            parts.append(f"--nodes {self.nodes}")
        if self.fault_seconds != whole.fault_seconds:
            parts.append(f"--fault-seconds {self.fault_seconds}")
        if self.plant is not None:
            parts.append(f"--plant {self.plant}")
        return " ".join(parts)


def plan_of(seed: int, *, plant: str | None = None) -> Plan:
    """Return what a seed chooses: some faults, a few processes, a few instances."""
    random = Random(f"{seed}/plan")  # noqa: S311  no secret
    share = random.choice((0.15, 0.35, 0.6))
    faults = frozenset(kind for kind in CORE_FAULTS if random.random() < share)
    wanted = random.randint(2, 7)
    kinds = random.choices(CORE_CAST, (4, 3, 2, 2, 2, 2), k=wanted)
    # Apart from the rest, so that what a seed chooses of the one does not hang on the other.
    edges = Random(f"{seed}/edges")  # noqa: S311  no secret
    kinds += edges.choices(EDGE_CAST, k=edges.choice((0, 2, 4)))
    faults |= {kind for kind in EDGE_FAULTS if edges.random() < 0.5}
    kinds += ["petition"] * Random(f"{seed}/petitions").choice((0, 0, 2, 4))  # noqa: S311  no secret
    return Plan(
        seed=seed,
        nodes=random.choice((1, 2, 2, 3)),
        faults=faults,
        fault_seconds=random.choice((15, 45, 75)),
        cast=tuple((kind, kinds.count(kind)) for kind in CAST),
        known_dead=random.random() < 0.5,
        plant=plant,
    )


def smaller(plan: Plan) -> list[Plan]:
    """Return plans with one thing less, what takes away most first."""
    found: list[Plan] = []
    faults = sorted(plan.faults)
    if len(faults) > 3:
        half = len(faults) // 2
        found += [replace(plan, faults=frozenset(part)) for part in (faults[:half], faults[half:])]
    for kind, count in plan.cast:
        found += [_with(plan, kind, less) for less in dict.fromkeys((0, count - 1)) if 0 <= less < count]
    found += [replace(plan, faults=plan.faults - {kind}) for kind in faults]
    if plan.nodes > 1:
        found.append(replace(plan, nodes=plan.nodes - 1))
    if plan.fault_seconds > 5:
        found += [replace(plan, fault_seconds=less) for less in (plan.fault_seconds // 2, plan.fault_seconds - 5)]
    return found


def _with(plan: Plan, kind: str, count: int) -> Plan:
    return replace(plan, cast=tuple((name, count if name == kind else known) for name, known in plan.cast))
