import pytest

from tests.proof.sqlite_damage.flips import Damager
from tests.proof.sqlite_damage.subject import make

SEED = 7


@pytest.fixture(scope="module")
def damager(tmp_path_factory: pytest.TempPathFactory) -> Damager:
    folder = tmp_path_factory.mktemp("damage")
    return Damager(folder, *make(folder, SEED))


def outcomes(damager: Damager, kind: str, times: int) -> set[str]:
    for _ in damager.run(kind, times, SEED):
        pass
    assert damager.tally.violations == []
    return {outcome for found, outcome in damager.tally.outcomes if found == kind}


def test_a_flipped_byte_of_the_database_is_never_believed(damager: Damager) -> None:
    assert outcomes(damager, "a byte of the database", 40) >= {"told", "as written"}


def test_a_flipped_byte_of_the_log_is_never_believed(damager: Damager) -> None:
    assert "told" in outcomes(damager, "a byte of the log", 15)


def test_a_database_that_was_cut_short_is_never_believed(damager: Damager) -> None:
    assert outcomes(damager, "the database cut short", 10) == {"told"}


def test_a_log_that_was_cut_short_is_an_earlier_commit(damager: Damager) -> None:
    assert outcomes(damager, "the log cut short", 10) <= {"an earlier commit", "as written"}
