import subprocess
import sys

from tests.support.paths import ROOT

CUTS = 12
SEED = 7
SECONDS = 300


def cuts(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own: lives are forked from it, which a test's process with its threads must not do."""
    command = [sys.executable, "-m", "tests.proof.power_cuts", "--seed", str(SEED), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603  our own module


def test_power_cuts_lose_nothing_that_was_acknowledged() -> None:
    done = cuts("--cuts", str(CUTS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| cuts | {CUTS} |" in done.stdout


def test_the_cuts_would_show_commits_that_are_not_synced() -> None:
    done = cuts("--cuts", "60", "--synchronous", "NORMAL")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was acknowledged and is in 0 places" in done.stderr


def test_the_cuts_would_show_a_disk_that_is_never_synced() -> None:
    done = cuts("--cuts", "20", "--synchronous", "OFF")
    assert done.returncode == 0, done.stdout + done.stderr
