"""Every public name, from the code: in tables on docs/reference/api.md, with its whole docstring on the site."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from mainspring.sources import syntax_tree

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/reference/api.md"
# Where an author imports from, and what for. A package with an extra of its own is named with it.
MODULES = {
    "mainspring": "What authors and their apps need.",
    "mainspring.views": "What an app shows of itself: what methods return, `--json` prints and HTTP sends.",
    "mainspring.testing": "Tests without a server: given / when / then, fuzzing, purity, simulation.",
    "mainspring.web": "HTTP and the studio (extra `web`).",
    "mainspring.brokers": "Messages from and to other services, through brokers (an extra for each).",
    "mainspring.remote": "Handlers in other services, and webhooks (extra `webhooks`).",
    "mainspring.sealing": "Compression and encryption of what is stored.",
    "mainspring.frameworks.asgi": "In the lifespan of FastAPI, Starlette and the like.",
    "mainspring.frameworks.fastapi": "What an endpoint of FastAPI asks for (extra `web`).",
    "mainspring.frameworks.flask": "In Flask.",
    "mainspring.frameworks.django": "In Django.",
    "mainspring.flows": "Flows: what their code awaits and calls, beside asyncio's own.",
    "mainspring.styles": "Other authoring styles.",
}
# What hangs on an app, and what its methods return: each with its members.
HELD = {
    "app": "mainspring.app.app.Mainspring",
    "app.workflow(Orders)": "mainspring.app.workflow_handle.WorkflowHandle",
    "app.instance(Orders, id)": "mainspring.app.instance.Instance",
    "await app.send(…)": "mainspring.app.instance.Receipt",
    "app.transaction()": "mainspring.app.transactions.Transaction",
    "app.post": "mainspring.app.posting.Post",
    "app.tasks": "mainspring.app.tasks.Tasks",
    "app.schedules": "mainspring.app.schedules.Schedules",
    "app.pauses": "mainspring.app.pauses.Pauses",
    "app.projections": "mainspring.app.projections.Projections",
    'app.projections("orders")': "mainspring.app.projections.ProjectionHandle",
}
# Names of types have no docstring of their own.
ALIASES = {
    "App": "The app that runs with the server, as an endpoint's parameter.",
    "InTransaction": "A transaction of the app's database, as an endpoint's parameter: committed before it answers.",
    "Decision": "Any decision.",
    "Message": "What may be sent: an instance of a dataclass, a msgspec Struct or a pydantic model.",
    "Decisions": "What decide returns: a sequence of decisions.",
    "Event": "Any event that evolve sees.",
    "ERASED": "What is found instead of a body whose key was destroyed.",
    "Role": "What a token may do: viewer, worker, operator or admin.",
}
HEAD = """\
# The API

<!-- Written by `make docs` from the code; what is changed here is lost. -->

Public is what stands here, and the [errors](errors.md). What pages import from `mainspring.analysis` is for tools of
one's own; that, and everything else, [may change](stability.md). The site has each name with its signature, its
docstring and its example; in an interpreter, `help(name)` shows the same.
"""


def page() -> str:
    """Return the page as it is committed."""
    parts = [HEAD]
    for module, purpose in MODULES.items():
        parts += [f"\n## `{module}`\n\n{purpose}\n\n| name | what it is |\n|---|---|\n"]
        parts += [
            f"| [`{name}`]({_source(module, value)}) | {_first_line(name, value)} |\n" for name, value in public(module)
        ]
        if module == "mainspring":
            parts += [_held(written, path) for written, path in HELD.items()]
    return "".join(parts)


def _held(written: str, path: str) -> str:
    module, _, name = path.rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    rows = [f"| `{member}` | {text} |\n" for member, text in members(cls).items() if not _inherited(cls, member)]
    bases = [base.__name__ for base in cls.__bases__ if f"{base.__module__}.{base.__name__}" in HELD.values()]
    beside = f" It has what {bases[0]} has, and:" if bases else ""
    return f"\n### `{written}`\n\n`{name}`.{beside}\n\n| name | what it is |\n|---|---|\n{''.join(rows)}"


def _inherited(cls: type, member: str) -> bool:
    return any(member in members(base) for base in cls.__bases__ if base.__module__.startswith("mainspring"))


def members(cls: type) -> dict[str, str]:
    """Return what can be reached of a class's objects without an underscore, and the first sentence about each.

    That is methods, properties and what `__init__` sets; a field is told of by the docstring of its class.

    >>> members(importlib.import_module("mainspring").Receipt)["status"]
    'What became of the message.'
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(("mainspring", "tests")):
            fields = (inspect.getdoc(base) or "") if _is_record(base) else ""
            found |= dict.fromkeys(inspect.get_annotations(base), fields)
            own = [name for name, value in vars(base).items() if _member(value)]
            found |= {name: inspect.getdoc(getattr(base, name)) or "" for name in own}
            found |= _said_below(base)
    return {name: _sentence(found[name]) for name in sorted(found, key=str.lower) if not name.startswith("_")}


def _is_record(cls: type) -> bool:
    return hasattr(cls, "__struct_fields__") or dataclasses.is_dataclass(cls)


def _member(value: Any) -> bool:
    return inspect.isroutine(value) or isinstance(value, property)


def _said_below(cls: type) -> dict[str, str]:
    """Return the attributes that a class declares or its `__init__` sets, with the text that stands below each."""
    [definition] = syntax_tree(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101  it is one
    bodies = [definition.body]
    bodies += [node.body for node in definition.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    found: dict[str, str] = {}
    for body in bodies:
        for node, below in zip(body, [*body[1:], None], strict=True):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", None)
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))) if name is not None:
                    found[name] = text
                case _ if isinstance(target, ast.Attribute):
                    found.setdefault(target.attr, "")
                case _:
                    pass
    return found


def _sentence(text: str) -> str:
    text = text.partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.])\s", text)[0].replace("|", "\\|")


def details() -> str:
    """Return what the site adds to the page: signatures, docstrings, examples, methods."""
    parts: list[str] = []
    for module in MODULES:
        parts += [f"## All of `{module}`\n\n"]
        parts += [_detail(name, value) for name, value in public(module)]
    return "\n".join(parts)


def public(module: str) -> Iterator[tuple[str, Any]]:
    """Return a module's public names with what they stand for, in the order of the alphabet.

    >>> ("Send" in dict(public("mainspring")), "_homes" in dict(public("mainspring")))
    (True, False)
    """
    loaded = importlib.import_module(module)
    for name in sorted(loaded.__all__, key=str.lower):
        value = getattr(loaded, name)
        if not isinstance(value, ModuleType):
            yield name, value


def _first_line(name: str, value: Any) -> str:
    if not _documented(value):
        return ALIASES[name]
    return _sentence(inspect.getdoc(value) or "")


def _type_text(value: Any) -> str:
    text = str(value).replace("|", "\\|")
    return f"`{re.sub(r'[a-z_]+[.]', '', text)}`"


def _documented(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)


def _source(module: str, value: Any) -> str:
    home = inspect.getsourcefile(value) if _documented(value) else importlib.import_module(module).__file__
    return f"../../{Path(home or '').resolve().relative_to(ROOT).as_posix()}"


def _detail(name: str, value: Any) -> str:
    parts = (
        [f"### {name}\n", f"```python\n{_signature(name, value)}\n```\n"] if _documented(value) else [f"### {name}\n"]
    )
    parts += [_markdown(inspect.getdoc(value) or "") if _documented(value) else f"A type: {_type_text(value)}\n"]
    if inspect.isclass(value):
        for method, function in inspect.getmembers(value):
            if method.startswith("_") or not inspect.isroutine(function) or not _ours(function):
                continue
            parts += [f"#### {name}.{method}\n", f"```python\n{_signature(method, function)}\n```\n"]
            parts += [_markdown(inspect.getdoc(function) or "")]
    return "\n".join(parts)


def _ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("mainspring") and bool(function.__doc__)


def _signature(name: str, value: Any) -> str:
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        return name
    signature = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", signature)
    # A default that has no literal is shown by its kind: its address would be another one in every process.
    return name + re.sub(r"<(\w[\w. ]*?)(?: at 0x[0-9a-f]+)?>", r"\1", signature)


def _markdown(docstring: str) -> str:
    """Return a docstring as Markdown: its examples, and what is indented, as blocks of code."""
    blocks: list[str] = []
    for block in docstring.split("\n\n"):
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```pycon\n{inspect.cleandoc(block)}\n```")
        elif block.startswith("    "):
            blocks.append(f"```text\n{block}\n```")
        else:
            blocks.append(block)
    return "\n\n".join(blocks) + "\n"
