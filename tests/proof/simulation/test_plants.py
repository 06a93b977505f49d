from __future__ import annotations

from typing import Final

import pytest

from tests.proof.simulation.hunt import hunt
from tests.proof.simulation.plants import PLANTS, planted

# All of them are hunted by `python -m simulate --plants`, a part of the soak; these are some of each kind.
SAMPLE: Final = (
    "deduplication-off",
    "lease-not-fenced",
    "outbox-after-commit",
    "timer-early-by-one-tick",
    "cache-not-dropped-on-conflict",
    "snapshot-trusted-across-versions",
    "settled-without-result",
    "checkpoint-too-far",
    "chosen-id-swallows-a-derived-one",
    "stepped-by-any-version",
    "redelivery-taken-anew",
    "acknowledged-before-it-is-kept",
    "breaker-judges-messages",
    "answered-for-another",
    "skipped-answer-keeps-its-task",
)
# From its first seed on. One that is not noticed any more would be hunted for minutes, as if the run hung.
NEAR: Final = 100


def test_there_are_enough_to_prove_something() -> None:
    assert len(PLANTS) >= 52


@pytest.mark.parametrize("name", PLANTS)
def test_what_a_mistake_is_planted_in_is_there(name: str) -> None:
    with planted(name):
        pass


@pytest.mark.parametrize("name", SAMPLE)
def test_a_planted_mistake_is_noticed_and_without_it_the_same_seed_is_clean(name: str) -> None:
    assert hunt(name, NEAR) is not None
