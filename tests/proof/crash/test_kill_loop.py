from pathlib import Path

import pytest

from tests.proof.crash.files import Place
from tests.proof.crash.loop import Loop
from tests.support.postgres.server import Unavailable

CYCLES = 10
SEED = 7
# Half of what a worker may live in the long form: most of it would be spent waiting for the next kill.
LONGEST_SECONDS = 1.5


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_ten_kills_break_no_promise(store: str, tmp_path: Path) -> None:
    try:
        loop = Loop(Place(tmp_path), SEED, on_server=store == "postgres", longest_seconds=LONGEST_SECONDS)
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    try:
        run = loop.run(CYCLES)
        judged = loop.judge()
    finally:
        loop.end()
    assert judged.returncode == 0, f"seed {SEED}, {run}\n{judged.stdout}\n{judged.stderr}"
    assert run.quiet_seconds is not None
    assert run.exits == 0
