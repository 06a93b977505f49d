"""A flow as a state machine: its stages, and what it awaits in them, read from its code. Nothing of it is run.

The code is gone through as it is written: both branches of every `if`, every `except` that what is awaited may raise. A
point is where the code may be; what it asks for is noted there, until it awaits the next thing.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, Final, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from mainspring.analysis.reading.model import Ends, Output, Place, Transition
from mainspring.analysis.reading.records import class_of_value
from mainspring.core.definition import definition_of
from mainspring.core.failures import ChildCompleted, SendFailed
from mainspring.core.messages import type_of
from mainspring.flows import ends, words
from mainspring.flows.calls import Step
from mainspring.flows.ends import Failure, StepFailed, Undo
from mainspring.flows.flow import STAGE, Flow, flow_of, results_of
from mainspring.flows.messages import TimerDue
from mainspring.purity.names import MISSING, Names
from mainspring.sources import source_of

DEPTH: Final = 10
"""How deep functions that are awaited are followed."""
POINTS_MOST: Final = 500

_TIMER: Final = type_of(TimerDue).name
_SLEEPS: Final = frozenset({"sleep", "wait_for", "timeout", "timeout_at"})


class _Point(Struct, frozen=True):
    """Where the code may be: the stage, and the message that let it go on there, in the stage in which it came."""

    stage: str
    source: str
    message: str
    begins: bool = False
    outputs: tuple[Output, ...] = ()


_Raised = tuple[tuple[type[BaseException], ...], _Point]


class _Awaited(Struct):
    """What an expression asks for, and what can come back."""

    outputs: list[Output]
    messages: dict[str, None]
    raises: dict[type[BaseException], str]
    followed: list[Any]


class _Left(Struct):
    """How statements are left."""

    next: dict[_Point, None]
    returned: dict[_Point, None]
    broken: dict[_Point, None]
    continued: dict[_Point, None]
    raised: dict[_Raised, None]

    def take(self, other: _Left) -> None:
        self.returned |= other.returned
        self.broken |= other.broken
        self.continued |= other.continued
        self.raised |= other.raised


def _left(points: Iterable[_Point] = ()) -> _Left:
    return _Left(dict.fromkeys(points), {}, {}, {}, {})


def read_flow(flow: Flow[Any, Any]) -> list[Transition]:
    """Return the transitions of a flow, as far as its code tells."""
    reader = _Reader(flow)
    begun = _Point(STAGE, STAGE, type_of(flow.takes).name, begins=True)
    reader.begin({begun: None})
    return list(reader.found)


class _Reader:
    def __init__(self, flow: Flow[Any, Any]) -> None:
        self.found: dict[Transition, None] = {}
        self._flow = flow
        self._definition = definition_of(type(flow))
        self._begun: set[_Point] = set()
        self._functions: list[FunctionType] = []
        self._names: list[Names] = []
        self._offsets: list[int] = []
        self._above: list[dict[ast.AST, ast.AST]] = []
        self._timeouts = 0
        self._tasks: list[_Awaited] = [_Awaited([], {}, {}, [])]

    def begin(self, points: dict[_Point, None]) -> None:
        """Read the whole, from the beginning."""
        points = {point: None for point in points if point not in self._begun}
        if not points or len(self._begun) > POINTS_MOST:
            return
        self._begun.update(points)
        left = self._function(cast("FunctionType", inspect.unwrap(self._flow.function)), points)
        results = [name for cls in self._definition.results if (name := self._definition.outputs.get(cls))]
        done = Output("Complete", results[0] if len(results) == 1 else None)
        for point in self._noted(left.next | left.returned, [done]):
            self._close(point, "completed")
        for classes, point in left.raised:
            if any(issubclass(cls, Failure | Undo | StepFailed) for cls in classes):
                ends_by = Output("Fail" if issubclass(classes[0], Failure) else "Compensate")
                self._close(next(iter(self._noted({point: None}, [ends_by]))), "failed")

    def _close(self, point: _Point, ended: Ends | None = None, place: Place | None = None) -> None:
        self.found[
            Transition(
                point.source,
                point.message,
                point.stage,
                outputs=point.outputs,
                ends=ended,
                begins=point.begins,
                decided=place,
            )
        ] = None

    # ---- functions and statements

    def _function(self, function: FunctionType, points: dict[_Point, None]) -> _Left:
        source = source_of(function)
        if source is None or isinstance(source[0], ast.Lambda):
            return _left(points)
        self._functions.append(function)
        self._names.append(Names(function, source[0]))
        self._offsets.append(source[1])
        self._above.append({child: node for node in ast.walk(source[0]) for child in ast.iter_child_nodes(node)})
        left = self._run(source[0].body, points)
        for kept in (self._functions, self._names, self._offsets, self._above):
            kept.pop()
        return left

    def _run(self, body: Sequence[ast.stmt], points: dict[_Point, None]) -> _Left:
        whole = _left(points)
        for node in body:
            if not whole.next:
                break
            one = self._statement(node, whole.next)
            whole.next = one.next
            whole.take(one)
        return whole

    def _statement(self, node: ast.stmt, points: dict[_Point, None]) -> _Left:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                return self._after(test, points, lambda now: self._either([body, orelse], now))
            case ast.Match(subject=subject, cases=cases):
                bodies = [case.body for case in cases]
                return self._after(subject, points, lambda now: self._either([*bodies, []], now))
            case ast.While(test=test, body=body, orelse=orelse):
                for_ever = isinstance(test, ast.Constant) and bool(test.value)
                return self._after(test, points, lambda now: self._loop(body, orelse, now, for_ever=for_ever))
            case ast.For(iter=over, body=body, orelse=orelse) | ast.AsyncFor(iter=over, body=body, orelse=orelse):
                return self._after(over, points, lambda now: self._loop(body, orelse, now))
            case ast.With() | ast.AsyncWith():
                return self._with(node, points)
            case ast.Try() | ast.TryStar():
                return self._try(node, points)
            case ast.Return(value=value):
                return self._after(value, points, lambda now: _Left({}, now, {}, {}, {}))
            case ast.Raise(exc=error):
                return self._after(error, points, lambda now: self._raise(error, now))
            case ast.Break():
                return _Left({}, {}, points, {}, {})
            case ast.Continue():
                return _Left({}, {}, {}, points, {})
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return _left(points)
            case _:
                return self._after(node, points, _left)

    def _after(
        self, node: ast.AST | None, points: dict[_Point, None], then: Callable[[dict[_Point, None]], _Left]
    ) -> _Left:
        """Read what an expression does, and go on."""
        first = _left(points) if node is None else self._expression(node, points)
        second = then(first.next) if first.next else _left()
        second.take(first)
        return second

    def _either(self, bodies: Sequence[Sequence[ast.stmt]], points: dict[_Point, None]) -> _Left:
        whole = _left()
        for body in bodies:
            one = self._run(body, points)
            whole.next |= one.next
            whole.take(one)
        return whole

    def _loop(
        self,
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
        points: dict[_Point, None],
        *,
        for_ever: bool = False,
    ) -> _Left:
        whole, seen, ready = _left(), dict(points), points
        while ready and len(seen) < POINTS_MOST:
            one = self._run(body, ready)
            ready = {point: None for point in (*one.next, *one.continued) if point not in seen}
            seen |= ready
            whole.next |= one.broken
            one.broken, one.continued = {}, {}
            whole.take(one)
        if not for_ever:
            last = self._run(orelse, seen)
            whole.next |= last.next
            whole.take(last)
        return whole

    def _with(self, node: ast.With | ast.AsyncWith, points: dict[_Point, None]) -> _Left:
        timeouts = 0
        group: _Awaited | None = None
        for item in node.items:
            name = self._asyncio(item.context_expr)
            timeouts += name in _SLEEPS
            if name == "TaskGroup":
                group = _Awaited([], {}, {}, [])
        if group is not None:
            self._tasks.append(group)
        self._timeouts += timeouts
        left = _left(points)
        for item in node.items:
            one = self._expression(item.context_expr, left.next)
            left.next = one.next
            left.take(one)
        body = self._run(node.body, left.next)
        body.take(left)
        if group is not None:
            self._tasks.pop()
            waited = self._await(group, body.next, node)
            body.next = waited.next
            body.take(waited)
        self._timeouts -= timeouts
        return body

    def _try(self, node: ast.Try | ast.TryStar, points: dict[_Point, None]) -> _Left:
        whole = self._run(node.body, points)
        raised, whole.raised = whole.raised, {}
        for classes, point in raised:
            left = classes
            for handler in node.handlers:
                caught = self._caught(handler.type)
                if any(issubclass(cls, caught) for cls in left):
                    one = self._run(handler.body, {point: None})
                    whole.next |= one.next
                    whole.take(one)
                left = tuple(cls for cls in left if not issubclass(cls, caught))
            if left:
                whole.raised[left, point] = None
        for body in (node.orelse, node.finalbody):
            one = self._run(body, whole.next)
            whole.next = one.next
            whole.take(one)
        return whole

    def _caught(self, node: ast.expr | None) -> tuple[type[BaseException], ...]:
        nodes = [] if node is None else node.elts if isinstance(node, ast.Tuple) else [node]
        values = [self._value(each) for each in nodes]
        return tuple(value for value in values if isinstance(value, type)) if nodes else (BaseException,)

    def _raise(self, error: ast.expr | None, points: dict[_Point, None]) -> _Left:
        named = error.func if isinstance(error, ast.Call) else error
        value = MISSING if named is None else self._value(named)
        cls: Any = value if isinstance(value, type) else StepFailed
        return _Left({}, {}, {}, {}, {((cls,), point): None for point in points})

    # ---- expressions

    def _expression(self, node: ast.AST, points: dict[_Point, None]) -> _Left:
        """Read what an expression asks for and awaits, in the order of the source."""
        whole = _left(points)
        for each in _in_order(node):
            if not whole.next:
                break
            if isinstance(each, ast.Await):
                one = self._await(self._asked(each.value), whole.next, each)
                whole.next = one.next
                whole.take(one)
            elif isinstance(each, ast.Call):
                whole.next = self._called(each, whole.next)
        return whole

    def _called(self, node: ast.Call, points: dict[_Point, None]) -> dict[_Point, None]:
        """Read a call that is not awaited: a word that waits for nothing, or the start of a task."""
        word = self._value(node.func)
        if word is words.stage and node.args and isinstance(node.args[0], ast.Constant):
            return {replace(point, stage=str(node.args[0].value)): None for point in points}
        if word is words.publish or word is words.reply:
            name = self._message(node.args[0] if node.args else None)
            return self._noted(points, [Output("Publish" if word is words.publish else "Reply", name)])
        if word is ends.again:
            self.begin(points)
            return {}
        starts = isinstance(node.func, ast.Attribute) and node.func.attr == "create_task"
        if starts or self._asyncio(node) in ("create_task", "ensure_future", "timeout"):
            asked = self._asked(node)
            outputs, asked.outputs = asked.outputs, []
            kept = self._tasks[-1]
            kept.messages |= asked.messages if self._asyncio(node) != "timeout" else {}
            kept.raises |= asked.raises
            kept.followed += asked.followed
            return self._noted(points, outputs)
        return points

    def _noted(self, points: dict[_Point, None], outputs: list[Output]) -> dict[_Point, None]:
        return {replace(point, outputs=tuple(dict.fromkeys((*point.outputs, *outputs)))): None for point in points}

    def _await(self, asked: _Awaited, points: dict[_Point, None], node: ast.AST) -> _Left:
        """Wait: what led here is over, and each thing that may come leads on."""
        points = self._noted(points, asked.outputs)
        left = _left(points)
        for function in asked.followed:
            if function not in self._functions and len(self._functions) < DEPTH:
                one = self._function(function, left.next)
                left.next = one.next | one.returned
                left.raised |= one.raised
        if not asked.messages:
            return left
        place = self._place(node)
        after = _left()
        after.take(left)
        for point in left.next:
            self._close(point, place=place)
            for message in asked.messages:
                after.next[_Point(point.stage, point.stage, message)] = None
            raises = asked.raises | ({TimeoutError: _TIMER} if self._timeouts else {})
            by_message: dict[str, tuple[type[BaseException], ...]] = {}
            for cls, message in raises.items():
                by_message[message] = (*by_message.get(message, ()), cls)
            for message, classes in by_message.items():
                after.raised[classes, _Point(point.stage, point.stage, message)] = None
        return after

    def _asked(self, node: ast.expr) -> _Awaited:
        """Return what an expression asks for, whatever it is wrapped in: gather, wait_for, undone_by."""
        found = _Awaited([], {}, {}, [])
        undoing: set[ast.AST] = set()
        many = any(self._value(each.func) is words.each for each in ast.walk(node) if isinstance(each, ast.Call))
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "undone_by":
                undoing.update(inner for argument in each.args for inner in ast.walk(argument))
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and each not in undoing:
                self._ask(each, found, many=many)
            elif isinstance(each, ast.Name) and not isinstance(node, ast.Call):
                self._await_tasks(found)
        return found

    def _await_tasks(self, found: _Awaited) -> None:
        """A name that is awaited may be any task that was started."""
        for tasks in self._tasks:
            found.messages |= tasks.messages
            found.raises |= tasks.raises

    def _ask(self, node: ast.Call, found: _Awaited, *, many: bool) -> None:
        word = self._value(node.func)
        first = node.args[0] if node.args else None
        timed = self._asyncio(node)
        if isinstance(word, Step):
            self._ask_step(cast("Step[Any, Any]", word), node, found, many=many)
        elif (flow := flow_of(word)) is not None:
            found.outputs.append(Output("StartChild", type_of(flow.takes).name, place=self._place(node)))
            kinds = [cls for cls in results_of(class_of_value(flow)) if cls is not type(None)]
            found.messages |= dict.fromkeys(type_of(cls).name for cls in kinds or [ChildCompleted])
            found.raises[StepFailed] = "mainspring.ChildFailed"
        elif word is words.call or word is words.child:
            name, starts = self._message(first), word is words.child
            found.outputs.append(Output("StartChild" if starts else "Send", name, place=self._place(node)))
            answers = [type_of(cls).name for cls in self._types(node.args[1:2])]
            found.messages |= dict.fromkeys(answers or [f"answer to {name}"])
            found.raises[StepFailed] = "mainspring.ChildFailed" if starts else type_of(SendFailed).name
        elif word is words.receive:
            found.messages |= dict.fromkeys(type_of(cls).name for cls in self._types(node.args))
        elif word is words.ask:
            answers = tuple(type_of(cls).name for cls in self._types(node.args[1:2]))
            key = answers[0] if answers else None
            found.outputs.append(Output("Ask", key, answers, key=key, place=self._place(node)))
            found.messages |= dict.fromkeys(answers)
        elif timed in _SLEEPS:
            found.outputs.append(Output("Schedule", _TIMER, (_TIMER,), timers=1, place=self._place(node)))
            if timed == "sleep":
                found.messages[_TIMER] = None
            else:
                found.raises[TimeoutError] = _TIMER
        elif inspect.iscoroutinefunction(word) and isinstance(word, FunctionType) and self._is_near(word):
            found.followed.append(word)

    def _ask_step(self, step: Step[Any, Any], node: ast.Call, found: _Awaited, *, many: bool) -> None:
        name, place = type_of(step.command).name, self._place(node)
        if many:
            joined = type_of(step.all_done).name
            found.outputs.append(Output("FanOut", name, (joined,), repeated=True, place=place))
            found.messages[joined] = None
            return
        found.outputs.append(Output("Send", name, compensate=self._undone_by(node), place=place))
        found.messages[type_of(step.done).name] = None
        found.raises |= dict.fromkeys((StepFailed, *step.raises), type_of(SendFailed).name)

    def _undone_by(self, node: ast.Call) -> str | None:
        parent = self._parents().get(node)
        if not isinstance(parent, ast.Attribute) or parent.attr != "undone_by":
            return None
        call = self._parents().get(parent)
        by = call.args[0] if isinstance(call, ast.Call) and call.args else None
        step = self._value(by.func) if isinstance(by, ast.Call) else None
        return type_of(step.command).name if isinstance(step, Step) else None

    def _parents(self) -> dict[ast.AST, ast.AST]:
        return self._above[-1]

    # ---- what names stand for

    def _value(self, node: ast.expr) -> Any:
        return self._names[-1].value(node)

    def _asyncio(self, node: ast.AST) -> str:
        """Return the name of a call of asyncio's, "" for any other."""
        value: Any = self._value(node.func) if isinstance(node, ast.Call) else MISSING
        module = str(getattr(value, "__module__", ""))
        return str(value.__name__) if value is not MISSING and module.partition(".")[0] == "asyncio" else ""

    def _message(self, node: ast.expr | None) -> str | None:
        cls = self._value(node.func) if isinstance(node, ast.Call) else None
        return type_of(cls).name if isinstance(cls, type) else None

    def _types(self, nodes: Iterable[ast.expr]) -> list[type[Any]]:
        found: list[type[Any]] = []
        for node in nodes:
            if isinstance(node, ast.BinOp):
                found += self._types([node.left, node.right])
            elif isinstance(node, ast.Tuple):
                found += self._types(node.elts)
            else:
                value = self._value(node)
                found += [each for each in get_args(value) or (value,) if isinstance(each, type)]
        return found

    def _is_near(self, function: FunctionType) -> bool:
        return function.__module__.partition(".")[0] == self._flow.function.__module__.partition(".")[0]

    def _place(self, node: ast.AST) -> Place:
        return Place(self._functions[-1].__code__.co_filename, getattr(node, "lineno", 1) + self._offsets[-1])


def _in_order(node: ast.AST) -> Iterable[ast.AST]:
    """Yield the calls and awaits of an expression, inner ones first; what is awaited is its await's alone."""
    if isinstance(node, ast.Await):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda):
            yield from _in_order(child)
    if isinstance(node, ast.Call):
        yield node
