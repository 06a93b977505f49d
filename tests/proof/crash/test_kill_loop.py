from pathlib import Path

import pytest

from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.loop import Loop
from tests.proof.crash.seen import judge_histories
from tests.support.postgres.server import Unavailable

CYCLES = 3
SEED = 7
# A part of what a worker may live in the long form: most of it would be spent waiting for the next kill. As long as
# others wait for one with a brief lease, they go on to work.
LONGEST_SECONDS = 0.8
BRIEF_LEASE_SECONDS = 1.0
TRAVELLERS = 1


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_kills_break_no_promise(store: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    try:
        loop = Loop(
            place,
            SEED,
            on_server=store == "postgres",
            longest_seconds=LONGEST_SECONDS,
            brief_lease_seconds=BRIEF_LEASE_SECONDS,
            travellers=TRAVELLERS,
        )
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    try:
        run = loop.run(CYCLES)
        judged = loop.judge()
    finally:
        loop.end()
    assert judged.returncode == 0, f"seed {SEED}, {run}\n{judged.stdout}\n{judged.stderr}"
    assert run.quiet_seconds is not None
    assert run.kills == CYCLES
    assert run.exits == 0
    assert [line for line in read_lines(place.ledger) if line.get("answer") == "ok"]
    histories = judge_histories(place)
    assert histories.undecided == []
    assert histories.reads > 0
    assert histories.decided == histories.instances > 0
