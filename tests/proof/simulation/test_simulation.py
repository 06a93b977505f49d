"""The short form of the simulator: some seeds, and what makes a seed worth something."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.proof.simulation.plan import FAULTS, plan_of
from tests.proof.simulation.run import run
from tests.proof.simulation.shrink import shrunk, story
from tests.support.soaking import some_of

SEEDS = 40
CHUNKS = 2
SEED = 3


@pytest.mark.parametrize("chunk", some_of(range(CHUNKS), [0]))
def test_whatever_goes_wrong_the_invariants_hold_and_it_becomes_quiet(chunk: int) -> None:
    fired: Counter[str] = Counter()
    for seed in range(chunk, SEEDS, CHUNKS):
        result = run(plan_of(seed))
        fired += result.fired
        if result.faults:
            pytest.fail(f"seed {seed}\n{story(shrunk(result))}")

    assert [kind for kind in FAULTS if not fired[kind]] == [], "a kind of fault that does not fire proves nothing"


def test_a_seed_is_the_same_story_in_every_process() -> None:
    here = run(plan_of(SEED)).hash
    told = [
        subprocess.run(  # noqa: S603  it is ours
            [sys.executable, "-m", "simulate", "--seed", str(SEED)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for hash_seed in ("1", "2")
    ]

    assert told[0] == told[1]
    assert told[0].endswith(f"trace: {here}\n")


def test_a_planted_mistake_is_found_made_smaller_and_repeated_by_the_printed_command() -> None:
    results = (run(plan_of(seed, plant="deaf-to-conflicts")) for seed in range(50))
    failed = next(result for result in results if result.faults)

    small = shrunk(failed)

    assert small.faults
    assert (len(small.plan.faults), small.plan.instances) <= (len(failed.plan.faults), failed.plan.instances)
    command = story(small).rpartition("again: ")[2].split()
    again = subprocess.run([sys.executable, *command[1:]], capture_output=True, text=True, check=False)  # noqa: S603  it is ours
    assert again.returncode == 1
    assert again.stdout.endswith(f"trace: {small.hash}\n")
