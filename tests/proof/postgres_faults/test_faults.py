"""Some faults, once or a few times each; `python -m tests.proof.postgres_faults` is the long form, with all of them."""

from pathlib import Path

import pytest

from tests.proof.postgres_faults.faults import FAULTS, Fault
from tests.proof.postgres_faults.performance import performed, serving
from tests.support.postgres.server import Server, Unavailable, shared_server

SEED = 7
SHORT = [fault for fault in FAULTS if fault.short]


def judge(fault: Fault, server: Server, folder: Path) -> None:
    assert performed(fault, server, folder, fault.short, SEED).complaints == []


@pytest.mark.parametrize("fault", [fault for fault in SHORT if not fault.own_server], ids=lambda fault: fault.name)
def test_no_promise_is_broken_when(fault: Fault, tmp_path: Path) -> None:
    # On the server of all tests: who leaves it running has a database of its own there.
    try:
        judge(fault, shared_server(), tmp_path)
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")


@pytest.mark.parametrize("fault", [fault for fault in SHORT if fault.own_server], ids=lambda fault: fault.name)
def test_no_promise_is_broken_on_a_server_of_its_own_when(fault: Fault, tmp_path: Path) -> None:
    try:
        with serving(fault) as server:
            judge(fault, server, tmp_path)
    except Unavailable as reason:
        pytest.skip(str(reason))
