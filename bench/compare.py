"""The engine beside the bare limit, interleaved, so that both meet the same machine."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, structs

from bench.measure import Figures, median
from bench.report import medians
from bench.rounds import one_round
from bench.settings import Settings

LATENCIES = 300


class Targets(Struct, frozen=True):
    """What the figures are to reach: W1 at least so much of the limit, W2 at most so many times the bare loop."""

    w1_to_limit: float
    w2_to_loop: float


TARGETS = {"sqlite": Targets(0.55, 2.5), "postgres": Targets(0.50, 3.0)}


def compare(settings: Settings, repeats: int, tell: Callable[[str], None]) -> Figures:
    """Return both sides' medians, and the median of the rounds' ratios."""
    rounds: list[dict[str, Figures]] = []
    for number in range(repeats):
        tell(f"compare, round {number + 1} of {repeats}")
        rounds.append(_round(settings))
    targets = TARGETS[settings.store]
    figures: Figures = {
        **_ratio(rounds, "w1", "limit", "instances_per_s"),
        "w1_to_limit_target": targets.w1_to_limit,
        **_ratio(rounds, "w1", "limit-bulk", "instances_per_s"),
        **_ratio(rounds, "w2", "limit-loop", "p50_ms"),
        "w2_to_limit_loop_target": targets.w2_to_loop,
        "w2_p99_ms": medians([round["w2"] for round in rounds])["p99_ms"],
    }
    if settings.store == "postgres":
        figures |= _ratio(rounds, "one-worker", "limit", "instances_per_s")
        figures |= _ratio(rounds, "two-workers", "one-worker", "instances_per_s")
        figures["two_workers_to_one_worker_target"] = 1.0
    figures["others_busy"] = median([figures["others_busy"] for round in rounds for figures in round.values()])
    return figures


def _round(settings: Settings) -> dict[str, Figures]:
    one_by_one = structs.replace(settings, n=min(settings.n, LATENCIES))
    found = {"limit": one_round("limit", settings), "w1": one_round("w1", settings)}
    if settings.store == "postgres":
        found["one-worker"] = one_round("w1", structs.replace(settings, workers=1))
        found["two-workers"] = one_round("w1", structs.replace(settings, workers=2))
    found["limit-bulk"] = one_round("limit-bulk", settings)
    found["limit-loop"] = one_round("limit-loop", one_by_one)
    found["w2"] = one_round("w2", one_by_one)
    return found


def _ratio(rounds: list[dict[str, Figures]], ours: str, bare: str, figure: str) -> Figures:
    each = [round[ours][figure] / round[bare][figure] for round in rounds]
    our_name, bare_name = ours.replace("-", "_"), bare.replace("-", "_")
    name = f"{our_name}_to_{bare_name}"
    return {
        f"{our_name}_{figure}": median([round[ours][figure] for round in rounds]),
        f"{bare_name}_{figure}": median([round[bare][figure] for round in rounds]),
        name: round(median(each), 3),
        f"{name}_rounds": [round(ratio, 3) for ratio in each],
    }
