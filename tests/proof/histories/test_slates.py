"""Real calls on real slates: a history as it was is explained, and one with a violation planted in it is not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.proof.crash.files import Place
from tests.proof.crash.seen import read_histories
from tests.proof.crash.undisturbed import run_undisturbed
from tests.proof.histories.calls import Call
from tests.proof.histories.judge import judge
from tests.proof.histories.slates import MODELS, Marks, Tallied
from tests.support.running import run

Calls = list[Call]
Plant = Callable[[Calls], Calls]
PLANTED: list[Plant] = []


def plants(plant: Plant) -> Plant:
    PLANTED.append(plant)
    return plant


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    place = Place(tmp_path_factory.mktemp("healthy"))
    run(lambda: run_undisturbed(place))
    return [call for call in read_histories(place) if call.to.partition("/")[0] in MODELS]


def test_a_history_as_it_was_is_explained(healthy: Calls) -> None:
    judged = judge(healthy, MODELS)
    assert (judged.violations, judged.undecided) == ([], [])
    assert (judged.instances, judged.decided) == (2, 2)
    outcomes = {call.outcome for call in healthy}
    told = {"stepped", "accepted", "duplicate", "refused", "dead letter", "replied", "first", "later", "seen"}
    assert told | {"nothing", "completed"} <= outcomes
    assert {call.outcome for call in healthy if call.verb == "request"} == {"replied", "dead letter"}


@plants
def an_acknowledged_write_is_lost(calls: Calls) -> Calls:
    return _rewritten(calls, lambda marks: tuple(mark for mark in marks if mark != "Chalk a"))


@plants
def an_accepted_write_is_lost(calls: Calls) -> Calls:
    return _rewritten(calls, lambda marks: tuple(mark for mark in marks if mark != "Drop b"))


@plants
def a_write_is_doubled(calls: Calls) -> Calls:
    return _rewritten(calls, lambda marks: (*marks, marks[0]) if marks else marks)


@plants
def a_repeated_write_is_taken_twice(calls: Calls) -> Calls:
    return [replace(call, outcome="stepped") if call.outcome == "duplicate" else call for call in calls]


@plants
def a_read_is_older_than_one_that_ended_before_it_began(calls: Calls) -> Calls:
    reads = sorted((call for call in calls if call.verb == "state" and call.to.startswith("Slate")), key=_began)
    stale = replace(reads[-1], value=reads[-2].value)
    return [stale if call is reads[-1] else call for call in calls]


@plants
def a_read_sees_what_was_never_sent(calls: Calls) -> Calls:
    return _rewritten(calls, lambda marks: (*marks, "Chalk never"))


@plants
def a_read_comes_before_its_write(calls: Calls) -> Calls:
    last = max((call for call in calls if call.outcome == "seen"), key=_began)
    return [*calls, replace(last, name="early", verb="state", began=0, ended=1)]


@plants
def two_answers_to_one_task_are_accepted(calls: Calls) -> Calls:
    def taken(call: Call) -> Call:
        value = {"status": "stepped", "by": call.id, "message": call.message}
        return replace(call, outcome="first", value=value) if call.outcome == "later" else call

    return [taken(call) for call in calls]


@plants
def an_answer_counts_that_was_told_to_have_lost(calls: Calls) -> Calls:
    lost = next(call for call in calls if call.outcome == "later")
    by = f"{type(lost.message).__name__} d by {lost.message.by}"
    return _rewritten(calls, lambda marks: tuple(by if " d by " in mark else mark for mark in marks))


@plants
def a_reply_disagrees_with_its_step(calls: Calls) -> Calls:
    return [replace(call, value=Tallied(0, "")) if call.outcome == "replied" else call for call in calls]


@plants
def a_result_disagrees_with_its_step(calls: Calls) -> Calls:
    def wrong(call: Call) -> Call:
        return replace(call, value=replace(call.value, marks=call.value.marks + 1))

    return [wrong(call) if call.outcome == "completed" else call for call in calls]


@plants
def something_is_taken_after_the_end(calls: Calls) -> Calls:
    return [replace(call, outcome="stepped") if call.outcome == "dead letter" else call for call in calls]


@plants
def something_is_not_taken_before_the_end(calls: Calls) -> Calls:
    return [replace(call, outcome="dead letter") if call.message and call.id == "f" else call for call in calls]


@plants
def a_handlers_result_never_comes(calls: Calls) -> Calls:
    return _rewritten(calls, lambda marks: tuple(mark for mark in marks if mark != "Traced c"))


@plants
def writes_change_places(calls: Calls) -> Calls:
    return _rewritten(calls, lambda marks: (marks[1], marks[0], *marks[2:]) if len(marks) > 1 else marks)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_violation_is_found(plant: Plant, healthy: Calls) -> None:
    planted = plant(healthy)
    assert planted != healthy
    assert judge(planted, MODELS).violations


def _rewritten(calls: Calls, rewrite: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Calls:
    """Return calls whose reads saw something else."""

    def read(call: Call) -> Call:
        return replace(call, value=Marks(rewrite(call.value.marks))) if call.outcome == "seen" else call

    return [read(call) for call in calls]


def _began(call: Call) -> Any:
    return call.began
