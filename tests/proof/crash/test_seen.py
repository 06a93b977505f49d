"""What clients saw of journeys and meters, where handlers, timers and others step too."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.proof.crash.files import Place
from tests.proof.crash.journey import Home, Start, Travelling
from tests.proof.crash.saga_workflows import Turned
from tests.proof.crash.seen import MODELS, read_histories
from tests.proof.crash.undisturbed import run_undisturbed
from tests.proof.histories.calls import Call
from tests.proof.histories.judge import judge
from tests.support.running import run

Calls = list[Call]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    place = Place(tmp_path_factory.mktemp("healthy"))
    run(lambda: run_undisturbed(place))
    return [call for call in read_histories(place) if call.to.startswith(("Journey/", "Meter/"))]


def changed(calls: Calls, when: Callable[[Call], bool], value: Callable[[Any], Any]) -> Calls:
    assert any(when(call) for call in calls)
    return [replace(call, value=value(call.value)) if when(call) else call for call in calls]


def seen(cls: type[Any]) -> Callable[[Call], bool]:
    return lambda call: isinstance(call.value, cls)


def test_what_was_seen_is_explained(healthy: Calls) -> None:
    judged = judge(healthy, MODELS)
    assert (judged.violations, judged.undecided, judged.decided) == ([], [], 2)
    assert {"seen", "completed", "replied", "refused", "duplicate"} <= {call.outcome for call in healthy}


def test_what_has_no_case_was_not_taken(healthy: Calls) -> None:
    start = next(call for call in healthy if isinstance(call.message, Start) and call.outcome == "refused")
    lost = replace(start, name="lost", outcome="unknown", ended=None)
    assert judge([*healthy, lost], MODELS).violations == []
    assert judge([*healthy, replace(start, name="taken", id="taken", outcome="stepped")], MODELS).violations


@pytest.mark.parametrize(
    ("when", "value"),
    [
        (lambda call: call.outcome == "completed", lambda arrived: replace(arrived, notes=3)),
        (lambda call: call.outcome == "replied", lambda reading: replace(reading, turns=0)),
        (seen(Travelling), lambda state: replace(state, notes=state.notes + 1)),
        (seen(Travelling), lambda state: replace(state, leg=4)),
        (seen(Home), lambda state: Home(state.notes - 1)),
        (seen(Turned), lambda state: Turned((*state.numbers, *state.numbers))),
    ],
    ids=("result", "reply", "note", "leg", "home", "turned twice"),
)
def test_what_cannot_have_been_seen_is_found(when: Any, value: Any, healthy: Calls) -> None:
    assert judge(changed(healthy, when, value), MODELS).violations
