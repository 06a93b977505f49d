from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring import CancelSchedule, Complete, Event, Fail, Publish, Reply, Schedule, Send
from mainspring.core.decisions import LONGEST_DELAY
from mainspring.core.events import InitiatedBy, Received
from mainspring.core.fold import fold
from mainspring.core.translate import recorded, translate
from mainspring.testing import Rehearsal
from mainspring.testing.samples import Count, Counted, CountedThrice, Counter
from tests.unit.core.orders import CardCharged, OrderFulfilment, OrderShipped, PaymentTimedOut, PlaceOrder

texts = st.text(max_size=10)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=10)
decisions = st.one_of(
    texts.map(Send),
    texts.map(Publish),
    st.builds(Reply, texts, to=st.none() | names),
    st.builds(Schedule, texts, after=st.timedeltas(timedelta(0), LONGEST_DELAY), key=names),
    names.map(CancelSchedule),
    st.builds(Complete, st.none() | texts),
    names.map(Fail),
)
counted: st.SearchStrategy[Event[Count, CountedThrice]] = st.one_of(
    texts.map(lambda text: Received(Count(text))),
    texts.map(lambda text: InitiatedBy(Count(text))),
    texts.map(lambda text: recorded(Send(CountedThrice(text)))),
)


@settings(max_examples=500)
@given(begins=st.booleans(), message=texts, decided=st.lists(decisions, max_size=20))
def test_translate_never_loses_or_reorders_a_decision(begins: bool, message: str, decided: list[Any]) -> None:
    events = translate(begins, message, decided)

    assert events[-len(decided) :] == [recorded(d) for d in decided] or not decided
    assert len(events) == len(decided) + (2 if begins else 1)
    assert [carried(e) for e in events[len(events) - len(decided) :]] == [carried(d) for d in decided]


def carried(thing: Any) -> object:
    """Return what a decision or an event is about, found without translate."""
    for field in ("message", "result", "reason"):
        if hasattr(thing, field):
            return getattr(thing, field)
    return thing.key


@settings(max_examples=500)
@given(st.lists(counted, max_size=20), st.lists(counted, max_size=20))
def test_folding_in_two_parts_equals_folding_at_once(
    first: list[Event[Count, CountedThrice]], second: list[Event[Count, CountedThrice]]
) -> None:
    workflow = Counter()

    at_once = fold(workflow, Counted(), first + second)

    assert fold(workflow, fold(workflow, Counted(), first), second) == at_once
    assert at_once.times == sum(isinstance(e, Received) for e in first + second)


inputs = st.sampled_from([CardCharged("o-1"), OrderShipped("o-1"), PaymentTimedOut("o-1")])


@settings(max_examples=500)
@given(st.lists(inputs, max_size=8))
def test_the_state_of_a_rehearsal_is_the_fold_of_its_stream(messages: list[Any]) -> None:
    workflow = OrderFulfilment()
    rehearsal = Rehearsal(workflow)
    rehearsal.take(PlaceOrder("o-1", 1))
    for message in messages:
        try:
            rehearsal.take(message)
        except Exception:  # noqa: BLE001, S112  a refused message leaves no trace, which is what the assertion sees
            continue

    assert fold(workflow, workflow.initial_state, rehearsal.events) == rehearsal.state
    assert [entry.position for entry in rehearsal.entries] == list(range(1, rehearsal.position + 1))
