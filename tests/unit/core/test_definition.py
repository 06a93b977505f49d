# The classes here are wrong on purpose, and are never run: what matters is what the error says.
# pyright: reportInvalidTypeForm=false, reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportReturnType=false, reportUnusedClass=false
import sys
import types
from dataclasses import dataclass, make_dataclass
from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, Generic, Literal, Never, TypeVar

import msgspec
import pydantic
import pytest

from mainspring import Decisions, Envelope, Event, Message, Workflow, message
from mainspring.core.definition import NAME_CHARACTERS, definition_of
from mainspring.core.events import Occurrence
from mainspring.errors import DefinitionError
from mainspring.styles import StateReturningWorkflow
from tests.unit.core import orders

T = TypeVar("T")


@dataclass(frozen=True)
class A:
    id: str


@dataclass(frozen=True)
class B:
    id: str


@dataclass(frozen=True)
class S:
    pass


@dataclass
class Thawed:
    id: str


class Struct(msgspec.Struct, frozen=True):
    id: str


class ThawedStruct(msgspec.Struct):
    id: str


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    id: str


class ThawedModel(pydantic.BaseModel):
    id: str


class Light(Enum):
    RED = "red"


class Methods:
    """route, decide and evolve for classes that are about something else."""

    initial_state: Any = S()

    def route(self, message: Any) -> str | None: ...
    def decide(self, message: Any, state: Any) -> Decisions[Any, Any] | None: ...
    def evolve(self, state: Any, event: Event[Any, Any]) -> Any | None: ...


def problem(cls: type[Any]) -> str:
    with pytest.raises(DefinitionError) as caught:
        definition_of(cls)
    assert caught.value.workflow == cls.__name__
    return str(caught.value)


def test_the_type_parameters_are_read_from_the_class() -> None:
    definition = definition_of(orders.OrderFulfilment)

    assert list(definition.inputs.values()) == ["PlaceOrder", "CardCharged", "OrderShipped", "PaymentTimedOut"]
    assert list(definition.states.values()) == ["New", "AwaitingPayment", "AwaitingShipment"]
    assert list(definition.outputs.values()) == ["ChargeCard", "ShipOrder", "OrderAbandoned"]
    assert definition.begins == {orders.PlaceOrder}
    assert (definition.name, definition.version) == ("OrderFulfilment", 1)


def test_structs_pydantic_models_and_enums_work_as_well() -> None:
    class W(Methods, Workflow[Struct | Model, Light, A]):
        begins = Struct
        initial_state = Light.RED

    assert list(definition_of(W).inputs) == [Struct, Model]


def test_type_parameters_pass_through_generic_bases() -> None:
    I = TypeVar("I", bound=Message)  # noqa: E741  as an author might
    O = TypeVar("O", bound=Message)  # noqa: E741

    class Base(Methods, Workflow[I | A, S, O], Generic[I, O]):
        begins = A

    class Middle(Base[B, O], Generic[O]):
        pass

    class Leaf(Middle[Struct]):
        pass

    assert list(definition_of(Leaf).inputs) == [B, A]
    assert list(definition_of(Leaf).outputs) == [Struct]


def test_a_quoted_type_parameter_is_looked_up_in_its_module() -> None:
    class W(Methods, Workflow["A | B", "S", "B"]):
        begins = A

    assert list(definition_of(W).inputs) == [A, B]


def test_never_means_no_outputs() -> None:
    class W(Methods, Workflow[A, S, Never]):
        pass

    assert definition_of(W).outputs == {}


def test_a_single_input_type_begins_without_a_declaration() -> None:
    class W(Methods, Workflow[A, S, B]):
        pass

    assert definition_of(W).begins == {A}


@pytest.mark.parametrize("declared", [(A, B), A | B])
def test_begins_may_be_several(declared: Any) -> None:
    class W(Methods, Workflow[A | B, S, A]):
        begins = declared

    assert definition_of(W).begins == {A, B}


def test_a_name_of_its_own_is_taken_and_not_inherited() -> None:
    class Named(Methods, Workflow[A, S, B]):
        name = "shop.orders"

    class Child(Named):
        pass

    assert definition_of(Named).name == "shop.orders"
    assert definition_of(Child).name == "Child"


def test_missing_type_parameters_are_named_with_the_line_to_write() -> None:
    class W(Methods, Workflow): ...  # pyright: ignore[reportMissingTypeArgument]

    assert problem(W) == (
        "W does not say what its inputs, states and outputs are. Write `class W(Workflow[Input, State, Output])`."
    )


def test_a_result_is_any_output_or_none_unless_it_is_declared() -> None:
    class Silent(Methods, Workflow[A, S, Never]): ...

    class Undeclared(Methods, Workflow[A, S, A | B]): ...

    class Declared(Methods, Workflow[A, S, A | B, B]): ...

    class Maybe(Methods, Workflow[A, S, A | B, B | None]): ...

    class Nothing(Methods, Workflow[A, S, A | B, None]): ...

    class Anything(Methods, Workflow[A, S, A | B, Any]): ...

    def results(cls: type[Workflow[Any, Any, Any]]) -> list[type[Any]]:
        return list(definition_of(cls).results)

    assert results(Silent) == [type(None)]
    assert results(Undeclared) == [A, B, type(None)]
    assert results(Declared) == [B]
    assert results(Maybe) == [B, type(None)]
    assert results(Nothing) == [type(None)]
    assert results(Anything) == [A, B, type(None)]


def test_a_result_that_is_no_output_is_refused() -> None:
    class W(Methods, Workflow[A, S, A, B]): ...

    assert "has B as its result, which is not one of its outputs" in problem(W)


def test_a_result_that_is_no_class_is_refused() -> None:
    class W(Methods, Workflow[A, S, A, A | list[int]]): ...

    assert "has list[int] among its results, which is not a class of its own" in problem(W)


def test_a_result_passes_through_generic_bases() -> None:
    I = TypeVar("I", bound=Message)  # noqa: E741  as an author might
    O = TypeVar("O", bound=Message)  # noqa: E741

    class Rules(Methods, Workflow[I, S, O, B], Generic[I, O]): ...

    class Leaf(Rules[A, A | B]): ...

    class Open(Methods, Workflow[I, S, O], Generic[I, O]): ...

    class OpenLeaf(Open[A, B]): ...

    assert definition_of(Leaf).results == (B,)
    assert definition_of(OpenLeaf).results == (B, type(None))


def test_the_state_returning_style_may_declare_its_result_too() -> None:
    class W(Methods, StateReturningWorkflow[A, S, A | B, B]): ...

    class Open(Methods, StateReturningWorkflow[A, S, B]): ...

    assert definition_of(W).results == (B,)
    assert definition_of(Open).results == (B, type(None))


def test_an_unbound_type_variable_is_named() -> None:
    class W(Methods, Workflow[T, S, A]): ...  # pyright: ignore[reportInvalidTypeArguments]  any type

    assert "has ~T among its inputs" in problem(W)


@pytest.mark.parametrize("parameter", [list[A], Literal["x"], Any, None, object])
def test_what_is_no_class_of_its_own_is_named(parameter: Any) -> None:
    class W(Methods, Workflow[parameter, S, A]): ...

    assert "among its inputs, which is not a class of its own" in problem(W)


def test_a_quoted_name_that_nobody_knows_is_named() -> None:
    class W(Methods, Workflow["Nowhere", S, A]): ...  # pyright: ignore[reportUndefinedVariable]

    assert "names 'Nowhere' among its inputs, and name 'Nowhere' is not defined" in problem(W)


@pytest.mark.parametrize(
    ("thawed", "fix"),
    [
        (Thawed, "@dataclass(frozen=True)"),
        (ThawedStruct, "class ThawedStruct(Struct, frozen=True)"),
        (ThawedModel, "model_config = ConfigDict(frozen=True)"),
    ],
)
def test_a_message_that_can_be_changed_is_refused(thawed: Any, fix: str) -> None:
    class W(Methods, Workflow[thawed, S, A]): ...

    assert problem(W) == f"W uses {thawed.__name__}, which can be changed. Freeze it: `{fix}`."


def test_a_state_that_can_be_changed_is_refused() -> None:
    class W(Methods, Workflow[A, dict, B]):  # pyright: ignore[reportMissingTypeArgument]
        initial_state: Any = {}  # noqa: RUF012  the mistake itself

    assert "uses dict, which can be changed" in problem(W)


def test_a_message_without_fields_of_its_own_is_refused() -> None:
    class W(Methods, Workflow[str, S, A]): ...  # pyright: ignore[reportInvalidTypeArguments]  the mistake itself

    assert "has str among its messages, which is not a record with fields" in problem(W)


@pytest.mark.parametrize("method", ["route", "decide", "evolve"])
def test_a_missing_method_is_named_with_its_signature(method: str) -> None:
    given = {name: value for name, value in vars(Methods).items() if name != method and not name.startswith("__")}
    cls = types.new_class("W", (Workflow[A, S, B],), exec_body=lambda namespace: namespace.update(given))

    assert f"W has no {method} method. Add `def {method}(self, " in problem(cls)


def test_an_async_decide_is_refused() -> None:
    class W(Methods, Workflow[A, S, B]):
        async def decide(self, message: A, state: S) -> Any: ...

    assert "has an async decide. Make it a plain function" in problem(W)


def test_a_decide_that_yields_is_refused() -> None:
    class W(Methods, Workflow[A, S, B]):
        def decide(self, message: A, state: S) -> Any:
            yield

    assert "has a decide that yields. Return the whole" in problem(W)


def test_a_decide_without_a_state_is_refused() -> None:
    class W(Methods, Workflow[A, S, B]):
        def decide(self, message: A) -> Any: ...

    assert "has a decide with other parameters than it is called with. Write `def decide(self, message" in problem(W)


def test_a_route_or_an_evolve_of_another_shape_is_refused() -> None:
    class Router(Methods, Workflow[A, S, B]):
        def route(self) -> Any: ...

    class Evolver(Methods, Workflow[A, S, B]):
        def evolve(self, state: S) -> Any: ...

    assert "has a route with other parameters" in problem(Router)
    assert "has a evolve with other parameters" in problem(Evolver)


def test_a_decide_that_misses_an_input_is_refused() -> None:
    class W(Methods, Workflow[A | B, S, A]):
        begins = A

        def decide(self, message: A, state: S) -> Any: ...

    assert "takes A, B as inputs, but its decide does not take B" in problem(W)


def test_an_envelope_that_misses_an_input_is_refused() -> None:
    class W(Methods, Workflow[A | B, S, A]):
        begins = A

        def decide(self, envelope: Envelope[A], state: S) -> Any: ...

    assert "its decide does not take B" in problem(W)


@pytest.mark.parametrize("annotation", ["Envelope[Hidden]", "mainspring.Envelope[Hidden]"])
def test_an_envelope_whose_message_is_imported_for_type_checkers_only_is_recognised(annotation: str) -> None:
    class W(Methods, Workflow[A, S, B]):
        def decide(self, envelope: Any, state: S) -> Any: ...

    W.decide.__annotations__["envelope"] = annotation

    assert definition_of(W).wants_envelope


def test_an_envelope_is_recognised_behind_an_annotation_and_beside_what_cannot_be_read() -> None:
    class W(Methods, Workflow[A, S, B]):
        def decide(self, envelope: Any, state: S) -> Any: ...

    class Other(Methods, Workflow[A, S, B]):
        def decide(self, envelope: Any, state: S) -> Any: ...

    W.decide.__annotations__["envelope"] = Annotated[Envelope[A], "with its context"]
    Other.decide.__annotations__ |= {"envelope": "Envelope[A]", "return": "Nowhere"}

    assert definition_of(W).wants_envelope
    assert definition_of(Other).wants_envelope


@pytest.mark.parametrize(
    "annotation", [Occurrence, Occurrence[Any], "Occurrence[Hidden]", Annotated[Occurrence[A], ""]]
)
def test_an_evolve_that_asks_for_the_place_of_its_events_is_recognised(annotation: Any) -> None:
    class Bare(Methods, Workflow[A, S, A]): ...

    class Asks(Methods, Workflow[A, S, A]):
        def evolve(self, state: S, event: Any) -> Any: ...

    Asks.evolve.__annotations__["event"] = annotation

    assert not definition_of(Bare).wants_occurrences
    assert definition_of(Asks).wants_occurrences
    assert not definition_of(Asks).decides_on_occurrences


def test_a_style_gets_the_place_of_its_input_where_it_asks_for_that_of_its_events_too() -> None:
    class Decides(Methods, Workflow[A, S, A]):
        def decide_on(self, asked: Occurrence[Any], state: S) -> Any: ...

    class Both(Decides):
        def evolve(self, state: S, event: Occurrence[Any]) -> Any: ...  # type: ignore[override]

    assert not definition_of(Decides).decides_on_occurrences
    assert definition_of(Both).decides_on_occurrences


NEW_SYNTAX = """
type Both = A | B
type One[T] = T | B
type Trigger = Envelope[Both]
type Lost = A | Nowhere
type Round = A | Round

class Aliased(Methods, Workflow[Both, S, One[A]]):
    begins = A
    def decide(self, envelope: Trigger, state: S): ...

class Missing(Methods, Workflow[Lost, S, A]): ...
class Endless(Methods, Workflow[Round, S, A]): ...
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement came with Python 3.12")
def test_aliases_of_the_type_statement_are_read() -> None:
    namespace = dict(globals())
    exec(NEW_SYNTAX, namespace)  # noqa: S102  older interpreters cannot even parse it

    definition = definition_of(namespace["Aliased"])
    assert (list(definition.inputs), list(definition.outputs)) == ([A, B], [A, B])
    assert definition.wants_envelope
    assert "in which name 'Nowhere' is not defined" in problem(namespace["Missing"])
    assert "which is not a class of its own" in problem(namespace["Endless"])


def test_a_missing_initial_state_is_named() -> None:
    class W(Methods, Workflow[A, S, B]):
        initial_state = None

    assert problem(W) == "W has no initial state. Add `initial_state = S(…)` to the class."


def test_an_initial_state_of_another_type_is_refused() -> None:
    class W(Methods, Workflow[A, S, B]):
        initial_state = A("1")

    assert "begins in A(id='1'), which is not one of its states: S" in problem(W)


def test_several_inputs_need_a_declared_beginning() -> None:
    class W(Methods, Workflow[A | B, S, A]): ...

    assert "does not say which of them may begin an instance. Add `begins = A` to the class." in problem(W)


def test_a_beginning_that_is_no_input_is_refused() -> None:
    class W(Methods, Workflow[A | B, S, A]):
        begins = S

    assert "begins with S, which is not one of its inputs: A, B" in problem(W)


def test_what_comes_from_outside_and_is_no_input_is_refused() -> None:
    class W(Methods, Workflow[A | B, S, A]):
        begins = A
        from_outside = A | S

    assert "takes from outside S, which is not one of its inputs: A, B. Let `from_outside` be" in problem(W)


@pytest.mark.parametrize("bad", ["a/b", "", "two words", "x" * (NAME_CHARACTERS + 1), "new\nline"])
def test_a_name_that_cannot_stand_in_an_id_is_refused(bad: str) -> None:
    cls = type("W", (orders.OrderFulfilment,), {"name": bad})
    if bad == "":
        assert definition_of(cls).name == "W"
    else:
        assert "Use " in problem(cls)


@pytest.mark.parametrize("bad", [0, "1", True])
def test_a_version_that_is_no_positive_number_is_refused(bad: Any) -> None:
    assert "has version" in problem(type("W", (orders.OrderFulfilment,), {"version": bad}))


def test_another_unknown_transition_is_refused() -> None:
    assert 'Use "fail" or "ignore"' in problem(type("W", (orders.OrderFulfilment,), {"unknown_transition": "shrug"}))


def test_two_types_with_one_stored_name_are_refused() -> None:
    twin = make_dataclass("A", [("id", str)], frozen=True)

    class W(Methods, Workflow[A, S, twin]): ...

    assert "has two types that are both stored as 'A'" in problem(W)


def test_a_name_of_its_own_keeps_twins_apart() -> None:
    twin = message(name="other.A")(make_dataclass("A", [("id", str)], frozen=True))

    class W(Methods, Workflow[A, S, twin]): ...

    assert list(definition_of(W).outputs.values()) == ["other.A"]


def test_upcasters_must_cover_every_older_version() -> None:
    with pytest.raises(DefinitionError, match="is at version 3 and has 1 upcasters"):
        message(version=3, upcasters=[lambda body: body])(A)


@pytest.mark.parametrize("bad", [timedelta(0), -timedelta(days=1), 30, "2d"])
def test_an_expectation_that_makes_no_sense_is_refused(bad: Any) -> None:
    assert "has expected_within" in problem(type("W", (orders.OrderFulfilment,), {"expected_within": bad}))


@pytest.mark.parametrize("bad", [0, -1, True, "often", 2.5])
def test_a_number_of_events_that_makes_no_sense_is_refused(bad: Any) -> None:
    assert "has snapshot_every" in problem(type("W", (orders.OrderFulfilment,), {"snapshot_every": bad}))


def test_what_only_a_style_changes_is_left_as_it_is() -> None:
    class W(Methods, Workflow[A, S, B]): ...

    word, result = A("1"), B("1")
    assert W().meaning_of(word, S()) is word
    assert W().result_of(result) is result
