"""What-if and export on the databases of the examples, and on golden databases in which everything has happened."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from mainspring.analysis.export.export import export
from mainspring.analysis.export.redaction import Redaction
from mainspring.analysis.what_if.check import check
from mainspring.analysis.what_if.report import Report
from mainspring.app.internals import internals_of
from tests.edges.cli.conftest import call
from tests.proof.golden.golden_app import Hands, shop
from tests.proof.golden.restore import kept, restored
from tests.unit.analysis.approved import approved
from tests.unit.analysis.example_apps import APPS, app_of
from tests.unit.analysis.refunds import running
from tests.unit.analysis.standards import read_ocel, read_xes

APP = "tests.unit.analysis.example_apps:order_processing"
PATIENCE = "examples.order_processing.workflow.PAYMENT_PATIENCE"
COUNT = """
SELECT count(DISTINCT e.instance), count(DISTINCT e.instance) FILTER (WHERE i.status = 'running'), count(*)
FROM events AS e JOIN instances AS i ON i.key = e.instance
WHERE e.event = 'Scheduled' AND e.type = 'PaymentTimedOut'
"""


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize("example", APPS)
def test_the_examples_decide_as_they_did(example: str) -> None:
    report = running(app_of(example), check)

    assert report.instances > 0
    assert (report.differences, report.unchecked) == ((), ())


@pytest.mark.usefixtures("examples")
def test_a_planted_change_is_found_with_the_right_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PATIENCE, timedelta(minutes=10))

    report = running(app_of("order_processing"), check)

    (difference,) = report.differences
    assert difference.what == "OrderValidated in AwaitingValidation: Scheduled(PaymentTimedOut) differs in after"
    connection = apsw.Connection("order_processing.db")
    ((instances, in_flight, steps),) = connection.execute(COUNT)
    connection.close()
    assert (difference.instances, difference.in_flight, difference.steps) == (instances, in_flight, steps)
    assert steps > 1


@pytest.mark.usefixtures("examples")
def test_what_people_read_is_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    approved("what_if/order_processing.txt", call("what-if", "--app", APP).out)
    monkeypatch.setattr(PATIENCE, timedelta(minutes=10))
    approved("what_if/order_processing_changed.txt", call("what-if", "--app", APP).out)


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize("example", APPS)
def test_the_examples_are_logs_as_the_standards_ask(example: str, tmp_path: Path) -> None:
    async def write(format: str) -> None:
        app = app_of(example)
        await app.start(work=False)
        try:
            path = tmp_path / f"log.{format}"
            await export(internals_of(app).engine.store, path, format=format, redaction=Redaction(payloads=True))  # pyright: ignore[reportArgumentType]
        finally:
            await app.stop()

    asyncio.run(write("xes"))
    asyncio.run(write("ocel"))

    log = read_ocel(tmp_path / "log.ocel")
    assert len(list(read_xes(tmp_path / "log.xes").iter("event"))) == len(log.events) > 0
    ids = {each.id.partition("/")[2] for each in log.objects if "/" in each.id}
    assert [each.name for each in log.event_types if any(id in each.name for id in ids)] == []


@pytest.mark.parametrize(
    ("store", "version"), [max(each for each in kept() if each[0] == s) for s in ("sqlite", "postgres")]
)
def test_whatever_has_happened_is_no_difference(store: str, version: int, tmp_path: Path) -> None:
    async def checked() -> Report:
        app = shop(await restored(store, version, tmp_path), Hands(tmp_path / "none"))
        await app.start(work=False)
        try:
            return await check(app)
        finally:
            await app.stop()

    report = asyncio.run(checked())

    assert report.instances > 0
    assert report.differences == ()
