"""Every store agrees with a model of dictionaries, whatever is done to it; and a store with a bug does not."""

import pytest

from mainspring.stores.memory import MemoryStore
from tests.proof.model.beds import BEDS
from tests.proof.model.planted import BUGS, PlantedBed
from tests.proof.model.trial import trial

SEED = 1
# A bug is met soon or late: one seed in twelve comes to the rarest within ten examples. The first one comes to all.
PLANTED_EXAMPLES = 10
PLANTED_SEEDS = range(12, 72)


@pytest.mark.parametrize(("store", "examples", "steps"), [("memory", 10, 30), ("sqlite", 4, 30), ("postgres", 4, 20)])
def test_a_store_shows_what_the_model_says(store: str, examples: int, steps: int) -> None:
    asked = trial(BEDS[store](), examples, steps, SEED)

    assert asked["commit: Committed"] > examples


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: type[MemoryStore]) -> None:
    def found(seed: int) -> bool:
        try:
            trial(PlantedBed(bug), PLANTED_EXAMPLES, 40, seed)
        except AssertionError:
            return True
        return False

    assert any(found(seed) for seed in PLANTED_SEEDS)
