"""Which branches decided: on small workflows of every style, as functions and on a real file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring, Workflow
from mainspring.analysis.replay import branches
from mainspring.analysis.replay.branches import Trace, branches_taken
from mainspring.analysis.replay.counterfactual import counterfactual
from mainspring.analysis.replay.explain import Explanation, because, explain
from mainspring.analysis.replay.retelling import Edit
from mainspring.analysis.replay.travel import travel
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.walk import Moment
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import Ref
from mainspring.styles.history_words import StartWorkflow
from mainspring.testing import replay_histories, save_histories
from tests.support.running import run
from tests.unit.analysis.claims import (
    Bell,
    Claim,
    Claims,
    Impure,
    Knock,
    Knocked,
    Note,
    Open,
    Reviewed,
    Ring,
    Tick,
    UnderReview,
    app_of,
)
from tests.unit.analysis.quiet import quiet

HERE = str(Path(__file__).parent / "claims.py")


def taken(workflow: Workflow[Any, Any, Any], *arguments: Any) -> list[str]:
    trace = Trace()
    trace.call(workflow.decide, *arguments)
    return [branch.text for branch in branches_taken(trace.ran())]


def test_the_case_that_matched_is_named_with_its_line_and_the_guards_that_refused() -> None:
    trace = Trace()
    trace.call(Claims().decide, Claim("c-1", 50, express=True), Open())
    case, choice = branches_taken(trace.ran())

    assert (case.text, case.function, case.file) == ("case Claim(id, euros, express), Open()", "Claims.decide", HERE)
    assert Path(HERE).read_text().splitlines()[case.line - 1].strip() == "case Claim(id, euros, express), Open():"
    assert [guard.text for guard in case.refused] == [
        "case Claim(_, euros), Open() if euros < 0",
        "case Claim(id, euros), Open() if euros <= SMALL",
    ]
    assert choice.text == "if express"


def test_a_case_and_its_body_on_one_line_are_told_apart() -> None:
    assert taken(Claims(), Claim("c-1", 5), Open()) == [
        "case Claim(id, euros), Open() if euros <= SMALL",
        "if not (euros > 1_000)",
    ]


def test_nested_matches_and_helpers_are_followed() -> None:
    assert taken(Claims(), Reviewed("c-1", good=True), UnderReview(5_000)) == [
        "case Reviewed(id, good), UnderReview(euros)",
        "case True",
        "if euros > 1_000",
    ]


def test_a_decide_that_falls_through_is_told_as_no_case() -> None:
    [none] = taken(Claims(), Reviewed("c-1", good=True), Open())

    assert none == "no case of match message, state"


def test_an_or_pattern_is_one_case() -> None:
    assert taken(Claims(), Note("c-1", "hm"), UnderReview(5)) == ["case Note(), UnderReview() | Settled()"]


def test_code_of_libraries_is_not_traced() -> None:
    trace = Trace()
    trace.call(sorted, ["b", "a"])

    assert trace.ran() == {}


def test_what_has_no_source_is_left_out() -> None:
    space: dict[str, Any] = {"__name__": "nowhere"}
    exec(compile("def decide(n):\n    return [] if n else None\n", "gone.py", "exec"), space)  # noqa: S102  no source
    trace = Trace()
    trace.call(space["decide"], 1)

    assert list(trace.ran()) == ["gone.py"]
    assert branches_taken(trace.ran()) == []


def test_a_loop_that_runs_for_long_is_cut_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "INSTRUCTIONS_TRACED", 1_000)

    def loop() -> int:
        total = 0
        for number in range(10_000):
            total += number
        return total

    trace = Trace()
    assert trace.call(loop) == sum(range(10_000))
    assert trace.cut


def test_a_debugger_goes_on_afterwards() -> None:
    def debugger(*_: Any) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(debugger)
    try:
        Trace().call(len, "abc")
        assert sys.gettrace() is debugger
    finally:
        sys.settrace(before)


def test_the_short_form_is_the_innermost_case_of_decide() -> None:
    trace = Trace()
    trace.call(Claims().decide, Reviewed("c-1", good=False), UnderReview(5))
    branch = because(branches_taken(trace.ran()), "decide")

    assert branch is not None
    assert branch.text == "case False"


# ---- on a real file


async def explained(app: Mainspring, ref: Ref) -> list[tuple[Moment, Explanation]]:
    entry: WorkflowEntry = internals_of(app).registry.workflows[ref.workflow]
    found: list[tuple[Moment, Explanation]] = []
    async for moment in travel(internals_of(app).engine.store, entry, ref):
        assert isinstance(moment, Moment)
        explanation = explain(entry, moment)
        if explanation is not None:
            found.append((moment, explanation))
    return found


def told(url: str, ref: Ref, *messages: Any, actor: str | None = None) -> list[tuple[Moment, Explanation]]:
    async def body() -> list[tuple[Moment, Explanation]]:
        async with app_of(url) as app:
            for message in messages:
                await app.send(message, actor=actor)
            await quiet(app)
            return await explained(app, ref)

    return run(body)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'claims.db'}"


def test_each_step_is_explained_with_decide_and_evolve(url: str) -> None:
    (_, placed), (_, noted) = told(url, Ref("Claims", "c-1"), Claim("c-1", 50), Note("c-1", "hm"))

    assert placed.agrees
    assert noted.agrees
    assert placed.evolve[0].branches[0].text == "case Open(), Received(Claim(_, euros))"
    assert (noted.workflow_version, len(noted.fingerprint)) == (1, 16)


def test_where_todays_code_decides_otherwise_the_record_stays_the_truth(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(url, Ref("Claims", "c-1"), Claim("c-1", 50))
    monkeypatch.setattr("tests.unit.analysis.claims.SMALL", 100)

    [(_, now)] = told(url, Ref("Claims", "c-1"))

    assert not now.agrees
    assert [type(event).__name__ for event in now.recorded] == ["Sent", "Scheduled"]
    assert [type(event).__name__ for event in now.decided] == ["Sent"]
    assert now.decide[0].text.endswith("if euros <= SMALL")


def test_a_decide_that_fails_now_is_told_with_its_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told(url, Ref("Claims", "c-1"), Claim("c-1", 50))
    monkeypatch.setattr("tests.unit.analysis.claims.SMALL", None)

    [(_, now)] = told(url, Ref("Claims", "c-1"))

    assert not now.agrees
    assert now.error is not None
    assert now.error.startswith("TypeError")


def test_an_impure_decide_is_stopped_before_it_does_anything(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told(url, Ref("Impure", "t-1"), Tick("t-1"))
    monkeypatch.setattr(Impure, "clock", staticmethod(time.time))

    [(_, now)] = told(url, Ref("Impure", "t-1"))

    assert now.error is not None
    assert "time.time" in now.error


def test_a_decide_that_asks_for_the_envelope_gets_the_recorded_one(url: str) -> None:
    [(_, explanation)] = told(url, Ref("Enveloped", "r-1"), Ring("r-1"), actor="ann")

    assert explanation.agrees
    assert explanation.decide[0].text == 'case "ann"'


def test_the_state_returning_style_is_explained_by_its_decide(url: str) -> None:
    [*_, (moment, last)] = told(url, Ref("Door", "d-1"), Knock("d-1"), Knock("d-1"), Knock("d-1"))

    assert last.agrees
    assert [branch.text for branch in last.decide] == ["case Knocked(times) if times >= 2"]
    assert last.evolve == ()
    assert (moment.before, moment.after) == (Knocked(2), Knocked(3))


def test_the_history_style_is_explained_by_its_decide(url: str) -> None:
    (_, started), (_, completed) = told(url, Ref("Greeting", "g-1"), StartWorkflow("g-1", "Ada"))

    assert [branch.text for branch in started.decide] == ["case WorkflowStarted(_, name)"]
    assert [branch.text for branch in completed.decide] == ["case TaskCompleted()"]
    assert started.agrees
    assert completed.agrees


# ---- the beginning


def test_what_begins_an_instance_is_decided_before_its_beginning_is_folded(tmp_path: Path) -> None:
    async def body() -> tuple[list[Any], list[Any], Any, int]:
        app = Mainspring(f"sqlite:///{tmp_path / 'bell.db'}")
        app.add(Bell())
        async with app:
            await app.send(Ring("b-1"))
            await quiet(app)
            entry, ref = internals_of(app).registry.workflows["Bell"], Ref("Bell", "b-1")
            moments = [m async for m in travel(internals_of(app).engine.store, entry, ref) if isinstance(m, Moment)]
            rows = await whole_stream(internals_of(app).engine.store, ref)
            other = counterfactual(entry, ref, rows, Edit("insert", 3, Ring("b-1")), 1 << 60)
            await save_histories(app, tmp_path / "bell.json")
            inputs = replay_histories(app, tmp_path / "bell.json")
            return moments, [explain(entry, moment) for moment in moments], other, inputs

    (began, rung), (_, explanation), other, inputs = run(body)

    assert (began.after, rung.before, rung.after) == (Knocked(1), Knocked(0), Knocked(1))
    assert (explanation.agrees, explanation.decided) == (True, ())
    assert [type(entry.event).__name__ for entry in other.told] == ["Received", "Completed"]
    assert inputs == 1
