import asyncio
import sys
from pathlib import Path

import pytest

from tests.edges.cli.conftest import Run
from tests.support.waiting import until

APP = """
from mainspring import Mainspring
from mainspring.brokers import Brokers
from mainspring.testing.samples import Count, Counter

app = Mainspring("sqlite:///counts.db")
app.add(Counter())
brokers = Brokers(app, "counting")
brokers.add("main", "memory://")
brokers.endpoint("counts", "main", "counts.made")
brokers.receive("counts", Count)
"""


@pytest.fixture
def counts(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (folder / "counts.py").write_text(APP)
    monkeypatch.setenv("MAINSPRING_APP", "counts:app")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "counts", raising=False)
    return run


def test_sources_are_listed_paused_and_resumed(counts: Run) -> None:
    listed = counts("sources", "list", "--json").document
    assert (listed["name"], listed["address"], listed["status"], listed["lag"]) == (
        "counts",
        "counts.made",
        "active",
        0,
    )
    assert "counts  main    counts.made  counting  active  0" in counts("sources", "list").out

    paused = counts("sources", "pause", "counts", "--reason", "we move", "--actor", "ann", "--json").document
    assert (paused["status"], paused["paused"]) == ("paused", "we move (ann)")
    assert counts("sources", "list", "--json").document["status"] == "paused"
    findings = counts("doctor", "--json").document["findings"]
    assert "The source counts is paused: we move (ann)" in [finding["what"] for finding in findings]
    assert counts("sources", "resume", "counts").out == "counts is active\n"

    unknown = counts("sources", "pause", "orders")
    assert unknown.code != 0
    assert "There is no source orders. This app has: counts." in unknown.err


def test_a_broker_that_is_away_is_told_and_keeps_nobody_from_pausing(counts: Run) -> None:
    from counts import brokers  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  it is written by the fixture

    brokers.broker("main").down = True
    try:
        assert "is down" in counts("sources", "list").out
        assert counts("sources", "pause", "counts").out == "counts is paused\n"
        told = counts("doctor")
        assert "The broker main cannot be asked by the source counts: BrokerError" in told.out.replace("\n", " ")
    finally:
        brokers.broker("main").down = False


def test_what_a_source_could_not_take_is_listed_shown_and_corrected(counts: Run) -> None:
    from counts import app, brokers  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  as above

    from mainspring.brokers.port import Outgoing  # noqa: PLC0415  as above

    async def receive() -> None:
        broken = bytes([123, 255])
        headers = {"ce-id": "1", "ce-source": "/door", "ce-type": "Count"}
        async with app:
            await brokers.broker("main").publish([Outgoing("counts.made", "1", broken, headers)])
            await until(app.dead_letters)

    asyncio.run(receive())
    letter = counts("dead-letters", "list", "--json").document
    assert (letter["instance"], letter["type"], letter["message_id"]) == ("mainspring.Edge/counts", "Count", "/door#1")
    assert (letter["message"], letter["headers"]["ce-source"]) == ({"base64": "e/8="}, "/door")
    shown = counts("dead-letters", "show", str(letter["id"])).out
    assert "message:     Count {\\xff" in shown
    assert "ce-source=/door" in shown
    assert counts("dead-letters", "retry", str(letter["id"])).code == 1
    assert counts("dead-letters", "edit", str(letter["id"]), '{"counter": "c-1"}').code == 0
    assert counts("show", "Counter/c-1", "--json").code == 0
    assert counts("dead-letters", "list", "--json").out == ""
