"""What a class says of itself beside its types: every setting, and what is refused of each."""

# The classes here are wrong on purpose, and are never run: what matters is what the error says.
# pyright: reportInvalidTypeForm=false, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportReturnType=false, reportUnusedClass=false
import types
from dataclasses import dataclass, make_dataclass
from datetime import timedelta
from typing import Annotated, Any, Never, TypeVar

import pytest

from mainspring import Envelope, Workflow
from mainspring.core.definition import LEAST_STEPS_PER_HOUR, NAME_CHARACTERS, definition_of
from mainspring.core.workflow import STEPS_PER_HOUR
from tests.unit.core.test_definition import A, B, Light, Methods, S, Thawed, problem

T = TypeVar("T")


def made(body: dict[str, Any]) -> type[Any]:
    """Return a workflow class with these attributes."""
    return types.new_class("W", (Methods, Workflow[A, S, B]), exec_body=lambda namespace: namespace.update(body))


def test_what_a_class_says_of_itself_is_in_its_definition() -> None:
    class W(Methods, Workflow[A | B, S, A]):
        begins = A
        version = 3
        unknown_transition = "ignore"
        again = "refuse"
        retention = timedelta(microseconds=1)
        expected_within = timedelta(microseconds=1)
        history = "state"
        late_events = "dead letter"
        steps_per_hour = LEAST_STEPS_PER_HOUR
        snapshot_every = 1
        mode = "inbox"

    found = definition_of(W)
    assert (found.version, found.unknown_transition, found.again, found.history) == (3, "ignore", "refuse", "state")
    assert (found.retention, found.expected_within) == (timedelta(microseconds=1), timedelta(microseconds=1))
    assert (found.late_events, found.steps_per_hour) == ("dead letter", LEAST_STEPS_PER_HOUR)
    assert (found.through_inbox, found.wants_envelope) == ({A, B}, False)


def test_a_class_that_says_nothing_has_the_plain_definition() -> None:
    class W(Methods, Workflow[A, S, B]): ...

    found = definition_of(W)
    assert (found.version, found.unknown_transition, found.again, found.history) == (1, "fail", "join", "kept")
    assert (found.retention, found.expected_within) == (None, None)
    assert (found.late_events, found.steps_per_hour) == ("kept", None)
    assert (LEAST_STEPS_PER_HOUR, STEPS_PER_HOUR) == (10, 1_000_000)
    assert (found.through_inbox, found.wants_envelope) == (frozenset(), False)
    assert (W.snapshot_every, W.mode, Workflow.attributes(W(), S())) == (100, "direct", {})


def test_a_mapping_says_which_inputs_go_through_the_inbox() -> None:
    class W(Methods, Workflow[A | B, S, A]):
        begins = A
        mode = {A: "direct", B: "inbox"}  # noqa: RUF012  as authors write it

    assert definition_of(W).through_inbox == {B}


@pytest.mark.parametrize("bad", ["later", {S: "inbox"}, {A: "later"}, None])
def test_a_mode_that_does_not_exist_is_refused(bad: Any) -> None:
    class W(Methods, Workflow[A, S, B]):
        mode = bad

    assert "has mode" in problem(W)


@pytest.mark.parametrize("bad", [timedelta(0), -timedelta(days=1), 30, "2d"])
def test_a_retention_that_makes_no_sense_is_refused(bad: Any) -> None:
    class W(Methods, Workflow[A, S, B]):
        retention = bad

    assert "has retention = " in problem(W)


@pytest.mark.parametrize("bad", [LEAST_STEPS_PER_HOUR - 1, float(LEAST_STEPS_PER_HOUR), True, "1000"])
def test_a_budget_of_steps_that_makes_no_sense_is_refused(bad: Any) -> None:
    assert f"has steps_per_hour = {bad!r}" in problem(made({"steps_per_hour": bad}))


@pytest.mark.parametrize(
    ("name", "bad"),
    [("again", "never"), ("history", "lost"), ("late_events", "lost"), ("unknown_transition", None)],
)
def test_a_word_that_means_nothing_is_refused(name: str, bad: Any) -> None:
    assert f"has {name} = {bad!r}" in problem(made({name: bad}))


@pytest.mark.parametrize(("name", "value"), [("again", "anew"), ("snapshot_every", None)])
def test_without_a_history_nothing_is_asked_for_that_needs_one(name: str, value: Any) -> None:
    assert f'has history = "state" and {name} = ' in problem(made({name: value, "history": "state"}))
    assert definition_of(made({name: value})).history == "kept"


@pytest.mark.parametrize("name", ["shop.orders", "shop-orders", "Größe", "x" * NAME_CHARACTERS, "a1"])
def test_a_name_has_letters_digits_dots_dashes_and_underscores(name: str) -> None:
    assert definition_of(made({"name": name})).name == name


def test_an_output_that_can_be_changed_is_refused() -> None:
    class W(Methods, Workflow[A, S, Thawed]): ...

    assert "uses Thawed, which can be changed" in problem(W)


@pytest.mark.parametrize("state", [Light.RED, "text", 7, 2.5, b"bytes"])
def test_a_state_may_be_an_enum_a_text_or_a_number(state: Any) -> None:
    kind = type(state)

    class W(Methods, Workflow[A, kind, B]):
        initial_state = state

    assert list(definition_of(W).states) == [kind]


@pytest.mark.parametrize("method", ["route", "evolve"])
def test_a_route_or_an_evolve_that_yields_or_is_awaited_is_refused(method: str) -> None:
    async def awaited(self: object, *_: object) -> None: ...
    async def streamed(self: object, *_: object) -> Any:
        yield 1

    def yielding(self: object, *_: object) -> Any:
        yield 1

    for wrong, told in ((awaited, f"has an async {method}"), (streamed, f"has an async {method}")):
        assert told in problem(made({method: wrong}))
    assert f"has a {method} that yields" in problem(made({method: yielding}))


def test_a_style_of_its_own_has_its_own_decide_and_nothing_else_of_its_own() -> None:
    class Style(Methods, Workflow[A, S, B]):
        def decide_on(self, asked: Any, state: Any, /) -> Any: ...
        def decide(self, message: Any) -> Any: ...

    assert not definition_of(Style).wants_envelope

    class Wrong(Style):
        def route(self) -> str | None: ...

    assert "has a route with other parameters" in problem(Wrong)


def test_a_style_of_its_own_may_take_what_it_likes_in_whatever_order() -> None:
    class Style(Methods, Workflow[A, S, B]):
        def decide_on(self, asked: Any, state: Any, /) -> Any: ...
        def decide(self, state: S, message: A, clock: Any) -> Any: ...

    assert not definition_of(Style).wants_envelope


def test_a_class_without_states_is_told_how_to_begin() -> None:
    class W(Methods, Workflow[A, Never, B]):
        initial_state = None

    assert "Add `initial_state = New(…)` to the class." in problem(W)


def test_a_text_with_fields_of_its_own_is_frozen_like_any_record() -> None:
    @dataclass
    class Tagged(str):  # noqa: SLOT000  as an author might
        tag: int = 0

    class W(Methods, Workflow[A, Tagged, B]):
        initial_state = Tagged()

    assert "uses Tagged, which can be changed" in problem(W)


def test_two_states_with_one_stored_name_are_refused() -> None:
    twin = make_dataclass("S", [], frozen=True)

    class W(Methods, Workflow[A, S | twin, B]): ...

    assert f"two types that are both stored as 'S': {S.__module__}.S and {twin.__module__}.S" in problem(W)


def test_a_method_that_is_not_written_says_so_when_it_is_called() -> None:
    bare: Any = Workflow()
    for call in (lambda: bare.route(A("1")), lambda: bare.decide(A("1"), S()), lambda: bare.evolve(S(), None)):
        with pytest.raises(NotImplementedError):
            call()


def test_an_alias_among_the_inputs_is_followed_through_annotations_and_unions() -> None:
    class W(Methods, Workflow[Annotated[A | Annotated[B, "second"], "first"], S, A]):
        begins = (A,)

    assert list(definition_of(W).inputs) == [A, B]


def test_a_decide_that_says_nothing_of_its_message_takes_every_input() -> None:
    class Bare(Methods, Workflow[A, S, B]):
        def decide(self, message: Any, state: Any) -> Any: ...

    Bare.decide.__annotations__.clear()

    assert not definition_of(Bare).wants_envelope


def test_a_decide_with_a_type_variable_takes_every_input() -> None:
    class W(Methods, Workflow[A | B, S, B]):
        begins = A

        def decide(self, message: Any, state: Any) -> Any: ...

    W.decide.__annotations__["message"] = "A | T"

    assert not definition_of(W).wants_envelope

    class Whole(W):
        def decide(self, message: Any, state: Any) -> Any: ...

    Whole.decide.__annotations__["message"] = "T"

    assert not definition_of(Whole).wants_envelope


def test_a_quoted_parameter_is_looked_up_where_decide_was_written() -> None:
    class W(Methods, Workflow[A | B, S, B]):
        begins = A

        def decide(self, message: Any, state: Any) -> Any: ...

    W.decide.__annotations__["message"] = "A"

    assert "its decide does not take B" in problem(W)


def test_a_name_that_is_no_text_is_refused() -> None:
    assert "is named 7" in problem(made({"name": 7}))


def test_an_envelope_of_anything_is_recognised() -> None:
    class W(Methods, Workflow[A, S, B]):
        def decide(self, message: Envelope, state: Any) -> Any: ...

    assert definition_of(W).wants_envelope
