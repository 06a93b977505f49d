"""Property fuzzing: random orders of messages, duplicates, early and late timers; the shortest story that breaks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mainspring.core.definition import definition_of
from mainspring.core.messages import Envelope, In, Out
from mainspring.core.story import table, tell
from mainspring.core.workflow import State, Workflow
from mainspring.errors import names, shown
from mainspring.flows.flow import Flow
from mainspring.flows.journal import Journal
from mainspring.testing.causes import cause_of
from mainspring.testing.orders import Draw, Failure, Move, Property, Rules, Run, shortest
from mainspring.testing.rehearsal import check_workflow

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


MAX_EXAMPLES: Final = 200
MAX_STEPS: Final = 30
SEEDS: Final = 2**32


class FuzzFailure(AssertionError):  # noqa: N818  it is a failed test, not an error of the kit
    """A workflow broke a property; the text is the shortest story found. `property` and `messages` say it again.

    >>> issubclass(FuzzFailure, AssertionError)
    True
    """

    def __init__(self, workflow: str, failure: Failure, *, repeatable: bool, seed: int) -> None:
        self.property = failure.property
        self.messages = [attempt.message for attempt in failure.attempts]
        self.seed = seed
        super().__init__(_story(workflow, failure, repeatable=repeatable, seed=seed))


class Fuzzed(Struct, frozen=True):
    """Statistics of a fuzzing run. `unseen_states` are those that no order reached: a hint at missing messages."""

    runs: int
    steps: int
    refused: int
    ended: int
    unseen_states: tuple[str, ...]


def fuzz(
    workflow: Workflow[In, State, Out],
    messages: Sequence[In | Envelope[In] | SearchStrategy[Any]],
    *,
    answers: Mapping[type[Any], Callable[[Any], Any]] | None = None,
    properties: Sequence[Property] = (),
    max_examples: int = MAX_EXAMPLES,
    max_steps: int = MAX_STEPS,
    seed: int | None = 0,
    fail_on_unknown: bool = False,
    duplicates: bool = True,
    late_timers: bool = True,
    raises: type[Exception] | tuple[type[Exception], ...] = (),
) -> Fuzzed:
    """Step an instance through random orders of messages; raise FuzzFailure with the shortest that breaks a property.

    `messages` are example messages or hypothesis strategies for them, of one instance; where the actor matters, put
    them into an `envelope`. `answers` maps a type of output to a function from the output to what its handler would
    answer: a message, a strategy, a list of them, or None. Timers that the workflow scheduled fire at any time, also
    after they were cancelled (not with `late_timers=False`), and messages come twice (not with `duplicates=False`). A
    message that the workflow refuses is skipped and another one tried in its place, unless `fail_on_unknown`. Messages
    without a route come as results do: past route, to the instance that has begun.

    These always hold: route, decide and evolve are pure and deterministic and change neither their arguments nor the
    workflow; a replay of the stream gives the same state; nothing follows the end; no other error is raised, but for
    those that decide `raises` on purpose, which refuse their message; evolve and route may raise none. Your own
    `properties` are called with the Rehearsal after every step: return False or fail an assertion.

    The same orders are tried every time; `seed=None` tries others. Needs hypothesis: `mainspring[testing]`.

    >>> from mainspring.testing.samples import Count, Counter
    >>> fuzz(Counter(), [Count("c-1")], max_examples=20).unseen_states
    ()
    """
    __tracebackhide__ = True
    check_workflow(workflow, "fuzz")
    search = _search()
    expected = raises if isinstance(raises, tuple) else (raises,)
    if not all(isinstance(error, type) and issubclass(error, Exception) for error in expected):
        raise TypeError(f"fuzz() got raises={shown(raises, 200)}. Give it classes of errors: raises=(OutOfStock,).")
    rules = Rules(answers or {}, tuple(properties), fail_on_unknown, duplicates, late_timers, expected)
    tally = _Tally(workflow, rules)
    chosen = random.randrange(SEEDS) if seed is None else seed  # noqa: S311  no secret
    found = search(
        tally.play,
        _checked(messages),
        answers=bool(rules.answers),
        max_examples=max_examples,
        max_steps=max_steps,
        seed=chosen,
    )
    if found is not None:
        failure, repeatable = found
        if repeatable:
            failure = shortest(failure, lambda: Run(workflow, rules, draw=lambda answer: answer))
        story = FuzzFailure(type(workflow).__name__, failure, repeatable=repeatable, seed=chosen)
        raise story from cause_of(failure.cause)
    return tally.result()


class _Tally:
    """Plays runs and counts what they saw."""

    def __init__(self, workflow: Workflow[Any, Any, Any], rules: Rules) -> None:
        self._workflow = workflow
        self._rules = rules
        self._states: set[type[Any]] = set()
        self._runs = self._steps = self._refused = self._ended = 0

    def play(self, openings: Sequence[Any], moves: Sequence[Move], draw: Draw) -> Failure | None:
        run = Run(self._workflow, self._rules, draw)
        failure = run.play(openings, moves)
        refused = sum(bool(attempt.refused) for attempt in run.attempts)
        self._states |= run.states
        self._runs += 1
        self._steps += len(run.attempts) - refused
        self._refused += refused
        self._ended += run.rehearsal.end is not None
        return failure

    def result(self) -> Fuzzed:
        definition = definition_of(type(self._workflow))
        if not self._steps:
            raise ValueError(
                f"fuzz() got no message that {definition.name} would begin with, so nothing was tried: "
                f"it begins with {names(definition.begins)}. Add one to `messages`, of the instance's own id."
            )
        stages = isinstance(self._workflow, Flow)  # what else a flow becomes only says so in its stream
        unseen = tuple(
            name
            for state, name in definition.states.items()
            if state not in self._states and (not stages or issubclass(state, Journal))
        )
        return Fuzzed(self._runs, self._steps, self._refused, self._ended, unseen)


def _checked(messages: Sequence[Any]) -> Sequence[Any]:
    if isinstance(messages, str) or not isinstance(messages, Sequence) or not messages:
        raise TypeError(
            "fuzz() needs a list of messages or of hypothesis strategies: fuzz(workflow, [PlaceOrder(...)])."
        )
    for message in messages:
        if isinstance(message, type):
            raise TypeError(
                f"{message.__name__} is a class. Give fuzz() a message, {message.__name__}(...), "
                f"or a strategy, st.builds({message.__name__})."
            )
    return messages


def _search() -> Callable[..., tuple[Failure, bool] | None]:
    try:
        from mainspring.testing.search import search  # noqa: PLC0415  hypothesis is an extra
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise ModuleNotFoundError(
            "fuzz() needs hypothesis, which is not installed. Install it with: pip install 'mainspring[testing]'",
            name="hypothesis",
        ) from error
    return search


def _story(workflow: str, failure: Failure, *, repeatable: bool, seed: int) -> str:
    lines = [f"{workflow} breaks a property: {failure.property}", ""]
    lines += [f"{number:>3}. {attempt}" for number, attempt in enumerate(failure.attempts, 1)]
    if failure.rehearsal.entries:
        lines += ["", table(tell(failure.rehearsal.entries))]
    lines += ["", failure.how]
    if not repeatable:
        lines += ["", "The same messages did not fail again: something besides message and state takes part."]
    if seed:
        lines += ["", f"Found with seed={seed}."]
    return "\n".join(lines)
