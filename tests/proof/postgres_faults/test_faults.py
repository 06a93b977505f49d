"""Some faults, once or a few times each; `python -m tests.proof.postgres_faults` is the long form, with all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proof.postgres_faults.faults import FAULTS, Fault
from tests.proof.postgres_faults.performance import performed, serving
from tests.support.postgres.server import Server, Unavailable

SEED = 7
SHORT = [fault for fault in FAULTS if fault.short]


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """One server for all faults that need no other: each has a database of its own there."""
    try:
        with serving() as server:
            yield server
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")


def judge(fault: Fault, server: Server, folder: Path) -> None:
    try:
        outcome = performed(fault, server, folder, fault.short, SEED)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert outcome.complaints == []


@pytest.mark.parametrize("fault", [fault for fault in SHORT if fault.server is None], ids=lambda fault: fault.name)
def test_no_promise_is_broken_when(fault: Fault, shared: Server, tmp_path: Path) -> None:
    judge(fault, shared, tmp_path)


@pytest.mark.parametrize("fault", [fault for fault in SHORT if fault.server is not None], ids=lambda fault: fault.name)
def test_no_promise_is_broken_on_a_special_server_when(fault: Fault, tmp_path: Path) -> None:
    try:
        with serving(fault) as server:
            judge(fault, server, tmp_path)
    except Unavailable as reason:
        pytest.skip(str(reason))
