"""The public API has no holes: what public names take, return and hold is public too, and made for readers."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
import typing
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, get_args

from docs.site.names import HELD, MODULES, members, public
from mainspring import Mainspring, Workflow, errors, views
from mainspring.engine.inputs import pending
from mainspring.port.records import EventRow, instances
from mainspring.sealing import Keys, RenewingSeal, Seal
from mainspring.sources import syntax_tree
from tests.support.paths import ROOT

# Public types stand in these too; docs/reference/stability.md names them.
OWN_MODULES: Final = {"mainspring.app.signatures", "mainspring.styles.history_words"}
# Reached by an attribute or a call, as `app.tasks` is. What they take and return counts; their own names nobody writes.
HANDLES: Final = {
    *("BlockingApp", "Hooks", "Pauses", "Post", "ProjectionHandle", "Projections"),
    *("Schedules", "Tasks", "Simulation", "BlockingWorld", "Given", "When", "History"),
    *("BlockingReceipt", "BlockingTransaction", "Journal", "Place"),
    *(
        "Parts",
        "Search",
        "AskOptions",
        "MessageOptions",
        "PostOptions",
        "RequestOptions",
        "SendOptions",
    ),  # parameters by keyword
    *("AnyOutput", "DataclassMessage", "ModelMessage"),  # what `Message` is made of, and a result that is not declared
}
# Where bytes are what it is about: in what is sealed, what a broker carries, what was signed, what is secret.
BYTES: Final = {
    *("Compressed", "Encrypted", "RenewingSeal", "Seal", "Seals", "FileKeys", "Key", "Keys", "StaticKeys"),
    *("Delivery", "Outgoing", "Scheme", "Token"),
}
SHOWN: Final = {"__aenter__", "__aiter__", "__anext__", "__call__", "__enter__", "__iter__", "__next__"}


def names() -> Iterator[tuple[str, Any]]:
    """Yield all public names: those of the modules on the API's page, and the errors on theirs."""
    for module in MODULES:
        yield from public(module)
    yield from ((name, value) for name, value in vars(errors).items() if inspect.isclass(value))


def key(value: Any) -> tuple[str, str]:
    return getattr(value, "__module__", ""), getattr(value, "__qualname__", "")


class Walk:
    """Every type that public signatures lead to, with the place where it stands first."""

    def __init__(self) -> None:
        self.public = {key(value) for _, value in names() if inspect.isclass(value)}
        self.found: dict[str, str] = {}
        """A type that is not public, or a field that is not for readers, and where."""
        self._ways: deque[tuple[str, Any]] = deque()
        self.seen: set[tuple[str, str]] = set()
        self.classes: list[type] = []

    def run(self) -> dict[str, str]:
        for name, value in names():
            self.visit(name, value)
        while self._ways:
            self.visit(*self._ways.popleft())
        return self.found

    def _known(self, cls: type) -> bool:
        return key(cls) in self.public or cls.__qualname__ in HANDLES

    def visit(self, place: str, value: Any) -> None:
        if inspect.isclass(value):
            if key(value) not in self.seen:
                self.seen.add(key(value))
                self.classes.append(value)
                self._members(place, value)
        elif inspect.isroutine(value):
            self._signature(place, value)

    def _members(self, place: str, cls: type) -> None:
        for base in cls.__mro__:
            if not base.__module__.startswith(("mainspring", __name__)):
                continue
            spaces = namespaces(base)
            for name, annotation in inspect.get_annotations(base).items():
                self._member(place, name, annotation, spaces)
            for name, annotation in assigned(base):
                self._member(place, name, annotation, spaces)
            for name, member in vars(base).items():
                if name.startswith("_") and name not in SHOWN:
                    continue
                routine = member.fget if isinstance(member, property) else member
                routine = getattr(routine, "__func__", routine)
                if inspect.isfunction(routine):
                    if name.endswith("_us"):
                        self.found.setdefault(f"{place}.{name}", "microseconds")
                    self._signature(f"{place}.{name}", routine)

    def _member(self, place: str, name: str, annotation: Any, spaces: dict[str, Any]) -> None:
        if not name.startswith("_"):
            if name.endswith("_us"):
                self.found.setdefault(f"{place}.{name}", "microseconds")
            self._types(f"{place}.{name}", annotation, spaces)

    def _signature(self, place: str, routine: Any) -> None:
        spaces = namespaces(routine)
        for name, annotation in getattr(routine, "__annotations__", {}).items():
            if name.endswith("_us"):
                self.found.setdefault(f"{place}({name})", "microseconds")
            self._types(place if name == "return" else f"{place}({name})", annotation, spaces)

    def _types(self, place: str, annotation: Any, spaces: dict[str, Any]) -> None:
        for found in parts(annotation, spaces):
            if found is bytes and re.split(r"[.(]", place)[0] not in BYTES:
                self.found.setdefault(place, "bytes")
            elif inspect.isclass(found) and found.__module__.startswith("mainspring"):
                if (
                    found.__module__ not in OWN_MODULES
                    and key(found) not in self.public
                    and found.__qualname__ not in HANDLES
                ):
                    self.found.setdefault(f"{found.__module__}.{found.__qualname__}", place)
                self._ways.append((found.__qualname__, found))


def namespaces(value: Any) -> dict[str, Any]:
    """Return the names that annotations of a class or a function may use."""
    return names_in(value.__module__)


@cache
def names_in(module_name: str) -> dict[str, Any]:
    """Return a module's names, with those that it imports or defines for type checkers only."""
    module = sys.modules[module_name]
    known = {**vars(typing), **vars(module)}
    for node in syntax_tree(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                known |= _imported(each, known)
    return known


def _imported(statement: ast.stmt, known: dict[str, Any]) -> dict[str, Any]:
    """Return what a statement for type checkers only brings, also from such a part of another module."""
    if isinstance(statement, ast.ImportFrom) and statement.module in sys.modules:
        home = names_in(statement.module)
        if all(alias.name in home for alias in statement.names):
            return {alias.asname or alias.name: home[alias.name] for alias in statement.names}
    brought = dict(known)
    exec(compile(ast.Module([statement], []), "for type checkers", "exec"), brought)  # noqa: S102  our own imports
    return brought


def parts(annotation: Any, spaces: dict[str, Any]) -> Iterator[Any]:
    """Yield the classes of which an annotation is made."""
    if isinstance(annotation, str):
        annotation = eval(annotation, spaces)  # noqa: S307  our own annotations
    if isinstance(annotation, typing.ForwardRef):
        annotation = eval(annotation.__forward_arg__, spaces)  # noqa: S307  as above
    if isinstance(annotation, list):
        for each in typing.cast("list[Any]", annotation):
            yield from parts(each, spaces)
        return
    if typing.get_origin(annotation) is typing.Literal:
        return
    origin = typing.get_origin(annotation)
    if origin is not None and origin is not types.UnionType:
        yield origin
    if inspect.isclass(annotation):
        yield annotation
    for each in typing.get_args(annotation):
        yield from parts(each, spaces)


def assigned(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that a class's own `__init__` gives its objects, where their type can be read there."""
    made = vars(cls).get("__init__")
    if not inspect.isfunction(made):
        return
    try:
        [function] = syntax_tree(textwrap.dedent(inspect.getsource(made))).body
    except OSError:  # a Struct's, made by msgspec
        return
    hints = made.__annotations__
    for node in ast.walk(function):
        target, value = None, None
        if isinstance(node, ast.AnnAssign):
            target, value = node.target, ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if (
                isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Name)
                and node.value.func.id[0].isupper()
            ):
                value = node.value.func.id
            elif isinstance(node.value, ast.Name):
                value = hints.get(node.value.id)
        if value is not None and isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
            yield target.attr, value


@cache
def walked() -> Walk:
    """Return the walk over all that is public: it takes seconds."""
    walk = Walk()
    walk.run()
    return walk


def test_public_names_lead_to_public_types_and_to_nothing_raw() -> None:
    assert walked().found == {}


def test_modules_of_their_own_are_named_by_the_page_on_stability() -> None:
    page = (ROOT / "docs/reference/stability.md").read_text()
    assert [module for module in sorted(OWN_MODULES) if f"`{module}`" not in page] == []


def test_what_is_allowed_is_still_met() -> None:
    walk = walked()
    met = {place for _, place in walk.seen}
    assert {name for name in HANDLES | BYTES if name not in met} == set()


def documented(cls: type, name: str, text: str) -> bool:
    """Return True if a member has words of its own, or its class or the port that it implements speaks of it."""
    ports = [Seal, Keys, RenewingSeal]
    return bool(text) or f"`{name}" in (inspect.getdoc(cls) or "") or any(members(port).get(name) for port in ports)


def test_what_public_classes_let_be_reached_is_documented_or_private() -> None:
    walk = walked()
    # The pages on errors and settings have their fields, each held by a test of its own; a TypedDict has parameters.
    elsewhere = (Exception, Workflow, dict)
    ours = [cls for cls in walk.classes if cls.__module__.startswith("mainspring") and not issubclass(cls, elsewhere)]
    assert len(ours) > len(HELD)
    assert [
        f"{cls.__qualname__}.{name}"
        for cls in ours
        for name, text in members(cls).items()
        if not documented(cls, name, text)
    ] == []


def test_an_app_has_the_attributes_that_the_page_lists_and_no_others() -> None:
    app = Mainspring("memory://")
    assert {name for name in dir(app) if not name.startswith("_")} == set(members(Mainspring))
    assert [name for name in vars(app) if name.startswith("_")] == ["_internals"]


class Planted:
    """What the walk has to find."""

    moment_us: int

    def row(self) -> EventRow: ...

    @property
    def body(self) -> bytes: ...

    def __init__(self) -> None:
        self.engine = object()
        self.tasks = object()
        """What people are asked."""
        self._own = object()


def test_the_walk_finds_raw_types_bytes_and_microseconds() -> None:
    walk = Walk()
    walk.visit("Planted", Planted)
    assert walk.found["Planted.moment_us"] == "microseconds"
    assert walk.found["Planted.body"] == "bytes"
    assert walk.found["mainspring.port.records.events.EventRow"] == "Planted.row"


def test_members_without_a_word_about_them_are_found() -> None:
    assert members(Planted) == {"body": "", "engine": "", "moment_us": "", "row": "", "tasks": "What people are asked."}


def test_what_views_say_of_statuses_and_actions_is_what_there_is() -> None:
    assert set(get_args(views.Status)) == set(get_args(instances.Status))
    assert set(get_args(views.ReceiptStatus)) == set(get_args(pending.ReceiptStatus))
