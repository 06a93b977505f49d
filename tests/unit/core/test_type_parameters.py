"""The three type parameters are found through bases, unions and aliases; what cannot be read is named."""

# The classes here are wrong on purpose, and are never run: what matters is what the error says.
# pyright: reportInvalidTypeForm=false, reportUnusedClass=false
import types
from typing import Any, Generic, NoReturn, TypeVar, Union

import pytest
from typing_extensions import TypeAliasType

from mainspring import Workflow
from mainspring.core.definition import definition_of
from mainspring.core.type_parameters import ALIASES_IN_A_ROW, unwrapped
from tests.unit.core.test_definition import A, B, Methods, S, problem

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
Both = TypeAliasType("Both", A | B)
Nothing = TypeAliasType("Nothing", None)
Either = TypeAliasType("Either", T | U | S, type_params=(T, U))
Round = TypeAliasType("Round", Union[A, "Round"])  # pyright: ignore[reportGeneralTypeIssues]  the mistake itself


def workflow_of(inputs: Any) -> type[Any]:
    class W(Methods, Workflow[inputs, S, B]):
        begins = A

    return W


def test_a_union_in_its_older_spelling_is_read_as_one() -> None:
    class W(Methods, Workflow[Union[A, B], S, A]):  # noqa: UP007  the older one is another object
        begins = Union[A, B]  # noqa: UP007

        def decide(self, message: Union[A, B], state: S) -> Any: ...  # noqa: UP007

    assert (list(definition_of(W).inputs), definition_of(W).begins) == ([A, B], {A, B})


def test_an_alias_is_read_as_what_it_stands_for() -> None:
    assert list(definition_of(workflow_of(Both)).inputs) == [A, B]


def test_an_alias_of_none_is_a_result_that_is_none() -> None:
    class W(Methods, Workflow[A, S, B, Nothing]): ...

    assert definition_of(W).results == (type(None),)


def test_a_generic_alias_is_read_with_what_it_is_given() -> None:
    class W(Methods, Workflow[Either[A, B], S, B]):
        begins = Either[A, B]

    assert (list(definition_of(W).inputs), definition_of(W).begins) == ([A, B, S], {A, B, S})


def test_a_generic_alias_that_is_given_too_few_types_is_refused() -> None:
    class W(Methods, Workflow[Either[A], S, B]):  # pyright: ignore[reportInvalidTypeArguments]  the mistake itself
        begins = A

    assert "has ~U among its inputs, which is not a class of its own" in problem(W)


def test_too_few_types_for_a_generic_base_are_refused_and_none_is_filled_in() -> None:
    class Rules(Methods, Workflow[T, S, U], Generic[T, U, V]): ...  # pyright: ignore[reportInvalidTypeArguments]

    for generic, given in ((Workflow, A), (Rules, (A, B))):
        with pytest.raises(TypeError, match="Too few arguments"):
            generic[given]  # type: ignore[index]


def nested(levels: int) -> Any:
    hint: Any = B
    for _ in range(levels):
        hint = TypeAliasType("Nested", A | hint)  # pyright: ignore[reportGeneralTypeIssues]
    return hint


def test_unions_within_unions_are_read_as_far_as_anybody_nests_them() -> None:
    assert list(definition_of(workflow_of(nested(ALIASES_IN_A_ROW))).inputs) == [A, B]
    assert "which is not a class of its own" in problem(workflow_of(nested(ALIASES_IN_A_ROW + 1)))


def test_an_alias_that_leads_to_itself_is_refused() -> None:
    assert "which is not a class of its own" in problem(workflow_of(Round))
    endless = types.SimpleNamespace()
    endless.__value__ = endless
    assert unwrapped(endless) is endless


def test_an_alias_in_which_a_name_is_unknown_is_named() -> None:
    class Lost:
        """As the type statement has it: what it stands for is looked up late."""

        def __call__(self) -> None: ...

        @property
        def __value__(self) -> Any:
            raise NameError("name 'Nowhere' is not defined")

    assert "has an alias among its inputs in which name 'Nowhere' is not defined" in problem(workflow_of(Lost()))


def test_what_is_no_class_is_named_with_the_role_it_has() -> None:
    class States(Methods, Workflow[A, list[S], B]): ...

    class Outputs(Methods, Workflow[A, S, list[B]]): ...  # pyright: ignore[reportInvalidTypeArguments]  as above

    assert "among its states, which is not a class of its own" in problem(States)
    assert "among its outputs, which is not a class of its own" in problem(Outputs)


def test_no_return_means_none_as_never_does() -> None:
    class W(Methods, Workflow[A, S, NoReturn]): ...

    assert definition_of(W).outputs == {}


def test_a_generic_base_that_is_no_workflow_is_passed_over() -> None:
    class Mixin(Generic[T]): ...

    class W(Mixin[int], Methods, Workflow[A, S, B]): ...

    assert list(definition_of(W).inputs) == [A]


def test_a_plain_base_that_is_no_workflow_is_passed_over() -> None:
    class Mixin: ...

    class Parent(Methods, Workflow[A, S, B]): ...

    class W(Mixin, Parent): ...

    assert list(definition_of(W).inputs) == [A]


def test_a_base_that_says_nothing_of_its_types_is_named_with_the_line_to_write() -> None:
    class Bare(Methods, Workflow): ...

    class Generic1(Methods, Workflow, Generic[T]): ...

    class W(Bare): ...

    class Given(Generic1[A]): ...

    for cls in (W, Given):
        assert "does not say what its inputs, states and outputs are" in problem(cls)


@pytest.mark.parametrize("value", [int, None, "text"])
def test_what_is_no_alias_stands_for_itself(value: object) -> None:
    assert unwrapped(value) is value
