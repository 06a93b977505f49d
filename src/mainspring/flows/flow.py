"""A flow: an async function as a workflow, and a Workflow like any other. Its state is the journal of what happened."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar, Final, Generic, Never, TypeAlias, TypeVar, Union, cast, get_type_hints

from msgspec import Struct, defstruct

from mainspring.core.decisions import Decision, FanOut, Schedule, Send, StartChild
from mainspring.core.events import Asked as TaskAsked
from mainspring.core.events import Became, InitiatedBy, Occurrence, Received, Scheduled
from mainspring.core.failures import ChildCompleted, ChildFailed, DeadlinePassed, SendFailed
from mainspring.core.freezing import field_names, frozen_fix
from mainspring.core.messages import Message, message, type_of
from mainspring.core.type_parameters import union_members
from mainspring.core.workflow import Workflow
from mainspring.errors import DefinitionError, DriftError, FlowError, shown
from mainspring.flows import live, scenario_words
from mainspring.flows.asked import Place
from mainspring.flows.calls import Call, Result, Step, answer_of, place_of_caller
from mainspring.flows.code import Code, Drift
from mainspring.flows.declared import Declared, declared_in
from mainspring.flows.journal import Journal, log_of
from mainspring.flows.messages import Entered, TimerDue
from mainspring.flows.run import Run
from mainspring.logs import logger

M = TypeVar("M", bound=Message)
R_co = TypeVar("R_co", covariant=True)
Id: TypeAlias = str | Callable[[Any], str | None] | None

ENTRIES_MOST: Final = 100_000
"""Of a journal. A flow that goes on for longer begins again, with `again(…)`."""
STAGE: Final = "Running"
OPTIONS: Final = ("again", "expected_within", "late_events", "mode", "retention", "steps_per_hour")
"""What a decorator says of a flow that a class statement says of other workflows."""

_OF_THE_ENGINE: Final = (SendFailed, ChildCompleted, ChildFailed, DeadlinePassed, TimerDue)

_log = logger("mainspring.flows")


class Flow(Workflow[Any, Journal, Any, R_co], Generic[M, R_co]):
    """What `@app.flow` makes of an async function. Called, it is a child of the flow that awaits it."""

    snapshot_every = None  # the state is the journal: the code is run again on it
    initial_state = Journal()

    function: Callable[[Any], Any]
    takes: type[Any]
    """The type of its argument, which begins an instance."""
    drift: ClassVar[Drift] = "refuse"
    """What becomes of an instance whose journal is not what the code asks for: `refuse`, it is suspended, and the error
    says where; `adopt`, what the code does not ask for any more is passed over, and what it asks for anew is sent."""

    # What `settle` finds.
    answer_types: frozenset[type[Any]] = frozenset()
    again_type: type[Any]
    receives: frozenset[type[Any]] = frozenset()
    asks: frozenset[type[Any]] = frozenset()
    """What answers the tasks that its code shows."""
    _outputs: frozenset[type[Any]] = frozenset()

    def __init__(self) -> None:
        self._resisting_noted = False

    @classmethod
    def own_type_parameters(cls) -> tuple[Any, Any, Any, Any]:
        """Read the code, when it is first needed: then all that it names is defined."""
        return settle(cls)

    def __call__(self, argument: M, /) -> Call[R_co]:
        return Call(
            self.name or "",
            argument,
            answer_of(self.name or "", ()),
            place_of_caller(),
            kind=StartChild,
            plain=lambda: self.function(argument),
        )

    # ---- what a workflow is asked

    def route(self, message: Any, /) -> str | None:
        if type(message) in _OF_THE_ENGINE or type(message) in self.answer_types:
            return None  # what answers comes back by itself, whatever its fields are called
        given: Any = self._id
        found: Any = given(message) if callable(given) else getattr(message, given, None)  # pyright: ignore[reportUnknownVariableType]
        return found

    def decide(self, message: Any, state: Journal, /) -> Any:
        """Not called: a flow decides by running its code."""
        raise NotImplementedError

    def decide_on(self, asked: Occurrence[Received[Any]], state: Journal, /) -> list[Decision[Any, Any]] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return decided(self, asked, state, Run.decide)

    def evolve(self, state: Journal, event: Occurrence[Any], /) -> Journal | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        happened: Any = event.event
        kind = cast("type[Any]", type(happened))
        if kind is Became:
            if type(happened.state) is Entered:
                # A stage whose name the code does not have any more is passed over: stages are no drift.
                return state.at_stage(self._stages.get(happened.state.stage, type(state)))
            return self._begun_again(state, event)
        if kind is Scheduled and happened.at is not None:
            return None  # set anew by an operator's reset, for when it was due: code says how long, never until when
        if kind is TaskAsked and (place := state.asked_at(event)) is not None:
            return state.replaced(place, event)
        after = state.appended(event)
        if kind is InitiatedBy:
            self._keep(happened.message, after)
        return after

    def result_of(self, result: Any, /) -> Any:
        return result.carried if isinstance(result, Result) else result

    def meaning_of(self, word: Any, state: Journal, /) -> Any:
        return scenario_words.meaning_of(cast("Code", self), word, state)

    def word_for(self, decision: Any, /) -> Any:
        return scenario_words.word_for(cast("Code", self), decision)

    def state_named(self, word: Any, state: Journal, /) -> Any:
        return state if word == type_of(type(state)).name else word

    # ---- what a run asks

    def drift_of(self, state: Journal) -> DriftError | None:
        """Return how the code differs from what is recorded, if its next input would be refused for that."""
        if not state.recorded:
            return None
        try:
            run = run_of(self, state)
        except DriftError as drift:
            return drift
        drift = run.drift
        run.close()
        return drift

    def completed(self, result: Any) -> Any:
        """Return the message that carries a result."""
        results = results_of(type(self))
        carrier: Any = results[0]
        if len(results) == 1 and issubclass(carrier, Result):
            return _made(carrier, result)
        if type(result) not in results:
            raise FlowError(
                f"{self.name} returned {shown(result, 200)}, which is not what it says it returns",
                f"Return {' or '.join(each.__name__ for each in results)}, or correct its annotation.",
            )
        return result

    def can_answer(self, message: Any, decision: Decision[Any, Any]) -> bool:
        """Return True if a message may be the answer to what was sent; only tests do not say to what."""
        if isinstance(decision, FanOut):
            return type(message) is decision.into and getattr(message, "key", "") in ("", decision.join_key)
        sent: Any = getattr(decision, "message", None)
        if isinstance(message, SendFailed):
            return isinstance(decision, Send) and type_of(_class_of(sent)).name == message.type
        step = self.step_of(_class_of(sent))
        if step is None:
            return isinstance(decision, StartChild)
        return type(message) is step.done

    def answers_named(self, names: Sequence[str]) -> list[type[Any]] | None:
        """Return the types of its inputs that have these names; None if one has not."""
        types = {type_of(cls).name: cls for cls in self._inputs}
        return [types[name] for name in names] if all(name in types for name in names) else None

    def step_of(self, command: type[Any]) -> Step[Any, Any] | None:
        """Return the step whose commands are of a type."""
        return self._steps.get(command)

    def check_asked(self, decision: Decision[Any, Any]) -> None:
        """Refuse what is not among its outputs."""
        if type(decision) is Send and decision.compensate is None and type(decision.message) in self._outputs:
            return  # by far the most of them
        carried = [getattr(decision, "message", None), getattr(decision, "compensate", None)]
        for cls in (_class_of(each) for each in carried if each is not None and not isinstance(decision, Schedule)):
            if cls in self._outputs:
                continue
            name = cls.__name__
            raise FlowError(
                f"{self.name} sends {name}, and its code does not show that",
                f"Declare it: @app.flow(steps=({name},)) if it is a step, else @app.flow(sends=({name},)).",
            )

    def check_received(self, types: Sequence[type[Any]]) -> None:
        """Refuse to wait for what is not among its inputs."""
        for cls in types:
            if cls not in self._inputs:
                raise FlowError(
                    f"{self.name} receives {getattr(cls, '__name__', shown(cls, 80))}, and its code does not show that",
                    f"Declare it: @app.flow(receives=({getattr(cls, '__name__', '…')},)).",
                )

    def check_answers(self, types: Sequence[type[Any]]) -> None:
        """Refuse to ask a person for what anyone may send past the task."""
        allowed = self._declared_by.get("from_outside", ())
        for cls in types:
            if cls in _members(type(self).from_outside) and cls not in allowed:
                raise FlowError(
                    f"{self.name} asks for {cls.__name__}, which it also takes from outside, past the task",
                    f"Write the type out, as in ask(…, {cls.__name__}, …); or, if all who may send may decide, say "
                    f"@app.flow(from_outside=({cls.__name__},)).",
                )

    def check_stage(self, name: str) -> None:
        """Refuse a stage that cannot be known before it comes."""
        if name not in self._stages:
            raise FlowError(
                f"{self.name} came to the stage {shown(name, 80)}, and its code does not show that",
                'Write the name out, as in stage("paid"), or declare it: @app.flow(stages=(…,)).',
            )

    def seed_of(self, argument: Any) -> str:
        """Return what makes an instance's random numbers its own: the id, under which there is no other."""
        return f"{self.name}/{self.route(argument)}"

    def line_of(self, task: Any) -> str:
        """Return the author's line at which a task waits."""
        frames: list[Any] = [] if task is None else task.get_stack()
        if not frames:
            return self.function.__qualname__
        frame = frames[-1]
        return str(Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname))

    def note_resisting(self, tasks: Sequence[str]) -> None:
        """Say once that code of this flow does not end when it is put away."""
        if not self._resisting_noted:
            self._resisting_noted = True
            _log.warning(
                "%s: code in a finally block awaits again each time it is ended (%s). It is left; do not await there.",
                self.name,
                ", ".join(tasks),
            )

    # ---- how it came about

    _id: Any
    _declared_by: Mapping[str, Any]
    _stages: Mapping[str, type[Journal]]
    _steps: Mapping[type[Any], Step[Any, Any]]
    _inputs: frozenset[type[Any]]

    def _keep(self, by: Any, after: Journal) -> None:
        """Keep the run that has just begun with the journal that has just begun."""
        log = log_of(after)
        if log is not None:
            live.put_with_begun(by, log, after.recorded - 1)

    def _begun_again(self, state: Journal, event: Occurrence[Any]) -> Journal:
        unread = set(event.event.state.unread)
        after: Any = type(state)()
        for entry in state.entries:
            if entry.position in unread:
                after = after.appended(entry)
        after = after.appended(event)
        self._keep(event.event.state, after)
        return after


def run_of(flow: Flow[Any, Any], state: Journal) -> Run:
    """Return a run of a flow's code on a journal, which waits where the instance waits."""
    stage = type_of(type(state)).name
    run = Run(cast("Code", flow), None if stage == STAGE else stage)
    try:
        run.replay(state.entries)
    except BaseException:
        run.close()
        raise
    return run


def decided(
    flow: Flow[Any, Any],
    asked: Occurrence[Received[Any]],
    state: Journal,
    decide: Callable[[Run, Occurrence[Any]], list[Decision[Any, Any]]],
) -> list[Decision[Any, Any]] | None:
    """Return what a flow decides about an input. `decide` is called with the run that waits, and with the input."""
    if type(asked.event.message) is DeadlinePassed:
        return None
    if state.recorded > ENTRIES_MOST:
        raise FlowError(
            f"{flow.name} has {state.recorded:,} entries in its journal; {ENTRIES_MOST:,} is the most",
            "Call again(…) now and then: it begins anew in the same stream.",
        )
    run = live.taken(state, flow.function)
    if run is None:
        run = run_of(flow, state)
    try:
        decisions = decide(run, asked)
    except BaseException:
        run.close()
        raise
    _put_away(run, asked, state)
    return decisions


def _put_away(run: Run, asked: Occurrence[Any], state: Journal) -> None:
    """Keep a run for the next input, if it waits for one. Where that is kept, evolve says."""
    if run.following is not None:
        live.begun(*run.following)
    log = log_of(state)
    if run.ended:
        run.close()
    elif log is None:
        live.begun(asked.event.message, run)
    else:
        live.put_back(log, run, state.recorded)


def flow_of(workflow: object) -> Flow[Any, Any] | None:
    """Return a workflow that is a flow; None for any other."""
    return cast("Flow[Any, Any]", workflow) if isinstance(workflow, Flow) else None


def make_flow(function: Callable[..., Any], name: str | None, **given: Any) -> Flow[Any, Any]:
    """Make a workflow of an async function. What it sends and receives is read when that is first asked for."""
    title = name or function.__name__
    if not inspect.iscoroutinefunction(function):
        raise DefinitionError(title, "is a flow and not async", f"Write `async def {title}(…)`.")
    takes = _argument_of(function, title)
    running = _stage_type(STAGE)
    cls: Any = type(
        title,
        (Flow,),
        {
            "__module__": function.__module__,
            "__qualname__": function.__qualname__,
            "__doc__": function.__doc__,
            "function": staticmethod(function),
            "takes": takes,
            "begins": takes,
            "name": title,
            "version": given["version"],
            "drift": given["drift"],
            "deadline": given["deadline"],
            "initial_state": running(),
            "again_type": _again_type(takes),
            "_id": _checked_id(title, takes, given["id"]),
            "_declared_by": given,
            "_stages": {STAGE: running},
            **{option: given[option] for option in OPTIONS if option in given},
            **_attributes_by(given.get("attributes")),
        },
    )
    return cls()


def _attributes_by(given: Callable[[Any], Any] | None) -> dict[str, Any]:
    """Return the method that says by what a flow's instances are found, where its decorator has a function for it."""
    if given is None:
        return {}

    def attributes(_: Any, state: Journal, /) -> Any:
        argument = state.argument
        return {} if argument is None else given(argument)

    return {"attributes": attributes}


def settle(cls: Any) -> tuple[Any, Any, Any, Any]:
    """Read what a flow sends, receives and calls its stages, and return its type parameters."""
    given = cls._declared_by
    found: Declared = declared_in(cls.function, lambda value: isinstance(value, Flow))
    steps = [*found.steps, *given["steps"]]
    children = [result for flow in found.flows for result in results_of(type(flow))]
    receives = dict.fromkeys((*found.receives, *found.asks, *given["receives"]))
    cls.asks = frozenset(found.asks)
    answers = (*found.answers, *children)
    internal = (*(each for step in steps for each in (step.done, step.all_done)), *_OF_THE_ENGINE)
    cls._steps = {step.command: step for step in steps}
    cls.answer_types = frozenset((*internal, *(each for each in children if issubclass(each, Result))))
    deadline = (DeadlinePassed,) if cls.deadline is not None else ()
    heard = [each for each in (*internal, *answers) if each not in (type(None), DeadlinePassed)]
    inputs = dict.fromkeys((cls.takes, *receives, *heard, *deadline))
    cls._inputs = frozenset(inputs)
    cls.receives = frozenset(receives)
    # What answers a task is taken from the task alone, which knows who may answer it, unless the author says otherwise.
    outside = (each for each in receives if each not in found.asks)
    cls.from_outside = tuple(dict.fromkeys((cls.takes, *outside, *given.get("from_outside", ()))))
    for stage in dict.fromkeys((*found.stages, *given["stages"])):
        cls._stages.setdefault(stage, _stage_type(stage))
    results = results_of(cls)
    sent = (*(step.command for step in steps), *(flow.takes for flow in found.flows), *found.sends, *given["sends"])
    outputs = [each for each in dict.fromkeys((*sent, *results)) if each is not type(None)]
    cls._outputs = frozenset(outputs)
    states = (*cls._stages.values(), Entered, cls.again_type)
    return _union(inputs), _union(states), _union(outputs) if outputs else Never, _union(results)


def results_of(cls: Any) -> tuple[type[Any], ...]:
    """Return the types of a flow's results: messages and None as they are, anything else in a message of its own."""
    kept = cls.__dict__.get("_results")
    if kept is None:
        kept = cls._results = _results(cls)
    return kept


_carriers: Final[dict[tuple[str, str], tuple[Any, type[Any]]]] = {}


def _results(cls: Any) -> tuple[type[Any], ...]:
    hints = _hints_of(cls.function, cls.name)
    if "return" not in hints:
        raise DefinitionError(
            cls.name, "does not say what it returns", "Annotate it, as in `-> Receipt` or `-> None`: it is stored."
        )
    returns = hints["return"]
    members = union_members(returns)
    if all(each is type(None) or each is None or _is_record(each) for each in members):
        return tuple(type(None) if each is None else each for each in members)
    # Versions of a flow that return the same share its type: what is stored is read back by either.
    kept = _carriers.get((cls.__module__, cls.name))
    if kept is not None and kept[0] == returns:
        return (kept[1],)
    fields = [("value", returns)]
    carrier = defstruct(f"{cls.name}.result", fields, bases=(Result,), frozen=True, module=cls.__module__)
    _carriers[cls.__module__, cls.name] = (returns, carrier)
    return (carrier,)


def _argument_of(function: Callable[..., Any], title: str) -> type[Any]:
    parameters = list(inspect.signature(function).parameters.values())
    hint: Any = _hints_of(function, title).get(parameters[0].name) if len(parameters) == 1 else None
    if not _is_record(hint):
        raise DefinitionError(
            title,
            "does not take one message",
            f"Give it one parameter, a frozen dataclass say: `async def {title}(order: PlaceOrder)`.",
        )
    fix = frozen_fix(hint)
    if fix is not None:
        raise DefinitionError(title, f"takes {hint.__name__}, which can be changed", f"Freeze it: `{fix}`.")
    return cast("type[Any]", hint)


def _hints_of(function: Callable[..., Any], title: str) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError as error:
        raise DefinitionError(
            title, f"has annotations that cannot be read: {error}", "Import the names at run time."
        ) from None


def _checked_id(title: str, takes: type[Any], given: Any) -> Any:
    if callable(given):
        return staticmethod(given)
    fields = list(field_names(takes))
    if given is None and fields:
        return fields[0]
    if given not in fields:
        raise DefinitionError(
            title,
            f"finds its instances by {shown(given, 80)}, which is no field of {takes.__name__}",
            'Name one, as in id="order_id", or give a function of a message, id=lambda order: ….',
        )
    return given


def _stage_type(name: str) -> type[Journal]:
    made: Any = type(name if name.isidentifier() else "Stage", (Journal,), {"__module__": Journal.__module__})
    return message(name=name)(dataclass(frozen=True, eq=False, repr=False)(made))


def _again_type(takes: type[Any]) -> type[Any]:
    fields = [("argument", takes), ("unread", tuple[int, ...], ()), ("times", int, 0)]
    again = defstruct("BeganAgain", fields, frozen=True)
    return message(name="mainspring.BeganAgain")(again)


def _made(carrier: Any, result: Any) -> Any:
    return carrier(result)


def _members(types: Any) -> tuple[type[Any], ...]:
    return cast("tuple[type[Any], ...]", types) if isinstance(types, tuple) else ()


def _class_of(thing: Any) -> type[Any]:
    return cast("type[Any]", type(thing))


def _is_record(hint: Any) -> bool:
    if not isinstance(hint, type):
        return False
    cls: type[Any] = hint
    return is_dataclass(cls) or issubclass(cls, Struct) or hasattr(cls, "model_fields")


def _union(members: Iterable[Any]) -> Any:
    return Union[tuple(members)]  # noqa: UP007  made of as many as there are
