from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import (
    Began,
    CancelSchedule,
    Complete,
    Completed,
    Decisions,
    Envelope,
    Event,
    Fail,
    Failed,
    InitiatedBy,
    Kind,
    Publish,
    Published,
    Received,
    Replied,
    Reply,
    Schedule,
    ScheduleCancelled,
    Scheduled,
    Send,
    Sent,
    Workflow,
)
from mainspring.core import decisions as decide
from mainspring.core.events import Asked, Became, Resumed, Suspended, TaskClosed
from mainspring.core.failures import ChildCompleted, ChildFailed, DeadlinePassed, SendFailed
from mainspring.core.fold import fold
from mainspring.core.step import OUTPUTS_PER_STEP, step
from mainspring.errors import (
    CannotBeginError,
    DecisionAfterEndError,
    InvalidDecisionError,
    InvalidStateError,
    LeftError,
    TooManyOutputsError,
    UndeclaredInputError,
    UndeclaredOutputError,
    UnknownTransitionError,
)
from mainspring.testing import envelope
from tests.unit.core.orders import (
    AwaitingPayment,
    AwaitingShipment,
    CardCharged,
    ChargeCard,
    New,
    OrderFulfilment,
    OrderShipped,
    PaymentTimedOut,
    PlaceOrder,
    ShipOrder,
)
from tests.unit.core.test_definition import Methods


@dataclass(frozen=True)
class Ask:
    id: str


@dataclass(frozen=True)
class Later:
    id: str


@dataclass(frozen=True)
class Answer:
    text: str


@dataclass(frozen=True)
class Undeclared:
    pass


@dataclass(frozen=True)
class Idle:
    pass


@dataclass(frozen=True)
class Joined:
    id: str = ""
    results: tuple[Answer, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class JoinedElsewhere:
    results: tuple[Answer, ...] = ()
    failures: tuple[str, ...] = ()


class Scripted(Workflow[Ask | Later | Joined, Idle, Answer]):
    """Decides whatever the test tells it to."""

    begins = Ask
    initial_state = Idle()

    def __init__(self, decisions: Any = (), after: Any = None) -> None:
        self.decisions = decisions
        self.after = after

    def route(self, message: Ask | Later) -> str | None:
        return message.id

    def decide(self, message: Any, state: Idle) -> Decisions[Ask | Later, Answer] | None:
        return self.decisions

    def evolve(self, state: Idle, event: Event[Ask | Later, Answer]) -> Idle | None:
        return self.after


def begin(workflow: Workflow[Any, Any, Any], message: object = Ask("1")) -> Any:
    return step(workflow, workflow.initial_state, 0, envelope(message), begins=True)


def test_the_first_step_records_began_and_initiated_by_before_its_decisions() -> None:
    taken = begin(OrderFulfilment(), PlaceOrder("o-1", 4200))

    assert list(taken.events) == [
        Began(),
        InitiatedBy(PlaceOrder("o-1", 4200)),
        Sent(ChargeCard("o-1", 4200)),
        Scheduled(PaymentTimedOut("o-1"), timedelta(minutes=5), None, "PaymentTimedOut"),
    ]
    assert taken.state == AwaitingPayment("o-1")
    assert taken.version == 4


def test_a_later_step_records_received() -> None:
    taken = step(OrderFulfilment(), AwaitingPayment("o-1"), 4, envelope(CardCharged("o-1")), begins=False)

    assert list(taken.events) == [
        Received(CardCharged("o-1")),
        ScheduleCancelled("PaymentTimedOut"),
        Sent(ShipOrder("o-1")),
    ]
    assert taken.state == AwaitingShipment("o-1")


def test_outputs_carry_the_version_at_which_they_were_recorded() -> None:
    taken = step(OrderFulfilment(), AwaitingPayment("o-1"), 4, envelope(CardCharged("o-1")), begins=False)

    assert [(o.version, o.event) for o in taken.outputs] == [
        (6, ScheduleCancelled("PaymentTimedOut")),
        (7, Sent(ShipOrder("o-1"))),
    ]


def test_every_decision_has_its_event() -> None:
    decisions = [
        Send(Answer("sent")),
        Publish(Answer("published")),
        Reply(Answer("replied"), to="m-7"),
        Schedule(Later("1"), after=timedelta(1), key="k"),
        CancelSchedule("k"),
        Complete(Answer("done")),
    ]

    assert list(begin(Scripted(decisions)).events)[2:] == [
        Sent(Answer("sent")),
        Published(Answer("published")),
        Replied(Answer("replied"), "m-7"),
        Scheduled(Later("1"), timedelta(1), None, "k"),
        ScheduleCancelled("k"),
        Completed(Answer("done")),
    ]
    assert begin(Scripted([Fail("no")])).events[-1] == Failed("no")


def test_an_empty_list_means_nothing_to_decide() -> None:
    assert list(begin(Scripted([])).events) == [Began(), InitiatedBy(Ask("1"))]


def test_a_step_says_whether_decide_had_a_case() -> None:
    class Lenient(Scripted):
        unknown_transition = "ignore"

    assert begin(Lenient(None)).no_case
    assert not begin(Lenient([])).no_case


def test_an_unknown_transition_shows_message_and_state() -> None:
    with pytest.raises(UnknownTransitionError) as caught:
        step(OrderFulfilment(), New(), 0, envelope(OrderShipped("o-1")), begins=False)

    assert str(caught.value) == (
        "OrderFulfilment has no transition for OrderShipped in state New.\n"
        "  message: OrderShipped(order_id='o-1')\n"
        "  state:   New()\n"
        "Add a case to decide, return [] there if nothing is to be decided, "
        'or set unknown_transition = "ignore" on the class.'
    )
    assert caught.value.message == OrderShipped("o-1")


def test_an_unknown_transition_is_recorded_and_ignored_where_the_workflow_says_so() -> None:
    class Lenient(OrderFulfilment):
        unknown_transition = "ignore"

    taken = step(Lenient(), New(), 4, envelope(OrderShipped("o-1")), begins=False)

    assert list(taken.events) == [Received(OrderShipped("o-1"))]


def test_a_timer_that_lost_its_race_is_recorded_and_ignored() -> None:
    late = envelope(PaymentTimedOut("o-1"), kind=Kind.TIMER)

    taken = step(OrderFulfilment(), AwaitingShipment("o-1"), 7, late, begins=False)

    assert list(taken.events) == [Received(PaymentTimedOut("o-1"))]


def test_an_input_that_is_not_declared_is_refused() -> None:
    with pytest.raises(UndeclaredInputError, match=r"does not take Undeclared: its inputs are Ask, Later, Joined"):
        begin(Scripted(), Undeclared())


def test_a_message_that_may_not_begin_does_not_begin() -> None:
    with pytest.raises(CannotBeginError, match=r"cannot begin with Later: it begins with Ask"):
        begin(Scripted(), Later("1"))


@pytest.mark.parametrize(
    "told",
    [
        SendFailed("t", "m", "e", 1),
        ChildCompleted("c"),
        ChildFailed("c", "failed", "no"),
        DeadlinePassed(),
    ],
)
def test_what_only_the_engine_knows_begins_nothing_and_nobody_is_told_to_let_it(told: object) -> None:
    class Listening(Methods, Workflow[Ask | SendFailed | ChildCompleted | ChildFailed | DeadlinePassed, Idle, Answer]):
        begins = Ask
        initial_state = Idle()

    with pytest.raises(CannotBeginError, match=r"Send Ask first: only instances that have begun get "):
        begin(Listening(), told)


@pytest.mark.parametrize(
    ("decision", "role"),
    [
        (Send(Undeclared()), "outputs"),
        (Publish(Undeclared()), "outputs"),
        (Reply(Undeclared()), "outputs"),
        (Complete(Undeclared()), "outputs"),
        (Schedule(Undeclared(), after=timedelta(1)), "inputs"),
        (CancelSchedule(Undeclared), "inputs"),
        (Send(Undeclared(), compensate=Answer("undo")), "outputs"),
        (Send(Answer("do"), compensate=Undeclared()), "outputs"),
        (decide.StartChild(Undeclared()), "outputs"),
        (decide.Compensate("no", then=Undeclared()), "inputs"),
        (decide.CloseTask(Undeclared), "inputs"),
        (decide.Become(Undeclared()), "states"),
        (decide.FanOut([Answer("a")], into=JoinedElsewhere), "inputs"),
        (decide.FanOut([Answer("a"), Undeclared()], into=Joined), "outputs"),
        (decide.Ask("?", answer=Undeclared, role="r"), "inputs"),
        (decide.Ask("?", answer=Later | Undeclared, role="r"), "inputs"),
        (decide.Ask("?", answer=Later, role="r", remind=Schedule(Undeclared(), after=timedelta(1))), "inputs"),
        (decide.Ask("?", answer=Later, role="r", escalate=Schedule(Undeclared(), after=timedelta(1))), "inputs"),
    ],
)
def test_a_decision_about_an_undeclared_type_is_refused(decision: object, role: str) -> None:
    with pytest.raises(UndeclaredOutputError, match=f"whose type is not among its {role}"):
        begin(Scripted([decision]))


@pytest.mark.parametrize("decision", [Complete(), Complete(Joined("j"))])
def test_another_result_than_the_declared_one_is_refused(decision: Complete[Any]) -> None:
    class Promising(Methods, Workflow[Ask, Idle, Answer | Joined, Answer]):
        initial_state = Idle()

        def decide(self, message: Any, state: Any) -> Decisions[Any, Any] | None:
            return [decision]

    with pytest.raises(UndeclaredOutputError, match="not among its results: Answer") as caught:
        begin(Promising(), Ask("1"))

    assert "Add the type to the fourth type parameter of Promising." in str(caught.value)


@pytest.mark.parametrize(
    "decision",
    [
        Send(Answer("do"), compensate=Answer("undo")),
        Reply(Answer("yes")),
        Complete(Answer("done")),
        decide.StartChild(Answer("begin")),
        decide.Compensate("no"),
        decide.Compensate("no", then=Later("1")),
        decide.CloseTask("key"),
        decide.CloseTask(Later),
        CancelSchedule(Later),
        decide.Become(Idle()),
        decide.FanOut([Answer("a")], into=Joined),
        decide.Ask("?", answer=Later, role="r", remind=Schedule(Later("1"), after=timedelta(1))),
    ],
)
def test_a_decision_about_declared_types_is_recorded(decision: object) -> None:
    assert len(begin(Scripted([decision])).events) >= 3


def test_two_tasks_under_one_key_in_one_step_are_refused() -> None:
    ask = decide.Ask("?", answer=Later, role="r")
    with pytest.raises(InvalidDecisionError, match=r"asks twice under one key in one step: \['Later', 'Later'\]"):
        begin(Scripted([ask, ask]))
    begin(Scripted([ask, decide.Ask("?", answer=Later, role="r", key="another")]))


@pytest.mark.parametrize("end", [Complete(), Fail("no"), decide.Compensate("no")])
def test_a_decision_after_the_end_is_refused(end: object) -> None:
    with pytest.raises(DecisionAfterEndError, match="Put Complete, Fail or Compensate last"):
        begin(Scripted([end, Send(Answer("late"))]))


def test_a_second_end_is_refused() -> None:
    with pytest.raises(DecisionAfterEndError):
        begin(Scripted([Complete(), Complete()]))


@pytest.mark.parametrize("garbage", ["text", {"a": 1}, Send(Answer("alone")), 7, (d for d in ())])
def test_what_is_no_list_of_decisions_is_refused(garbage: object) -> None:
    with pytest.raises(InvalidDecisionError, match="no list of decisions"):
        begin(Scripted(garbage))


def test_a_bare_message_in_the_list_is_refused() -> None:
    with pytest.raises(InvalidDecisionError, match="Wrap a message in Send"):
        begin(Scripted([Answer("bare")]))


def test_a_step_has_a_bound() -> None:
    assert len(begin(Scripted([Send(Answer("x"))] * OUTPUTS_PER_STEP)).outputs) == OUTPUTS_PER_STEP
    with pytest.raises(TooManyOutputsError, match=r"2,001 things in one step; the limit is 2,000"):
        begin(Scripted([Send(Answer("x"))] * (OUTPUTS_PER_STEP + 1)))


def test_evolve_must_return_a_declared_state() -> None:
    with pytest.raises(InvalidStateError, match=r"not one of its states: Idle"):
        begin(Scripted([], after=Answer("no state")))


def test_an_error_in_decide_says_where_it_came_from() -> None:
    class Broken(Scripted):
        def decide(self, message: Any, state: Idle) -> Decisions[Ask | Later, Answer] | None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        begin(Broken())

    assert caught.value.__notes__ == ["while Broken decided on Ask(id='1') in Idle()"]


def test_an_error_in_evolve_says_where_it_came_from() -> None:
    class Broken(Scripted):
        def evolve(self, state: Idle, event: Event[Ask | Later, Answer]) -> Idle | None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        begin(Broken([]))

    assert caught.value.__notes__ == ["while Broken evolved Idle() by Began()"]


def test_decide_may_ask_for_the_envelope_and_sees_its_whole_context() -> None:
    seen: list[Envelope[Ask | Later]] = []

    class Curious(Scripted):
        def decide(self, envelope: Any, state: Idle) -> Decisions[Ask | Later, Answer] | None:
            seen.append(envelope)
            return []

    Curious.decide.__annotations__["envelope"] = Envelope[Ask | Later | Joined]
    begin(Curious())

    assert (seen[0].message, seen[0].type, seen[0].type_version) == (Ask("1"), "Ask", 1)
    assert (seen[0].id, seen[0].correlation_id, seen[0].causation_id) == ("message-1", "message-1", None)
    assert (seen[0].kind, seen[0].sender, seen[0].actor) == (Kind.COMMAND, None, None)
    assert seen[0].time == envelope(Ask("1")).time


def test_a_task_that_is_answered_is_closed_before_what_is_decided() -> None:
    answered = envelope(Later("1"), task="review")
    taken = step(Scripted([Send(Answer("x"))]), Idle(), 4, answered, begins=False)
    assert list(taken.events) == [Received(Later("1")), TaskClosed("review"), Sent(Answer("x"))]


def test_a_task_is_recorded_with_its_timers_behind_it() -> None:
    ask = decide.Ask("?", answer=Later, role="r", key="k", remind=Schedule(Later("1"), after=timedelta(1)))
    assert list(begin(Scripted([ask, decide.Become(Idle())])).events)[2:] == [
        Asked("k", "?", ("Later",), "r"),
        Scheduled(Later("1"), timedelta(1), None, "task:k"),
        Became(Idle()),
    ]


def test_what_is_no_timer_and_no_decision_is_no_transition() -> None:
    with pytest.raises(UnknownTransitionError):
        step(OrderFulfilment(), AwaitingShipment("o-1"), 7, envelope(PaymentTimedOut("o-1")), begins=False)


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (Send(Answer("do"), compensate=Answer("undo")), "Send(…, compensate=…)"),
        (decide.StartChild(Answer("begin")), "StartChild"),
        (decide.FanOut([Answer("a")], into=Joined), "FanOut"),
        (decide.Compensate("no"), "Compensate"),
    ],
)
def test_without_a_history_nothing_is_decided_that_needs_one(decision: object, told: str) -> None:
    class Unkept(Scripted):
        history = "state"

    with pytest.raises(InvalidDecisionError) as caught:
        begin(Unkept([decision]))
    assert str(caught.value).startswith(f"Unkept decided {told}, and its history is not kept")
    assert len(begin(Unkept([Send(Answer("x")), Complete()])).events) == 4
    assert len(begin(Scripted([decision])).events) == 3


class Leaving(Scripted):
    """Raises what the test tells it to, in decide or in evolve."""

    def decide(self, message: Any, state: Idle) -> Decisions[Any, Answer] | None:
        if self.decisions is not None:
            raise self.decisions
        return []

    def evolve(self, state: Idle, event: Event[Any, Answer]) -> Idle | None:
        raise self.after


@pytest.mark.parametrize("where", ["decide", "evolve"])
def test_code_that_leaves_the_process_is_told_as_an_error_with_its_message(where: str) -> None:
    leaving = Leaving(SystemExit(3)) if where == "decide" else Leaving(None, SystemExit(3))
    with pytest.raises(LeftError) as caught:
        begin(leaving)
    assert (caught.value.workflow, caught.value.state) == ("Leaving", Idle())
    assert where in str(caught.value)
    assert caught.value.message == (Ask("1") if where == "decide" else Began())


@pytest.mark.parametrize("where", ["decide", "evolve"])
def test_an_interrupt_from_the_keyboard_passes_through(where: str) -> None:
    stop = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        begin(Leaving(stop) if where == "decide" else Leaving(None, stop))


def test_a_refused_decision_is_told_with_its_message_and_state() -> None:
    with pytest.raises(UndeclaredOutputError) as caught:
        begin(Scripted([Publish(Undeclared())]))
    assert (caught.value.message, caught.value.state) == (Ask("1"), Idle())


def test_a_list_of_decisions_may_be_a_tuple() -> None:
    assert begin(Scripted((Complete(),))).events[-1] == Completed()


def test_what_stands_behind_a_good_decision_is_checked_too() -> None:
    with pytest.raises(UndeclaredOutputError):
        begin(Scripted([Send(Answer("good")), Send(Undeclared())]))
    with pytest.raises(DecisionAfterEndError):
        begin(Scripted([Send(Answer("good")), Complete(), Send(Answer("late"))]))


def test_a_state_does_not_see_what_operators_did() -> None:
    seen: list[object] = []

    class Watching(Scripted):
        def evolve(self, state: Idle, event: Event[Any, Answer]) -> Idle | None:
            seen.append(event)
            return None

    stream: list[Any] = [Suspended("wait"), Received(Later("1")), Resumed()]
    assert fold(Watching(), Idle(), stream) == Idle()
    assert seen == [Received(Later("1"))]
