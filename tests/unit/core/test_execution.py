from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.core import events
from mainspring.core.execution import Execution, execution_log
from mainspring.core.messages import Kind
from mainspring.core.story import Entry
from mainspring.core.unkept import NotKept
from tests.unit.core.orders import PlaceOrder

ORDER = PlaceOrder("o-1", 1)


@pytest.mark.parametrize(
    ("event", "what", "about"),
    [
        (events.InitiatedBy(ORDER), "Started", "PlaceOrder"),
        (events.Received(ORDER), "Stepped", "PlaceOrder"),
        (events.Received(NotKept("PlaceOrder")), "Stepped", "PlaceOrder"),
        (events.Suspended("it failed"), "Faulted", "it failed"),
        (events.Skipped(ORDER), "Skipped", "PlaceOrder"),
        (events.Kept(ORDER), "Kept", "PlaceOrder"),
        (events.Resumed(), "Resumed", ""),
        (events.Retried(3), "Retried", "position 3"),
        (events.Resent(ORDER), "Resent", "PlaceOrder"),
        (events.Reset(3, "again"), "Reset", "to 3: again"),
        (events.Migrated(2), "Migrated", "to workflow version 2"),
        (events.Completed(), "Completed", ""),
        (events.Completed(ORDER), "Completed", "PlaceOrder"),
        (events.Failed("no"), "Failed", "no"),
        (events.Cancelled("no"), "Cancelled", "no"),
        (events.Compensating("no"), "Compensating", "no"),
        (events.Compensated(ORDER), "Compensated", "PlaceOrder"),
        (events.Terminated("no"), "Terminated", "no"),
    ],
)
def test_what_happened_to_an_instance_is_one_line(event: Any, what: Any, about: str) -> None:
    assert execution_log([Entry(4, event)]) == [Execution(4, what, None, about)]


@pytest.mark.parametrize("event", [events.Began(), events.Sent("x"), events.Became("x"), events.TaskClosed("k")])
def test_what_was_only_decided_is_no_line(event: Any) -> None:
    assert execution_log([Entry(4, event)]) == []


def test_a_line_about_nothing_in_particular_needs_no_text() -> None:
    assert execution_log([Entry(4, events.Resumed())]) == [Execution(4, "Resumed", None)]


def test_an_instance_that_somebody_stopped_did_not_fault() -> None:
    assert execution_log([Entry(4, events.Suspended("wait"), actor="ann")])[0].what == "Suspended"


def test_a_line_has_all_that_its_entry_knows() -> None:
    moment, took = datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=2)
    entry = Entry(
        4, events.Received(ORDER), Kind.RESULT, time=moment, actor="ann", state="Paid", attempt=3, duration=took
    )
    assert execution_log([Entry(3, events.Sent("x")), entry]) == [
        Execution(4, "Stepped", moment, "PlaceOrder", "Paid", "ann", Kind.RESULT, 3, took)
    ]
