"""Reads a workflow's route, decide and evolve, and what they call nearby, without running any of it."""

from __future__ import annotations

import ast
import inspect
from collections import deque
from collections.abc import Iterator
from dataclasses import MISSING as NO_FACTORY
from dataclasses import fields, is_dataclass
from types import FunctionType, MethodType
from typing import Any, Final, cast

from msgspec import Struct

from mainspring.core.definition import definition_of
from mainspring.core.workflow import Workflow
from mainspring.flows.flow import Flow
from mainspring.purity.names import MISSING, InstanceOf, Names, rule_of_value
from mainspring.purity.owners import Owner, Owners
from mainspring.purity.reader import Reader, Report, free_names
from mainspring.purity.rules import FIXES, FLOW_FIXES, Rule
from mainspring.purity.sets import Sets, set_fields_among
from mainspring.sources import source_of

METHODS: Final = ("route", "decide", "evolve", "decide_on", "attributes")
FUNCTIONS_READ: Final = 500

_OUTSIDE: Final = frozenset(
    {"run", "Runner", "new_event_loop", "set_event_loop", "to_thread", "run_coroutine_threadsafe", "start_server"}
    | {"open_connection", "open_unix_connection", "start_unix_server"}
    | {"create_subprocess_exec", "create_subprocess_shell"}
)
"""Of asyncio, what a flow cannot call."""
_CONSTRUCTORS: Final = ("__new__", "__init__", "__post_init__")


class Finding(Struct, frozen=True, order=True):
    """One impure place: where it is, which rule it breaks, and what to do instead.

    >>> print(Finding("orders.py", 12, "Orders.decide", "clock", "calls datetime.now", "Take it from the message."))
    orders.py:12: Orders.decide calls datetime.now (clock). Take it from the message.
    """

    file: str
    line: int
    where: str
    rule: Rule
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.where} {self.what} ({self.rule}). {self.fix}"


def check_purity(workflow: Workflow[Any, Any, Any] | type[Workflow[Any, Any, Any]]) -> list[Finding]:
    """Return what is impure in a workflow's route, decide and evolve and in the functions near them that they call.

    Near is the same module or package. An empty list means that nothing was found, not that nothing is there: the
    run-time guard sees what hides behind other libraries.

    >>> from mainspring.testing.samples import Counter
    >>> check_purity(Counter)
    []
    """
    cls = workflow if isinstance(workflow, type) else type(workflow)
    if issubclass(cls, Flow):
        return _check_flow(cast("type[Flow[Any, Any]]", cls))
    reading = _Reading(cls, workflow)
    for name in METHODS:
        for base in cls.__mro__[: cls.__mro__.index(Workflow)]:
            method = vars(base).get(name)
            if isinstance(method, FunctionType):
                reading.add(method, workflow, _all_foreign(method))
    return reading.findings()


def _check_flow(cls: type[Flow[Any, Any]]) -> list[Finding]:
    """Return what is impure in a flow's function and those near it: asyncio's own part is what a flow is made of."""
    reading = _FlowReading(cls, cls)
    function = inspect.unwrap(cls.function)
    reading.add(function, MISSING, _all_parameters_foreign(function))
    given = cls.__dict__.get("_id")
    if isinstance(given, staticmethod) and isinstance(given.__func__, FunctionType):
        reading.add(given.__func__, MISSING, _all_parameters_foreign(given.__func__))
    return reading.findings()


class _Task(Struct, frozen=True):
    """A function to read, and whose values its parameters hold."""

    # A function as a field's type would be taken for a method.
    function: Any
    self_value: Any
    owners: frozenset[tuple[str, Owner]]

    @property
    def key(self) -> tuple[Any, ...]:
        return self.function, id(self.self_value), self.owners


class _Reading:
    """Reads functions until all that are reached have been read."""

    fixes = FIXES

    def __init__(self, cls: type[Workflow[Any, Any, Any]], workflow: object) -> None:
        self._workflow = workflow
        self._home = cls.__module__
        self._package = cls.__module__.rpartition(".")[0]
        definition = definition_of(cls)
        self._data = (*definition.inputs, *definition.states, *definition.outputs)
        self._set_fields = set_fields_among(self._data)
        self._tasks: deque[_Task] = deque()
        self._seen: set[tuple[Any, ...]] = set()
        self._found: set[Finding] = set()

    def add(self, function: Any, self_value: Any, owners: frozenset[tuple[str, Owner]]) -> None:
        """Add a function to the list, once for each way to call it."""
        task = _Task(inspect.unwrap(function), self_value, owners)
        if isinstance(task.function, FunctionType) and task.key not in self._seen and len(self._seen) < FUNCTIONS_READ:
            self._seen.add(task.key)
            self._tasks.append(task)

    def findings(self) -> list[Finding]:
        """Read everything on the list, which grows meanwhile, and return the findings in order."""
        while self._tasks:
            self._read(self._tasks.popleft())
        return sorted(self._found)

    def _read(self, task: _Task) -> None:
        function: FunctionType = task.function
        source = source_of(function)
        if source is None:
            self._note(function, function.__code__.co_firstlineno, "source", "has no source that could be read")
            return
        tree, offset = source

        def report(rule: Rule, node: ast.AST, what: str) -> None:
            self._note(function, getattr(node, "lineno", 1) + offset, rule, what)

        names = Names(function, tree, task.self_value)
        owners = Owners(dict(task.owners), Sets(self._set_fields))
        Reader(names, owners, report, self._follow, free_names(function)).read(tree)
        self._look_at(tree, names, report)

    def _look_at(self, tree: ast.AST, names: Names, report: Report) -> None:
        """Look at what only some workflows have."""

    def _note(self, function: FunctionType, line: int, rule: Rule, what: str) -> None:
        where = function.__qualname__.rpartition("<locals>.")[2]
        self._found.add(Finding(function.__code__.co_filename, line, where, rule, what, self.fixes[rule]))

    def _follow(self, node: ast.expr, call: ast.Call | None, reader: Reader) -> None:
        """Add to the list what a call, or a property behind an attribute, would run."""
        value = reader.names.value(node)
        if call is None:
            self._follow_property(node, reader)
        elif isinstance(value, type):
            self._follow_class(value, call, reader)
        elif isinstance(value, MethodType):
            self._follow_function(value.__func__, value.__self__, call, reader)
        elif isinstance(value, FunctionType):
            self._follow_function(value, _receiver(node, reader), call, reader)
        elif value is MISSING and isinstance(node, ast.Attribute):
            for cls, method in self._members(node.attr):
                if isinstance(method, FunctionType):
                    self._follow_function(method, InstanceOf(cls), call, reader)

    def _follow_property(self, node: ast.expr, reader: Reader) -> None:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return
        receiver = reader.names.value(node.value)
        if receiver is self._workflow:
            cls = receiver if isinstance(receiver, type) else type(receiver)
            members = [(receiver, inspect.getattr_static(cls, node.attr, None))]
        else:
            members = [(InstanceOf(cls), member) for cls, member in self._members(node.attr)]
        for self_value, member in members:
            if isinstance(member, property) and member.fget is not None and self._is_near(member.fget):
                owner = reader.owner_of(node.value)
                self.add(member.fget, self_value, _self_owner(member.fget, self_value, owner, self._workflow))

    def _members(self, name: str) -> Iterator[tuple[type[Any], Any]]:
        """Yield what the workflow's own messages and states have under a name."""
        for cls in self._data:
            member = inspect.getattr_static(cls, name, None)
            if member is not None:
                yield cls, member

    def _follow_class(self, cls: type[Any], call: ast.Call, reader: Reader) -> None:
        for name in _CONSTRUCTORS:
            method = inspect.getattr_static(cls, name, None)
            if isinstance(method, FunctionType) and self._is_near(method) and _is_written(method):
                self.add(
                    method, InstanceOf(cls), _without_self(method, _owners_of_call(method, call, reader, bound=True))
                )
        if is_dataclass(cls) and self._is_near(cls):
            self._follow_defaults(cls, call, reader)

    def _follow_defaults(self, cls: type[Any], call: ast.Call, reader: Reader) -> None:
        """Follow the default factories of the fields that a call leaves out."""
        given = {keyword.arg for keyword in call.keywords}
        for field in [f for f in fields(cls) if f.init][len(call.args) :]:
            if field.name in given or field.default_factory is NO_FACTORY:
                continue
            impure = rule_of_value(field.default_factory, None)
            if impure is not None:
                reader.report(impure[0], call, f"leaves {cls.__name__}.{field.name} to {impure[1]}")
            elif isinstance(field.default_factory, FunctionType):
                self._follow_function(field.default_factory, MISSING, ast.Call(ast.Name(""), [], []), reader)

    def _follow_function(self, function: FunctionType, self_value: Any, call: ast.Call, reader: Reader) -> None:
        if not self._is_near(function):
            return
        bound = self_value is not MISSING
        owners = _owners_of_call(function, call, reader, bound=bound)
        if bound and isinstance(call.func, ast.Attribute):
            owners |= _self_owner(function, self_value, reader.owner_of(call.func.value), self._workflow)
        self.add(function, self_value, owners)

    def _is_near(self, function: Any) -> bool:
        module = getattr(inspect.unwrap(function), "__module__", None) or ""
        return module == self._home or (bool(self._package) and f"{module}.".startswith(f"{self._package}."))


class _FlowReading(_Reading):
    """Reads a flow: asyncio is its own, what it awaits has to be something recorded."""

    fixes = FLOW_FIXES

    def _note(self, function: FunctionType, line: int, rule: Rule, what: str) -> None:
        call = what.removeprefix("calls ")
        if call.startswith("asyncio.") and call.rpartition(".")[2] not in _OUTSIDE:
            return
        super()._note(function, line, rule, what)

    def _look_at(self, tree: ast.AST, names: Names, report: Report) -> None:
        for node in ast.walk(tree):
            awaited = node.value if isinstance(node, ast.Await) else None
            if not isinstance(awaited, ast.Call):
                continue
            value = names.value(awaited.func)
            told = names.impure(awaited.func, awaited) is not None
            if isinstance(value, FunctionType) and not told and not self._is_known(value):
                report("await", node, f"awaits {value.__module__}.{value.__qualname__}, which nothing recorded can end")
            elif isinstance(value, type) and value.__module__.partition(".")[0] in ("asyncio", "_asyncio"):
                report("await", node, f"awaits a new {value.__name__}, which nothing recorded can end")

    def _is_known(self, function: FunctionType) -> bool:
        package = (function.__module__ or "").partition(".")[0]
        # Task groups of anyio stand on those of asyncio, and work in a flow as they are.
        return package in ("asyncio", "mainspring", "anyio") or self._is_near(function)


def _receiver(node: ast.expr, reader: Reader) -> Any:
    """Return what the method's `self` will be, or MISSING for a plain function."""
    if not isinstance(node, ast.Attribute):
        return MISSING
    owner = reader.names.value(node.value)
    if owner is MISSING or inspect.ismodule(owner):
        return MISSING
    cls = owner.cls if isinstance(owner, InstanceOf) else owner if isinstance(owner, type) else type(owner)
    is_static = isinstance(inspect.getattr_static(cls, node.attr, None), staticmethod)
    # A workflow that was given as a class stands for its instances: self.helper() is bound.
    called_on_class = isinstance(owner, type) and not (
        isinstance(node.value, ast.Name) and reader.names.self_name == node.value.id
    )
    return MISSING if is_static or called_on_class else owner


def _all_parameters_foreign(function: FunctionType) -> frozenset[tuple[str, Owner]]:
    return frozenset((name, "foreign") for name in _parameters(function))


def _all_foreign(method: FunctionType) -> frozenset[tuple[str, Owner]]:
    return frozenset((name, "foreign") for name in _parameters(method)[1:])


def _owners_of_call(
    function: FunctionType, call: ast.Call, reader: Reader, *, bound: bool
) -> frozenset[tuple[str, Owner]]:
    """Return which parameters of a function get values that are not the caller's own to change."""
    parameters = _parameters(function)[1 if bound else 0 :]
    owners: dict[str, Owner] = {}
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(k.arg is None for k in call.keywords):
        return frozenset((name, "foreign") for name in parameters)
    given = [*zip(parameters, call.args, strict=False), *((k.arg or "", k.value) for k in call.keywords)]
    for name, argument in given:
        if reader.owner_of(argument) != "own":
            owners[name] = "foreign"
    return frozenset(owners.items())


def _self_owner(function: Any, self_value: Any, owner: str, workflow: object) -> frozenset[tuple[str, Owner]]:
    """Return whose value a method's `self` is. What decide made is decide's own, and may be changed by its methods."""
    parameters = _parameters(function)
    if not parameters:
        return frozenset()
    kind: Owner = "own" if owner == "own" else "self" if self_value is workflow else "foreign"
    return frozenset({(parameters[0], kind)})


def _without_self(function: FunctionType, owners: frozenset[tuple[str, Owner]]) -> frozenset[tuple[str, Owner]]:
    """A constructor may set what it makes."""
    made: tuple[str, Owner] = (_parameters(function)[0], "own")
    return owners | {made}


def _parameters(function: Any) -> tuple[str, ...]:
    code = inspect.unwrap(function).__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _is_written(function: FunctionType) -> bool:
    return not function.__code__.co_filename.startswith("<string>")
