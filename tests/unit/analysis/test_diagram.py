"""A diagram shows what the code can do and what instances did, and says of everything which of both it is."""

from __future__ import annotations

import pytest

from mainspring.analysis.diagram.diagram import Arrow, Diagram, Step, diagram_of
from mainspring.analysis.diagram.mining import BEGIN, Mined, MinedState, MinedStep
from mainspring.analysis.reading.model import (
    ANY_STATE,
    Gap,
    Machine,
    Output,
    Place,
    State,
    Transition,
    Unresolved,
)

MACHINE = Machine(
    "Door",
    states=(State("New", initial=True), State("Building", doc="Somebody is at it."), State("Gone", ended=True)),
    transitions=(
        Transition("New", "Order", "Building", outputs=(Output("Send", "Build"),), decided=Place("door.py", 12)),
        Transition("Building", "Built", "Gone", "width > 200", ends="failed"),
        Transition("Building", "Built", "Gone", "width <= 200", ends="completed"),
        Transition("Building", "Look", "Building", ignored=True),
        Transition("Building", "Paint", "Building"),
    ),
    gaps=(Gap("Building", "TooLate", ways=("timer",)),),
)


def mined(*steps: MinedStep, states: tuple[MinedState, ...] = (MinedState("Building", 3),)) -> Mined:
    return Mined("Door", "New", 3, states, steps)


def arrows(diagram: Diagram) -> dict[tuple[str, str], tuple[Step, ...]]:
    return {(arrow.source, arrow.target): arrow.steps for arrow in diagram.arrows}


def test_the_code_alone_is_drawn_with_guards_decisions_and_lines() -> None:
    drawn = diagram_of(MACHINE, None)

    (ordered,) = arrows(drawn)["New", "Building"]
    assert ordered.told == "Order · Send(Build) · door.py:12"
    assert [step.label for step in arrows(drawn)["Building", "Gone"]] == ["Built [width > 200]", "Built [width <= 200]"]
    assert {node.seen for node in drawn.nodes} == {"both"}
    assert drawn.node("Gone").ends == ("failed", "completed")
    assert arrows(drawn)[BEGIN, "New"] == ()


def test_guards_that_lead_the_same_way_are_one_step() -> None:
    machine = Machine(
        "W",
        states=(State("A", initial=True),),
        transitions=tuple(
            Transition("A", "Go", "A", guard, outputs=(Output("Send", "X"),))
            for guard in ("x > 1", "x < 1", "x == 1", "y")
        ),
    )

    (step,) = arrows(diagram_of(machine, None))["A", "A"]

    assert step.label == "Go"
    assert "[x > 1] or [x < 1] or [x == 1] or 1 more" in step.told


def test_drawn_together_each_step_says_where_it_was_seen() -> None:
    history = mined(
        MinedStep("New", "Order", "Building", 3),
        MinedStep("Building", "Built", "Gone", 1, "completed"),
        MinedStep("Building", "Varnish", "Varnished", 2),
        states=(MinedState("Building", 3, 1, 60.0), MinedState("Varnished", 2)),
    )

    drawn = diagram_of(MACHINE, history)

    seen = {(s.message, s.guards): s.seen for steps in arrows(drawn).values() for s in steps}
    assert seen == {
        ("Order", ()): "both",
        ("Built", ("width > 200",)): "code",
        ("Built", ("width <= 200",)): "both",
        ("Paint", ()): "code",
        ("Varnish", ()): "history",
    }
    assert {node.name: node.seen for node in drawn.nodes} == {
        BEGIN: "both",
        "New": "both",
        "Building": "both",
        "Gone": "code",
        "Varnished": "history",
    }
    assert arrows(drawn)["New", "Building"][0].count == 3


def test_a_line_with_steps_seen_in_several_ways_is_in_both() -> None:
    assert Arrow("A", "B", (Step("x", "code"), Step("y", "history"))).seen == "both"
    assert Arrow("A", "B", (Step("x", "code"), Step("y", "code"))).seen == "code"


def test_what_changes_nothing_is_left_out_unless_asked_for() -> None:
    history = mined(MinedStep("Building", "Look", "Building", 5), MinedStep("Building", "TooLate", "Building", 2))

    drawn = diagram_of(MACHINE, history)
    everything = diagram_of(MACHINE, history, ignored=True)

    assert [step.message for step in arrows(drawn)["Building", "Building"]] == ["Paint"]
    assert drawn.notes == ("2 steps that change and decide nothing are not drawn.",)
    assert [step.message for step in arrows(everything)["Building", "Building"]] == ["Look", "Paint", "TooLate"]
    assert everything.notes == ()


def test_a_timer_that_lost_its_race_is_no_older_code_but_a_step_with_a_case_elsewhere_is() -> None:
    lost = diagram_of(MACHINE, mined(MinedStep("Building", "TooLate", "Building", 2)))
    moved = diagram_of(MACHINE, mined(MinedStep("Building", "TooLate", "Gone", 2)))

    assert ("Building", "Building") in arrows(lost)
    assert "TooLate" not in [step.message for step in arrows(lost)["Building", "Building"]]
    assert [s.seen for s in arrows(moved)["Building", "Gone"] if s.message == "TooLate"] == ["history"]


def test_an_end_in_a_state_that_is_also_passed_leads_to_a_mark() -> None:
    machine = Machine(
        "Counter",
        states=(State("Counted", initial=True),),
        transitions=(
            Transition("Counted", "Count", "Counted", "times < 2"),
            Transition("Counted", "Count", "Counted", "times == 2", ends="completed"),
        ),
    )

    drawn = diagram_of(machine, None)

    assert set(arrows(drawn)) == {(BEGIN, "Counted"), ("Counted", "Counted"), ("Counted", "(completed)")}
    assert drawn.node("(completed)").kind == "end"


def test_a_mark_tells_the_state_in_which_the_instance_ended() -> None:
    machine = Machine(
        "W",
        states=(State("A", initial=True), State("B")),
        transitions=(
            Transition("A", "Go", "B"),
            Transition("A", "Stop", "B", ends="failed"),
            Transition("B", "Back", "A"),
        ),
    )

    (step,) = arrows(diagram_of(machine, None))["A", "(failed)"]

    assert step.label == "Stop → B"


def test_a_target_that_could_not_be_read_is_drawn_as_such_and_the_place_is_noted() -> None:
    place = Unresolved(Place("w.py", 7), "rules[x]()", "a call that cannot be followed", "A", "Go")
    machine = Machine(
        "W", states=(State("A", initial=True),), transitions=(Transition("A", "Go", ANY_STATE),), unresolved=(place,)
    )

    drawn = diagram_of(machine, None)

    assert drawn.node(ANY_STATE).kind == "unknown"
    assert drawn.notes == ("Could not be read: w.py:7: rules[x](): a call that cannot be followed (Go in A)",)


def test_what_history_did_where_the_code_could_not_be_read_is_not_taken_for_older_code() -> None:
    place = Unresolved(Place("w.py", 7), "rules[x]()", "a call that cannot be followed", "A", "Go")
    states = (State("A", initial=True), State("B"))
    unread = Machine("W", states=states, transitions=(Transition("A", "Go", ANY_STATE),), unresolved=(place,))
    history = mined(MinedStep("A", "Go", "B", 2), MinedStep("A", "Stop", "B", 1), states=(MinedState("B", 3),))

    drawn = arrows(diagram_of(unread, history))

    assert {step.message: step.seen for step in drawn["A", "B"]} == {"Go": "both", "Stop": "history"}
    assert [step.seen for step in drawn["A", ANY_STATE]] == ["both"]


def test_a_step_that_is_always_taken_has_no_guard_though_another_way_to_it_has_one() -> None:
    ways = (Transition("A", "Go", "B", "first"), Transition("A", "Go", "B"))
    machine = Machine("W", states=(State("A", initial=True), State("B")), transitions=ways)

    assert [step.label for step in arrows(diagram_of(machine, None))["A", "B"]] == ["Go"]


def test_history_alone_begins_where_its_first_steps_do() -> None:
    history = Mined("Old", None, 2, (MinedState("A", 2),), (MinedStep(BEGIN, "Go", "A", 2),))

    drawn = diagram_of(None, history)

    assert set(arrows(drawn)) == {(BEGIN, "A")}
    assert arrows(drawn)[BEGIN, "A"][0].label == "Go ×2"
    assert {node.seen for node in drawn.nodes} == {"both"}


def test_there_must_be_something_to_draw() -> None:
    with pytest.raises(ValueError, match="neither code nor history"):
        diagram_of(None, None)
