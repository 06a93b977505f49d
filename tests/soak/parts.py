"""What a soak is made of."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Part:
    """One proof: its long form, and the same in so few rounds that a person can wait for it."""

    name: str
    long: str
    short: str

    def command(self, *, short: bool) -> list[str]:
        """Return what to run, behind the interpreter's name."""
        return shlex.split(self.short if short else self.long)


_MODEL: Final = "-m tests.proof.model --store {} --examples {} --steps {}"
_LONG_TESTS: Final = "-m pytest -q -m soak tests/ examples"
_PROPERTIES: Final = (
    "-m pytest -q --hypothesis-profile others tests/unit/core tests/unit/codec tests/engine/policies "
    "tests/proof/histories/test_search.py "
    "tests/engine/test_same_streams.py tests/unit/analysis/test_layout.py tests/unit/analysis/test_pictures.py"
)

PARTS: Final = (
    Part("simulation", "-m simulate --seeds 10000 --jobs 2", "-m simulate --seeds 200 --jobs 2"),
    Part("planted-mistakes", "-m simulate --plants", "-m simulate --plants"),
    Part("crash-points", "-m tests.proof.crash_points", "-m tests.proof.crash_points --stride 60"),
    Part("store-faults", "-m tests.proof.store_faults", "-m tests.proof.store_faults --stride 499"),
    Part(
        "kills-sqlite",
        "-m tests.proof.crash --store sqlite --cycles 500",
        "-m tests.proof.crash --store sqlite --cycles 20",
    ),
    Part(
        "kills-postgres",
        "-m tests.proof.crash --store postgres --cycles 500",
        "-m tests.proof.crash --store postgres --cycles 20",
    ),
    Part("power-cuts", "-m tests.proof.power_cuts --cuts 1000", "-m tests.proof.power_cuts --cuts 20"),
    Part("damage", "-m tests.proof.sqlite_damage --flips 1000", "-m tests.proof.sqlite_damage --flips 100"),
    Part("foreign-lock", "-m tests.proof.foreign_lock --seconds 30", "-m tests.proof.foreign_lock --seconds 8"),
    Part("postgres-faults", "-m tests.proof.postgres_faults", "-m tests.proof.postgres_faults --rounds 1"),
    Part(
        "broker-faults",
        "-m tests.proof.broker_faults",
        "-m tests.proof.broker_faults --broker nats --broker valkey --parcels 500",
    ),
    Part("model-memory", _MODEL.format("memory", 2_000, 50), _MODEL.format("memory", 20, 30)),
    Part("model-sqlite", _MODEL.format("sqlite", 2_000, 50), _MODEL.format("sqlite", 20, 30)),
    Part("model-postgres", _MODEL.format("postgres", 2_000, 50), _MODEL.format("postgres", 4, 20)),
    Part(
        "mixed-versions",
        "-m tests.proof.mixed_versions --from 31833b6 --from b7a4a34 --from ad811de --cycles 40",
        "-m tests.proof.mixed_versions --from ad811de --cycles 4 --store sqlite",
    ),
    Part("isolation-sqlite", "-m bench isolation --tuned", "-m bench isolation --n 500"),
    Part(
        "isolation-postgres",
        "-m bench isolation --tuned --store postgres",
        "-m bench isolation --n 500 --store postgres",
    ),
    Part("frameworks", "-m tests.edges.frameworks --rounds 100", "-m tests.edges.frameworks --rounds 2"),
    Part("memory", "-m tests.proof.memory_soak --minutes 60", "-m tests.proof.memory_soak --minutes 2"),
    Part(
        "memory-postgres",
        "-m tests.proof.memory_soak --store postgres --minutes 60",
        "-m tests.proof.memory_soak --store postgres --minutes 2",
    ),
    Part("floods", "-m tests.proof.floods --seconds 30", "-m tests.proof.floods --seconds 5"),
    Part("fuzzing", "-m tests.edges.fuzzing --inputs 20000", "-m tests.edges.fuzzing --inputs 300"),
    Part("http-fuzzing", "-m tests.edges.web.fuzzing --examples 500", "-m tests.edges.web.fuzzing --examples 10"),
    Part("long-tests", _LONG_TESTS, _LONG_TESTS),
    Part("mutants", "-m tests.mutants", "-m tests.mutants --sample 0.02"),
    Part("properties", _PROPERTIES, _PROPERTIES),
    Part(
        "figures",
        "-m tests.unit.analysis.figures_of_many --instances 100000",
        "-m tests.unit.analysis.figures_of_many --instances 5000",
    ),
    Part("steady", "-m tests.steady", "-m tests.steady --runs 2 --loaded 1 tests/engine/test_timers.py"),
    Part(
        "long-lists",
        "-m pytest -q tests/studio/test_many.py --instances 10000",
        "-m pytest -q tests/studio/test_many.py --instances 3000",
    ),
    Part(
        "million-postgres",
        "-m tests.stores.postgres_million",
        "-m tests.stores.postgres_million --instances 200000",
    ),
    Part("chosen-mutants", "-m tests.mutants chosen", "-m tests.mutants chosen --only stores/memory --only cli/bulk"),
)
