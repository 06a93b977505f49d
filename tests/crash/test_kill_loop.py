import subprocess
import sys
from pathlib import Path

from tests.crash.files import Place
from tests.crash.loop import ROOT, Loop

CYCLES = 20
SEED = 7


def test_twenty_kills_break_no_promise(tmp_path: Path) -> None:
    run = Loop(Place(tmp_path), SEED).run(CYCLES)
    judged = subprocess.run(  # noqa: S603  our own interpreter and our own module
        [sys.executable, "-m", "tests.crash.check", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert judged.returncode == 0, f"seed {SEED}, {run}\n{judged.stdout}\n{judged.stderr}"
    assert run.quiet_seconds is not None
