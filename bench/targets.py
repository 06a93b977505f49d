"""What the figures are to reach, and whether they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from bench.comparison import Comparison, Found
from bench.contenders import BARE, DBOS, MAINSPRING, RESTATE, SIZES, Contender
from bench.w5_worker import CONCURRENCY, HANDLER_SECONDS

# Two thirds of the orders are left at the kill. Each goes through its handlers, as many at once as there may be.
HANDLERS_SECONDS: Final = round(SIZES["w5"] * 2 / 3 * HANDLER_SECONDS / CONCURRENCY + 2 * HANDLER_SECONDS, 2)
LEASE_SECONDS: Final = 30
RECOVERY_SECONDS: Final = 1.5 + HANDLERS_SECONDS

Asked = Callable[[Comparison, Contender], Found | None]


class Target(Struct, frozen=True):
    """`least` or `most` bounds the median of a figure on a store."""

    what: str
    store: str
    asked: Asked
    least: float | None = None
    most: float | None = None
    unit: str = ""

    @property
    def bound(self) -> str:
        """The bound as people write it.

        >>> Target("W4", "sqlite", lambda *_: None, most=0.3, unit=" s").bound
        'at most 0.3 s'
        """
        words, limit = ("at least", self.least) if self.least is not None else ("at most", self.most)
        return f"{words} {limit:,g}{self.unit}"

    def met(self, found: Found) -> bool:
        if self.least is not None:
            return found.middle >= self.least
        return self.most is not None and found.middle <= self.most


class Outcome(Struct, frozen=True):
    """What has become of a target; `found` is None where nobody was there to compare with."""

    target: Target
    found: Found | None

    @property
    def verdict(self) -> str:
        return "not measured" if self.found is None else "met" if self.target.met(self.found) else "missed"


def outcomes(comparison: Comparison) -> Iterator[Outcome]:
    """Return what has become of each target. mainspring is judged in its best setting, as its peers are."""
    for target in TARGETS:
        yield Outcome(target, target.asked(comparison, Contender(MAINSPRING, target.store, "best")))


def _figure(workload: str, figure: str) -> Asked:
    return lambda comparison, ours: comparison.found(ours, workload, figure)


def _to(engine: str, workload: str, figure: str) -> Asked:
    """How many times an engine's figure ours is: the engine on the same store where it has one, at its best."""

    def asked(comparison: Comparison, ours: Contender) -> Found | None:
        store = "own" if engine == RESTATE else ours.store
        theirs = Contender(engine, store, "" if engine == BARE else "best")
        return comparison.ratio((ours, workload), (theirs, workload), figure)

    return asked


def _longer(comparison: Comparison, ours: Contender) -> Found | None:
    return comparison.ratio((ours, "w3-long"), (ours, "w3"), "seconds")


RATE, P50, SECONDS = "instances_per_s", "p50_ms", "seconds"
TARGETS: Final = (
    Target("W1 to the bare limit", "sqlite", _to(BARE, "w1", RATE), least=0.55),
    Target("W1 to the bare limit", "postgres", _to(BARE, "w1", RATE), least=0.50),
    Target("W1 to DBOS's best", "sqlite", _to(DBOS, "w1", RATE), least=25, unit=" times"),
    Target("W1 to DBOS's best", "postgres", _to(DBOS, "w1", RATE), least=15, unit=" times"),
    Target("W1 to Restate's best", "sqlite", _to(RESTATE, "w1", RATE), least=3, unit=" times"),
    Target("W1 to Restate's best", "postgres", _to(RESTATE, "w1", RATE), least=2, unit=" times"),
    Target("W2, p50", "sqlite", _figure("w2", P50), most=3, unit=" ms"),
    Target("W2, p50", "postgres", _figure("w2", P50), most=8, unit=" ms"),
    Target("W2, p50 to DBOS's best", "sqlite", _to(DBOS, "w2", P50), most=1, unit=" times"),
    Target("W2, p50 to DBOS's best", "postgres", _to(DBOS, "w2", P50), most=1, unit=" times"),
    Target("W2, p50 to Restate's best", "sqlite", _to(RESTATE, "w2", P50), most=1, unit=" times"),
    Target("W3, 5,000 calls to 1,000", "sqlite", _longer, most=5.2, unit=" times"),
    Target("W3, 5,000 calls to 1,000", "postgres", _longer, most=5.2, unit=" times"),
    Target("W3, 5,000 calls", "sqlite", _figure("w3-long", SECONDS), most=2, unit=" s"),
    Target("W4", "sqlite", _figure("w4", SECONDS), most=0.3, unit=" s"),
    Target("W4", "postgres", _figure("w4", SECONDS), most=0.6, unit=" s"),
    Target("W5", "sqlite", _figure("w5", SECONDS), most=RECOVERY_SECONDS, unit=" s"),
    Target("W5", "postgres", _figure("w5", SECONDS), most=RECOVERY_SECONDS + LEASE_SECONDS, unit=" s"),
    Target("W6, late", "sqlite", _figure("w6", "late_s"), most=1.5, unit=" s"),
    Target("W6, late", "postgres", _figure("w6", "late_s"), most=2.5, unit=" s"),
    Target("disk for one W1 instance", "sqlite", _figure("w1", "disk_bytes_per_instance"), most=3_300, unit=" bytes"),
    Target("disk for one W1 instance", "postgres", _figure("w1", "disk_bytes_per_instance"), most=4_000, unit=" bytes"),
)
