import subprocess
import sys

import pytest

from tests.support.paths import ROOT
from tests.support.soaking import some_of

CUTS = 3
# A promise is broken by the first disk, nearly always: which writes a cut finds on their way is a matter of timing.
MOST_CUTS = 200
SEED = 7
SECONDS = 600


def cuts(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own: lives are forked from it, which a test's process with its threads must not do."""
    command = [sys.executable, "-m", "tests.proof.power_cuts", "--seed", str(SEED), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603  our own module


def test_power_cuts_lose_nothing_that_was_acknowledged() -> None:
    done = cuts("--cuts", str(CUTS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| cuts | {CUTS} |" in done.stdout


@pytest.mark.parametrize("synchronous", some_of(["NORMAL", "OFF"], ["NORMAL"]))
def test_the_cuts_would_show_commits_that_are_not_synced(synchronous: str) -> None:
    done = cuts("--cuts", str(MOST_CUTS), "--synchronous", synchronous)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "acknowledged" in done.stderr
