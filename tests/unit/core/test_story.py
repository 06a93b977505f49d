from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.core import events
from mainspring.core.messages import Kind
from mainspring.core.story import Entry, Row, duration, table, tell
from mainspring.core.unkept import NotKept
from mainspring.testing import Rehearsal
from tests.unit.core.orders import CardCharged, OrderFulfilment, OrderShipped, PlaceOrder


def rehearsed() -> Rehearsal[Any, Any, Any]:
    rehearsal = Rehearsal[Any, Any, Any](OrderFulfilment())
    for message in (PlaceOrder("o-1", 4200), CardCharged("o-1"), OrderShipped("o-1")):
        rehearsal.take(message)
    return rehearsal


def test_a_stream_is_told_with_inputs_and_outputs_in_one_place() -> None:
    assert table(tell(rehearsed().entries)) == (
        "position  kind     direction  event              message\n"
        "1                             Began\n"
        "2         command  input      InitiatedBy        PlaceOrder(order_id='o-1', amount=4200)\n"
        "3         command  output     Sent               ChargeCard(order_id='o-1', amount=4200)\n"
        "4         timer    output     Scheduled          PaymentTimedOut(order_id='o-1') after 5 min\n"
        "5         command  input      Received           CardCharged(order_id='o-1')\n"
        "6         timer    output     ScheduleCancelled  'PaymentTimedOut'\n"
        "7         command  output     Sent               ShipOrder(order_id='o-1')\n"
        "8         command  input      Received           OrderShipped(order_id='o-1')\n"
        "9                             Completed"
    )


def test_a_narrow_table_cuts_its_lines_visibly() -> None:
    lines = table(tell(rehearsed().entries), width=60).splitlines()

    assert max(map(len, lines)) == 60
    assert lines[2].endswith("PlaceOrder…")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (events.Scheduled("late", timedelta(minutes=5), None, "k"), "'late' after 5 min"),
        (events.Scheduled("late", None, datetime(2026, 1, 1, tzinfo=UTC), "k"), "'late' at 2026-01-01T00:00:00+00:00"),
        (events.Published("done"), "'done'"),
        (events.Replied("yes"), "'yes'"),
        (events.ChildStarted("ship"), "'ship'"),
        (events.FannedOut((1, "a", 2), "Joined", "k"), "3 of int | str into Joined"),
        (events.FannedOut((), "Joined", "k"), "0 of nothing into Joined"),
        (events.FannedOut((1,) * 1_000, "Joined", "k"), "1,000 of int into Joined"),
        (events.FannedOut((NotKept("Ship"),), "Joined", "k"), "NotKept(type='Ship')"),
        (events.Scheduled(NotKept("Late"), None, None, "k"), "NotKept(type='Late')"),
        (events.AnswerRefused("yes", "approval", "no note"), "'yes' to approval: 'no note'"),
        (events.Skipped("in"), "'in'"),
        (events.Kept("in"), "'in'"),
        (events.Resent("out"), "'out'"),
        (events.Asked("k", "Approve", ("Yes",), role="manager"), "'Approve' for manager (k)"),
        (events.Asked("k", "Approve", ("Yes",), role="manager", person="ann"), "'Approve' for manager or ann (k)"),
        (events.Asked("", "erased", ()), "'erased'"),
        (events.TaskClosed("k"), "'k'"),
        (events.ScheduleCancelled("k"), "'k'"),
        (events.Failed("no"), "'no'"),
        (events.Suspended("no"), "'no'"),
        (events.Cancelled("no"), "'no'"),
        (events.Compensating("no"), "'no'"),
        (events.Terminated("no"), "'no'"),
        (events.Reset(3, "again"), "to 3: 'again'"),
        (events.Retried(3), "position 3"),
        (events.Migrated(2), "to workflow version 2"),
        (events.Completed(), ""),
        (events.Completed("ok"), "'ok'"),
        (events.Became("waiting"), "'waiting'"),
        (events.Resumed(), ""),
    ],
)
def test_an_event_is_told_by_what_it_carries(event: Any, message: str) -> None:
    assert [row.message for row in tell([Entry(1, event)])] == [message]


def test_the_kind_of_an_input_is_what_its_envelope_says() -> None:
    entries = [Entry(4, events.Received("paid"), Kind.RESULT), Entry(5, events.Received("paid"))]
    assert tell(entries) == [
        Row("4", "result", "input", "Received", "'paid'"),
        Row("5", "", "input", "Received", "'paid'"),
    ]


def test_a_reply_that_nobody_received_is_marked() -> None:
    assert tell([Entry(4, events.Replied("yes"), undelivered=True)])[0].message == "'yes' (undelivered)"


def test_a_line_of_just_the_width_is_not_cut() -> None:
    text = table([Row("1", "", "", "Began", "")])
    widest = max(map(len, text.splitlines()))
    assert table([Row("1", "", "", "Began", "")], widest) == text
    assert table([Row("1", "", "", "Began", "")], widest - 1) != text


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "0 s"),
        (timedelta(days=1), "1 day"),
        (timedelta(days=2, hours=3, minutes=4, seconds=5), "2 days 3 h 4 min 5 s"),
        (timedelta(hours=1), "1 h"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(seconds=3_600), "1 h"),
        (timedelta(seconds=1, milliseconds=500), "1.5 s"),
        (timedelta(microseconds=1), "0.000001 s"),
        (timedelta(seconds=10), "10 s"),
    ],
)
def test_a_duration_is_written_as_people_write_it(span: timedelta, text: str) -> None:
    assert duration(span) == text
