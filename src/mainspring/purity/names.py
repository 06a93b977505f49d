"""What a name in a function's source really stands for: followed through the module's own imports and aliases."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import random
import sys
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast

from msgspec import Struct

from mainspring.purity.rules import ATTRIBUTES, PUBLIC_NAMES, Rule, is_standard, rule_of, rule_of_method

MISSING: Final = object()


class InstanceOf(Struct, frozen=True):
    """Some instance of a class, as what `Path("x")` in the source stands for."""

    cls: type[Any]
    has_arguments: bool = False


class Unloaded(Struct, frozen=True):
    """Something from a module that only the function itself would import."""

    module: str
    name: str = ""


class Names:
    """The names of one function, looked up where Python would look them up.

    >>> def late(x):
    ...     return datetime.now() > x
    >>> from datetime import datetime
    >>> late.__globals__["datetime"] = datetime
    >>> names = Names(late, ast.parse("def late(x): return datetime.now() > x").body[0])
    >>> names.impure(ast.parse("datetime.now", mode="eval").body, call=None)
    ('clock', 'datetime.now')
    """

    def __init__(self, function: FunctionType, tree: ast.AST, self_value: object = MISSING) -> None:
        self._globals = function.__globals__
        self._closure = closure_of(function)
        self._imports = dict(_imports(tree))
        self.local = {*_bound_names(tree)} - set(self._imports)
        self.self_name: str | None = None
        if self_value is not MISSING and function.__code__.co_argcount:
            self.self_name = function.__code__.co_varnames[0]
        self._self_value = self_value

    def value(self, node: ast.expr) -> Any:
        """Return the object that an expression stands for before the function runs, or MISSING."""
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=owner, attr=name):
                return _attribute(self.value(owner), name)
            case ast.Call(func=ast.Name(id="super"), args=[]) if self.self_name is not None:
                return self._self_value
            case ast.Call(func=function, args=args, keywords=keywords):
                cls = self.value(function)
                return InstanceOf(cls, bool(args or keywords)) if isinstance(cls, type) else MISSING
            case _:
                return MISSING

    def impure(self, node: ast.expr, call: ast.Call | None) -> tuple[Rule, str] | None:
        """Return the rule that a name or attribute breaks, and the name it has in the docs, if it breaks one."""
        if isinstance(node, ast.Attribute):
            owner, name = self.value(node.value), node.attr
            if isinstance(owner, ModuleType) and f"{owner.__name__}.{name}" in ATTRIBUTES:
                return ATTRIBUTES[f"{owner.__name__}.{name}"], f"{owner.__name__}.{name}"
            if owner is not MISSING and not isinstance(owner, ModuleType | Unloaded):
                return _rule_of_method(owner, name)
        return rule_of_value(self.value(node), call)

    def is_global(self, name: str) -> bool:
        """Return True if a name stands for something outside of the function that exists already."""
        return name not in self.local and self._name(name) is not MISSING

    def _name(self, name: str) -> Any:
        if name in self._imports:
            return self._imports[name]
        if name == self.self_name:
            return self._self_value
        if name in self.local:
            return MISSING
        for scope in (self._closure, self._globals, vars(builtins)):
            if name in scope:
                return scope[name]
        return MISSING


def closure_of(function: FunctionType) -> dict[str, Any]:
    """Return the variables of the functions around; one that is not assigned yet is left out."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def _imports(tree: ast.AST) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported = alias.name if alias.asname else alias.name.partition(".")[0]
                found.append((alias.asname or imported, _module(imported)))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            owner = _module(node.module)
            found += [(alias.asname or alias.name, _attribute(owner, alias.name)) for alias in node.names]
    return found


def _module(name: str) -> ModuleType | Unloaded:
    """Return a module. Only Python's own are loaded for it: reading a workflow runs no author's code."""
    if name in sys.modules:
        return sys.modules[name]
    if is_standard(name):
        try:
            return importlib.import_module(name)
        except ImportError:
            return Unloaded(name)
    return Unloaded(name)


def _bound_names(tree: ast.AST) -> list[str]:
    """Return every name that the function, or one inside it, binds for itself."""
    names: list[str] = []
    declared: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                names.append(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.append(name)
            case ast.ExceptHandler(name=str(name)):
                names.append(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if node is not tree:
                names.append(name)
            case ast.Global(names=outer):
                declared.update(outer)
            case _:
                pass
    return [name for name in names if name not in declared]


def _attribute(owner: Any, name: str) -> Any:
    match owner:
        case Unloaded(module, part):
            return Unloaded(f"{module}.{part}" if part else module, name)
        case ModuleType() | type():
            try:
                return getattr(owner, name, MISSING)
            except Exception:  # noqa: BLE001  a module's or metaclass's own __getattr__ may do anything
                return MISSING
        case InstanceOf(cls):
            return _plain(inspect.getattr_static(cls, name, MISSING))
        case _ if owner is MISSING:
            return MISSING
        case _:
            return _plain(inspect.getattr_static(owner, name, MISSING))


def _plain(value: Any) -> Any:
    """Return a static attribute as it would be used; what a property would compute is not known before."""
    if isinstance(value, staticmethod | classmethod):
        return value.__func__  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return MISSING if isinstance(value, property) else value


def rule_of_value(value: Any, call: ast.Call | None) -> tuple[Rule, str] | None:
    """Return the rule that using a value breaks, or calling it when it is a class, and the name it has in the docs.

    >>> import time
    >>> rule_of_value(time.time, None)
    ('clock', 'time.time')
    """
    rule: Rule | None = None
    name: str = getattr(value, "__name__", "")
    module: str = str(getattr(value, "__module__", None) or "")
    match value:
        case Unloaded(module, name):
            rule = rule_of(module, name) if name else None
        case BuiltinFunctionType() if isinstance(value.__self__, ModuleType):
            rule = rule_of(module, name)
        case BuiltinFunctionType() | MethodType():
            return _rule_of_method(value.__self__, name)
        case FunctionType():
            rule = rule_of(module, name)
        case type() if call is not None and not issubclass(value, BaseException):
            rule = "random" if _is_unseeded(cast("type[Any]", value), call) else rule_of(module, name)
        case _:
            return None
    module = PUBLIC_NAMES.get(module, module)
    return None if rule is None else (rule, name if module == "builtins" else f"{module}.{name}")


def _rule_of_method(owner: Any, name: str) -> tuple[Rule, str] | None:
    if isinstance(owner, InstanceOf):
        cls = owner.cls
        seeded = issubclass(cls, random.Random) and owner.has_arguments
        rule = None if seeded else rule_of(cls.__module__, name)
    else:
        cls = owner if isinstance(owner, type) else type(owner)
        rule = rule_of_method(owner, name)
        if rule is None and cls.__module__.partition(".")[0] == "pathlib":
            rule = rule_of("pathlib", name)
    return None if rule is None else (rule, f"{'random' if cls is random.Random else cls.__name__}.{name}")


def _is_unseeded(cls: type[Any], call: ast.Call) -> bool:
    return issubclass(cls, random.Random) and not call.args and not call.keywords
