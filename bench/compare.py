"""The engine beside the bare limit, interleaved, so that both meet the same machine."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from bench.measure import Figures, median
from bench.report import medians
from bench.rounds import one_round
from bench.settings import Settings

# What the figures are to reach: W1 at least so much of the limit, W2 at most so many times the bare loop.
W1_TO_LIMIT = 0.45
W2_TO_LOOP = 2.5

LATENCIES = 300


def compare(settings: Settings, repeats: int, tell: Callable[[str], None]) -> Figures:
    """Return both sides' medians, and the median of the rounds' ratios."""
    rounds: list[dict[str, Figures]] = []
    one_by_one = structs.replace(settings, n=min(settings.n, LATENCIES))
    for number in range(repeats):
        tell(f"compare, round {number + 1} of {repeats}")
        rounds.append(
            {
                "limit": one_round("limit", settings),
                "w1": one_round("w1", settings),
                "limit-bulk": one_round("limit-bulk", settings),
                "limit-loop": one_round("limit-loop", one_by_one),
                "w2": one_round("w2", one_by_one),
            }
        )
    return {
        **_ratio(rounds, "w1", "limit", "instances_per_s"),
        "w1_to_limit_target": W1_TO_LIMIT,
        **_ratio(rounds, "w1", "limit-bulk", "instances_per_s"),
        **_ratio(rounds, "w2", "limit-loop", "p50_ms"),
        "w2_to_limit_loop_target": W2_TO_LOOP,
        "w2_p99_ms": medians([round["w2"] for round in rounds])["p99_ms"],
        "others_busy": median([figures["others_busy"] for round in rounds for figures in round.values()]),
    }


def _ratio(rounds: list[dict[str, Figures]], ours: str, bare: str, figure: str) -> Figures:
    each = [round[ours][figure] / round[bare][figure] for round in rounds]
    name = f"{ours}_to_{bare.replace('-', '_')}"
    return {
        f"{ours}_{figure}": median([round[ours][figure] for round in rounds]),
        f"{bare.replace('-', '_')}_{figure}": median([round[bare][figure] for round in rounds]),
        name: round(median(each), 3),
        f"{name}_rounds": [round(ratio, 3) for ratio in each],
    }
