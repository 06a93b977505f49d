"""A stream decided once more: where today's code agrees, where it does not, and what is not asked again."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import astuple

from mainspring import Complete, DeadlinePassed, Mainspring, Schedule, Send
from mainspring.app.internals import internals_of
from mainspring.core.events import (
    Became,
    Began,
    Compensating,
    Completed,
    Failed,
    InitiatedBy,
    Migrated,
    Received,
    Reset,
    Resumed,
    Scheduled,
    Sent,
    StreamEvent,
    Suspended,
)
from mainspring.engine.recording.redecision import Redecided, redecided_rows
from mainspring.engine.recording.walk import Journey, turns_of
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import UnknownTypeError
from mainspring.port.records import EventRow, Ref
from tests.engine.stays import Arrive, CloseRoom, Leave, OpenRoom, Stay
from tests.unit.core.orders import (
    AwaitingPayment,
    AwaitingShipment,
    CardCharged,
    ChargeCard,
    New,
    OrderFulfilment,
    OrderShipped,
    PlaceOrder,
    ShipOrder,
)

PLACED, CHARGED, SHIPPED = PlaceOrder("o-1", 1), CardCharged("o-1"), OrderShipped("o-1")
UNDO: Sent[Any] = Sent(ShipOrder("undo"), undoes=3)
WAITING, PAID = AwaitingPayment("o-1"), AwaitingShipment("o-1")


class Plain(OrderFulfilment):
    """The same without timers: one decision for each input."""

    def decide(self, message: Any, state: Any) -> Any:
        match message, state:
            case PlaceOrder(id, amount), New():
                return [Send(ChargeCard(id, amount))]
            case CardCharged(id), AwaitingPayment():
                return [Send(ShipOrder(id))]
            case OrderShipped(), AwaitingShipment():
                return [Complete()]


STREAM: list[StreamEvent[Any, Any]] = [
    Began(),
    InitiatedBy(PLACED),
    Sent(ChargeCard("o-1", 1)),
    Received(CHARGED),
    Sent(ShipOrder("o-1")),
    Received(SHIPPED),
    Completed(),
]


class Quiet(Plain):
    """Decides nothing where the other knows no transition."""

    def decide(self, message: Any, state: Any) -> Any:
        return super().decide(message, state) or []


class Marked(Plain):
    """Has another state as soon as it began, and decides on its first input in the initial one all the same."""

    def evolve(self, state: Any, event: Any) -> Any:
        return AwaitingPayment("began") if isinstance(event, Began) else super().evolve(state, event)


def stored(stream: Sequence[StreamEvent[Any, Any]], workflow: type[Any]) -> tuple[WorkflowEntry, list[EventRow]]:
    app = Mainspring("memory://")
    app.add(workflow())
    entry = internals_of(app).registry.workflows[workflow.__name__]
    return entry, [row_of(entry, event, version) for version, event in enumerate(stream, 1)]


def row_of(entry: WorkflowEntry, event: StreamEvent[Any, Any], version: int) -> EventRow:
    if not isinstance(event, Received):
        return entry.recorder.row(event, version, 0)
    return EventRow(version, type(event).__name__, 0, *astuple(entry.recorder.encoded(event.message)))


def again(stream: Sequence[StreamEvent[Any, Any]], workflow: type[Any] = Plain) -> list[Redecided]:
    entry, rows = stored(stream, workflow)
    return list(redecided_rows(entry, Ref(entry.name, "o-1"), rows))


def test_each_input_is_decided_in_the_state_that_was_recorded_before_it() -> None:
    assert [(r.version, r.message, r.before, r.after, r.changed) for r in again(STREAM)] == [
        (2, PLACED, New(), WAITING, False),
        (4, CHARGED, WAITING, PAID, False),
        (6, SHIPPED, PAID, PAID, False),
    ]
    assert [(r.recorded, r.decided) for r in again(STREAM)] == [
        ([Sent(ChargeCard("o-1", 1))],) * 2,
        ([Sent(ShipOrder("o-1"))],) * 2,
        ([Completed()],) * 2,
    ]


def test_another_decision_is_told_with_both() -> None:
    [_, charged, _] = again([*STREAM[:4], Sent(ShipOrder("o-2")), *STREAM[5:]])
    assert charged.changed
    assert (charged.recorded, charged.decided) == ([Sent(ShipOrder("o-2"))], [Sent(ShipOrder("o-1"))])


def test_an_error_of_today_is_a_change() -> None:
    [_, shipped] = again([*STREAM[:3], Received(SHIPPED), Sent(ShipOrder("o-1"))])
    assert (type(shipped.error).__name__, shipped.decided, shipped.changed) == ("UnknownTransitionError", [], True)


def test_what_was_decided_before_a_migration_is_not_asked_again() -> None:
    told = again([*STREAM[:2], Sent(ShipOrder("old")), *STREAM[3:5], Migrated(2), *STREAM[5:]])
    assert [(r.version, r.checked, r.changed) for r in told] == [(2, False, False), (4, False, False), (7, True, False)]
    assert [r.decided for r in told] == [[], [], [Completed()]]


def test_the_last_of_several_migrations_counts() -> None:
    told = again([*STREAM[:3], Migrated(2), *STREAM[3:5], Migrated(3), *STREAM[5:]])
    assert [(r.version, r.checked) for r in told] == [(2, False), (5, False), (8, True)]


def test_the_first_input_is_decided_before_the_beginning_is_folded() -> None:
    stream: list[StreamEvent[Any, Any]] = [Began(), InitiatedBy(PLACED), Sent(ChargeCard("o-1", 1))]
    [first] = again(stream, Marked)
    assert (first.before, first.changed) == (New(), False)
    [_, late] = again([Began(), InitiatedBy(SHIPPED), Received(SHIPPED)], Marked)
    assert late.before == AwaitingPayment("began")


def due(days: int) -> Scheduled[Any]:
    return Scheduled(DeadlinePassed(), after=timedelta(days=days), at=None, key="mainspring.DeadlinePassed")


def test_another_deadline_of_the_class_is_no_change_of_what_began_before() -> None:
    opened, other = (Sent(OpenRoom(guest), CloseRoom("ann")) for guest in ("ann", "bob"))
    for first in ([due(1)], [due(30)], []):
        [same] = again([Began(), InitiatedBy(Arrive("ann")), *first, opened], Stay)
        assert (same.recorded, same.decided, same.changed) == ([opened], [opened], False)
        [changed] = again([Began(), InitiatedBy(Arrive("ann")), *first, other], Stay)
        assert (changed.recorded, changed.decided, changed.changed) == ([other], [opened], True)


def test_a_deadline_that_a_later_step_sets_is_compared() -> None:
    class Extended(Stay):
        def decide(self, message: Any, state: Any) -> Any:
            longer = [Schedule(DeadlinePassed(), after=timedelta(days=7))]
            return longer if isinstance(message, Leave) else super().decide(message, state)

    [_, later] = again([Began(), InitiatedBy(Arrive("ann")), Received(Leave("ann")), due(2)], Extended)
    assert (later.recorded, later.decided, later.changed) == ([due(2)], [due(7)], True)


def test_an_input_for_which_nothing_was_decided_stands_alone() -> None:
    told = again([*STREAM[:3], Received(SHIPPED), *STREAM[3:]], Quiet)
    assert [(r.version, r.recorded, r.error, r.changed) for r in told][1:3] == [
        (4, [], None, False),
        (5, [Sent(ShipOrder("o-1"))], None, False),
    ]


def test_what_is_sent_while_it_is_undone_was_decided_for_no_input() -> None:
    told = again([*STREAM[:3], Received(CHARGED), Compensating("no"), UNDO])
    assert told[-1].recorded == [Compensating("no")]


def test_a_reset_may_go_back_between_two_events_that_no_input_decided() -> None:
    undone: list[StreamEvent[Any, Any]] = [
        *STREAM[:3],
        Compensating("no", cancelled=True),
        UNDO,
        UNDO,
        Reset(5, "again"),
        *STREAM[3:5],
    ]
    assert [(r.version, r.before) for r in again(undone)] == [(2, New()), (8, WAITING)]


def test_after_a_reset_it_goes_on_from_the_state_at_that_version() -> None:
    back: list[StreamEvent[Any, Any]] = [
        *STREAM[:5],
        Suspended("no"),
        Resumed(),
        Reset(3, "again"),
        Received(CHARGED),
        Sent(ShipOrder("o-1")),
    ]
    assert [(r.version, r.before, r.changed) for r in again(back)] == [
        (2, New(), False),
        (4, WAITING, False),
        (9, WAITING, False),
    ]
    to_nowhere = again([*STREAM[:3], Reset(99, "again"), Received(PLACED), Sent(ChargeCard("o-1", 1))])
    assert [r.before for r in to_nowhere] == [New(), New()]


def test_an_instance_that_begins_anew_is_decided_from_the_initial_state() -> None:
    anew = again([*STREAM, *STREAM[:3]])
    assert [(r.version, r.before, r.after, r.changed) for r in anew][3:] == [(9, New(), WAITING, False)]


@pytest.mark.parametrize(
    ("before", "event", "expected"),
    [
        ((), Sent(ShipOrder("x")), True),
        ((), Became(WAITING), True),
        ((), Completed(), True),
        ((Sent(ShipOrder("x")),), Failed("no"), True),
        ((), Compensating("no"), True),
        ((), Compensating("no", cancelled=True), False),
        ((Compensating("no"),), UNDO, False),
        ((Compensating("no"),), Failed("no"), False),
        ((Sent(ShipOrder("x")),), Received(CHARGED), False),
        ((Sent(ShipOrder("x")),), Suspended("no"), False),
    ],
)
def test_what_was_decided_for_an_input_belongs_to_it(before: Any, event: Any, expected: bool) -> None:
    entry, rows = stored([Began(), InitiatedBy(PLACED), *before, event], Plain)
    last = [*Journey(entry, Ref("Plain", "o-1"), turns_of(rows)).moments(rows)][-1]
    assert (last.position == 2, last.last) == (expected, len(rows))


def test_what_cannot_be_read_is_raised_before_anything_is_told() -> None:
    entry, rows = stored(STREAM, Plain)
    rows[3] = EventRow(4, "Received", 0, "Gone", 1, b"{}")
    with pytest.raises(UnknownTypeError):
        next(redecided_rows(entry, Ref("Plain", "o-1"), rows))


def test_what_cannot_be_folded_is_raised_behind_the_inputs_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entry, rows = stored(STREAM, Plain)

    def evolve(self: Any, state: Any, event: Any) -> Any:
        if isinstance(event, Received) and event.message == CHARGED:
            raise ZeroDivisionError
        return OrderFulfilment.evolve(self, state, event)

    monkeypatch.setattr(Plain, "evolve", evolve)
    told = redecided_rows(entry, Ref("Plain", "o-1"), rows)
    assert next(told).version == 2
    with pytest.raises(ZeroDivisionError):
        next(told)


def test_without_a_check_nothing_changed() -> None:
    same = Redecided(2, "go", 0, 1, [Sent("a")], [Sent("b")])
    assert same.changed
    assert not Redecided(2, "go", 0, 1, [Sent("a")], (), checked=False).changed
    assert Redecided(2, "go", 0, 1, (), (), ValueError("no")).changed
    assert not Redecided(2, "go", 0, 1, (Sent("a"),), [Sent("a")]).changed
