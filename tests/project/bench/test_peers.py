"""The peers do the same work as mainspring, and have no figure without it. They run only where they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json

from bench.contenders import DBOS, RESTATE, Contender, RunError, run
from bench.measure import percentiles
from bench.peers import http, install, shared
from bench.peers.shared import NotDoneError
from bench.settings import Settings
from bench.w5_worker import HANDLER_SECONDS
from bench.workflows import order

INSTALLED = [
    pytest.param(
        contender,
        id=contender.name,
        marks=pytest.mark.skipif(
            not install.is_installed(contender.engine.lower()),
            reason=f"{contender.engine} is not installed: python -m bench.peers.install",
        ),
    )
    for contender in (
        Contender(DBOS, "sqlite", "default"),
        Contender(DBOS, "sqlite", "best"),
        Contender(RESTATE, "own", "default"),
        Contender(RESTATE, "own", "best"),
    )
]


# ---- the same work


def test_peers_have_the_same_orders_and_handlers() -> None:
    assert shared.order(7) == json.decode(json.encode(order(7)))
    assert shared.HANDLER_SECONDS == HANDLER_SECONDS


def test_peers_have_the_same_percentiles() -> None:
    seconds = [0.001 * number for number in range(1, 301)]

    assert shared.percentiles(seconds) == percentiles(seconds)


def test_a_handler_run_twice_is_counted_and_one_that_never_ran_is_no_figure(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    work = shared.Work(str(ledger))
    for step in ("validate", "charge", "ship", "ship"):
        work.do(step, shared.order(0))

    assert shared.effects_of(ledger, 1) == {"effects_run_twice": 1, "lost": 0}
    with pytest.raises(NotDoneError, match="3, not 6"):
        shared.effects_of(ledger, 2)


def test_waiting_for_work_that_is_never_done_ends() -> None:
    with pytest.raises(NotDoneError, match="2 of 3"):
        shared.until(lambda: 2, 3, seconds=0)


def test_the_moment_to_wake_up_is_far_enough_ahead() -> None:
    assert shared.lead_seconds(1_000, 0.5) > 1_000 / shared.REHEARSED * 0.5


# ---- their client


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_an_answer_in_pieces_is_no_answer_until_it_is_whole(cut: int) -> None:
    whole = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n'

    assert http.parsed(whole[:-cut]) is None
    assert http.parsed(whole) == (200, b'{"a":1}')


# ---- their environments


def test_a_peer_that_cannot_be_installed_leaves_nothing_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.peers.install.PLACE", tmp_path)
    monkeypatch.setattr("bench.peers.install.sys.executable", str(tmp_path / "bin" / "python"))

    with pytest.raises(install.Unavailable, match="uv"):
        install.installed("dbos")

    assert list(tmp_path.iterdir()) == []


def test_a_peer_in_other_versions_is_installed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def fake(peer: str, folder: Path) -> None:
        folder.mkdir()
        made.append(peer)

    monkeypatch.setattr("bench.peers.install.PLACE", tmp_path)
    monkeypatch.setattr("bench.peers.install._install", fake)

    install.installed("dbos")
    install.installed("dbos")
    assert made == ["dbos"]

    (tmp_path / "dbos" / "installed").write_text("dbos==0.1")
    install.installed("dbos")
    assert made == ["dbos", "dbos"]


# ---- they run


@pytest.mark.parametrize("contender", INSTALLED)
def test_a_peer_is_measured(contender: Contender, tmp_path: Path) -> None:
    figures = run(contender, "w1", Settings(str(tmp_path), n=5))

    assert figures["instances_per_s"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("contender", INSTALLED[-1:])
def test_a_peer_that_does_not_wait_for_the_disk_has_no_figure(
    contender: Contender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESTATE_BIFROST__LOCAL__ROCKSDB_DISABLE_WAL_FSYNC", "true")

    with pytest.raises(RunError, match="fsync"):
        run(contender, "w1", Settings(str(tmp_path), n=5))
