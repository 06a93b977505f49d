"""Which inputs answer a workflow's tasks is read from its code; what cannot be read is said to be so."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Never, TypeAlias, Union

import pytest

import mainspring as ms
import tests.unit.purity.asked_far
from mainspring import Ask, Workflow
from mainspring import Ask as Question
from mainspring.purity.task_answers import VALUES_LOOKED_AT, answers_in
from tests.unit import purity
from tests.unit.purity import asked_elsewhere
from tests.unit.purity.asked_elsewhere import Desk, ask_for_a, ask_plainly


@dataclass(frozen=True)
class Begin:
    id: str


@dataclass(frozen=True)
class A:
    id: str


@dataclass(frozen=True)
class B:
    id: str


@dataclass(frozen=True)
class C:
    id: str


@dataclass(frozen=True)
class Nowhere:
    def asked(self) -> Ask[Any]:
        return Ask("by a state", C, role="manager")


Input: TypeAlias = Begin | A | B | C
EITHER = A | B
PAIR = (A, B)
WORDS: Any = {"answer": A, "role": "manager"}


class Asking(Workflow[Input, Nowhere, Never]):
    """Everything but decide."""

    begins = Begin
    initial_state = Nowhere()
    answers = A | B

    def route(self, message: Input) -> str | None:
        return message.id

    def evolve(self, state: Nowhere, event: Any) -> Nowhere | None:
        return None


class Quiet(Workflow[Input, int, Never]):
    """Without a state that asks."""

    begins = Begin
    initial_state = 0
    answers = A | B

    def route(self, message: Input) -> str | None:
        return message.id

    def evolve(self, state: int, event: Any) -> int | None:
        match event:
            case ms.Asked():
                return 1
            case Ask():  # never: it is no event; but it is only compared with
                return 2
            case _:
                return 0 if isinstance(event, Ask) else None


def asked_nearby(title: str) -> Ask[Any]:
    return Ask(title, A, role="manager")


def literally(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", A | B, role="manager")]


def by_word(self: Any, message: Any, state: Any) -> Any:
    return [ms.Ask(title="one", answer=Union[A, B], role="manager")]  # noqa: UP007  as some write it


def by_another_name(self: Any, message: Any, state: Any) -> Any:
    return [Question[Any]("one", A, role="manager")]


def of_the_module(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", EITHER, role="manager")]


def as_a_tuple(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", PAIR, role="manager")]


def of_the_class(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", self.answers, role="manager")]


def by_a_variable(self: Any, message: Any, state: Any) -> Any:
    answer = A | B
    if state:
        answer = B
    return [Ask("one", answer, role="manager")]


def by_a_condition(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", A if state else B, role="manager")]


def by_a_helper(self: Any, message: Any, state: Any) -> Any:
    return [asked_nearby("one")]


def by_a_helper_elsewhere(self: Any, message: Any, state: Any) -> Any:
    return [ask_for_a("one")]


def by_a_module(self: Any, message: Any, state: Any) -> Any:
    return [asked_elsewhere.ask_for_a("one")]


def by_a_class(self: Any, message: Any, state: Any) -> Any:
    return [Desk.ask("one")]


class Counter:
    def question(self) -> Ask[Any]:
        return Ask("one", A, role="manager")


COUNTER = Counter()


def by_an_object(self: Any, message: Any, state: Any) -> Any:
    return [COUNTER.question()]


@cache
def remembered() -> Ask[Any]:
    return Ask("one", A, role="manager")


def by_a_wrapped_one(self: Any, message: Any, state: Any) -> Any:
    return [remembered()]


class Proxy:
    """Stands for something that is not there: whoever asks it anything is told so by an error."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


PROXY: Any = Proxy()


def beside_a_proxy(self: Any, message: Any, state: Any) -> Any:
    return [Ask(PROXY.title, A, role="manager")]


def inside(self: Any, message: Any, state: Any) -> Any:
    def ask(title: str) -> Any:
        return Ask(title, A, role="manager")

    return [ask("one")]


def twice(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", A, role="manager", key="1"), *[Ask(text, B, role="clerk", key=text) for text in "23"]]


PACKAGE: Any = purity
QUESTION = Ask("one", A | B, role="manager")
QUESTIONS = {"first": [(QUESTION,)]}
ASKERS = {"first": [asked_nearby]}
ASKS_FOR_A = partial(asked_nearby, "one")


def by_a_constant(self: Any, message: Any, state: Any) -> Any:
    return [QUESTION]


def by_constants(self: Any, message: Any, state: Any) -> Any:
    return [*QUESTIONS["first"][0]]


def by_a_default(self: Any, message: Any, state: Any, question: Any = QUESTION) -> Any:
    return [question]


def by_a_default_of_a_keyword(self: Any, message: Any, state: Any, *, question: Any = QUESTION) -> Any:
    return [question]


def by_a_default_inside(self: Any, message: Any, state: Any) -> Any:
    def ask(question: Any = Ask("two", B, role="manager")) -> Any:  # noqa: B008  as is tried here
        return question

    return [Ask("one", A, role="manager"), ask()]


def by_a_table_of_functions(self: Any, message: Any, state: Any) -> Any:
    return [ASKERS["first"][0]("one")]


def by_a_partial_of_a_helper(self: Any, message: Any, state: Any) -> Any:
    return [ASKS_FOR_A()]


def around(question: Ask[Any]) -> Callable[..., Any]:
    return lambda *_: [question]


by_a_closure = around(QUESTION)
by_a_closure.__name__ = "by_a_closure"


def by_a_submodule(self: Any, message: Any, state: Any) -> Any:
    return [PACKAGE.asked_far.ask_far("one")]


def by_a_package(self: Any, message: Any, state: Any) -> Any:
    return [tests.unit.purity.asked_far.ask_far("one")]


def by_an_import(self: Any, message: Any, state: Any) -> Any:
    from tests.unit.purity.asked_far import ask_far  # noqa: PLC0415  as is tried here

    return [ask_far("one")]


def by_an_import_of_a_package(self: Any, message: Any, state: Any) -> Any:
    import tests.unit.purity.asked_far  # noqa: PLC0415  as is tried here

    return [tests.unit.purity.asked_far.ask_far("one")]


def by_an_import_from_nearby(self: Any, message: Any, state: Any) -> Any:
    from .asked_far import ask_far  # noqa: PLC0415  as is tried here

    return [ask_far("one")]


class Holder:
    """Has what it asks at hand."""

    question = QUESTION


class Bearer:
    """Is given what it asks."""

    def __init__(self, ask: Any) -> None:
        self.ask = ask


class Inherited(Counter):
    """Asks as the class above it does."""


BEARER = Bearer(asked_nearby)


def by_an_attribute_of_a_class(self: Any, message: Any, state: Any) -> Any:
    return [Holder.question]


def by_an_attribute_of_an_object(self: Any, message: Any, state: Any) -> Any:
    return [BEARER.ask("one")]


def by_a_class_above(self: Any, message: Any, state: Any) -> Any:
    return [Inherited().question()]


def nothing(self: Any, message: Any, state: Any) -> Any:
    return []


READ = {
    literally: "AB",
    by_word: "AB",
    by_another_name: "A",
    of_the_module: "AB",
    as_a_tuple: "AB",
    of_the_class: "AB",
    by_a_variable: "AB",
    by_a_condition: "AB",
    by_a_helper: "A",
    by_a_helper_elsewhere: "A",
    by_a_module: "A",
    by_a_class: "A",
    by_an_object: "A",
    by_a_wrapped_one: "A",
    beside_a_proxy: "A",
    inside: "A",
    twice: "AB",
    by_a_constant: "AB",
    by_constants: "AB",
    by_a_default: "AB",
    by_a_default_of_a_keyword: "AB",
    by_a_default_inside: "AB",
    by_a_table_of_functions: "A",
    by_a_partial_of_a_helper: "A",
    by_a_closure: "AB",
    by_a_submodule: "A",
    by_a_package: "A",
    by_an_import: "A",
    by_an_import_of_a_package: "A",
    by_an_import_from_nearby: "A",
    by_an_attribute_of_a_class: "AB",
    by_an_attribute_of_an_object: "A",
    by_a_class_above: "A",
    nothing: "",
}


def read(decide: Callable[..., Any], base: type[Workflow[Any, Any, Any]] = Quiet, **attributes: Any) -> str:
    made: Any = type("Made", (base,), {"decide": decide, "__module__": __name__, **attributes})
    found = answers_in(made)
    return "unread" if found is None else "".join(sorted(answer.__name__ for answer in found))


@pytest.mark.parametrize("decide", READ, ids=lambda decide: decide.__name__)
def test_what_answers_is_read_as_it_is_written(decide: Callable[..., Any]) -> None:
    assert read(decide) == READ[decide]


def by_a_parameter(self: Any, message: Any, state: Any) -> Any:
    return [ask_plainly("one", A)]


def passed_on(self: Any, message: Any, state: Any) -> Any:
    return [partial(Ask, "one")(A, role="manager")]


ASK = partial(Ask, "one", role="manager")


def by_a_partial(self: Any, message: Any, state: Any) -> Any:
    return [ASK(A)]


def from_a_message(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", type(message), role="manager")]


def starred(self: Any, message: Any, state: Any) -> Any:
    return [Ask(*("one", A), role="manager")]


def by_words(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", **WORDS)]


def stepwise(self: Any, message: Any, state: Any) -> Any:
    return [Ask("one", answer, role="manager") for answer in (A, B)]


MAKERS = {"first": Ask}
MANY: Any = [[] for _ in range(VALUES_LOOKED_AT)]


class Review(Ask[Any], frozen=True):
    """A kind of its own."""


def by_a_table_of_classes(self: Any, message: Any, state: Any) -> Any:
    return [MAKERS["first"]("one", A, role="manager")]


def by_a_default_class(self: Any, message: Any, state: Any, make: Any = Ask) -> Any:
    return [make("one", A, role="manager")]


def by_a_kind_of_its_own(self: Any, message: Any, state: Any) -> Any:
    return [Review("one", A, role="manager")]


def by_a_module_that_is_not_there_yet(self: Any, message: Any, state: Any) -> Any:
    from tests.unit.purity import asked_later  # noqa: PLC0415  # pyright: ignore[reportAttributeAccessIssue]

    later: Any = asked_later  # pyright: ignore[reportUnknownVariableType]
    return [later.ask_for_a("one")]


def among_too_many(self: Any, message: Any, state: Any) -> Any:
    return MANY


UNREAD = [
    by_a_parameter,
    passed_on,
    by_a_partial,
    from_a_message,
    starred,
    by_words,
    stepwise,
    by_a_table_of_classes,
    by_a_default_class,
    by_a_kind_of_its_own,
    by_a_module_that_is_not_there_yet,
    among_too_many,
]


@pytest.mark.parametrize("decide", UNREAD)
def test_where_it_cannot_be_read_that_is_told(decide: Callable[..., Any]) -> None:
    assert read(decide) == "unread"


def test_without_a_source_it_cannot_be_read() -> None:
    space = {"Ask": Ask, "A": A}
    exec("def decide(self, message, state):\n    return [Ask('one', A, role='manager')]", space)  # noqa: S102
    quiet: Any = space["decide"]
    assert read(quiet) == "unread"


@pytest.mark.parametrize(
    "held",
    [QUESTION, [QUESTION], {"first": QUESTION}, BEARER, Holder, ASKS_FOR_A, asked_nearby, staticmethod(asked_nearby)],
)
def test_what_a_class_holds_counts_too(held: Any) -> None:
    assert read(lambda self, *_: [self.held], held=held) in {"A", "AB"}


def test_a_module_that_a_class_holds_counts_too() -> None:
    assert read(lambda self, *_: [self.held], held=asked_elsewhere) == "unread"


def test_a_class_that_was_read_is_not_kept() -> None:
    made: Any = type("Made", (Quiet,), {"decide": literally, "__module__": __name__})
    assert answers_in(made) == {A, B}
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def test_what_a_state_asks_counts_too() -> None:
    assert read(nothing, Asking) == "C"


def test_a_lambda_may_be_any_on_its_line() -> None:
    asks = [lambda *_: Ask("one", A, role="manager"), lambda *_: Ask("two", B, role="manager")]
    assert [read(decide) for decide in asks] == ["unread", "unread"]
