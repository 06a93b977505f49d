"""Every public name, from the code: in tables on docs/reference/api.md, with its whole docstring on the site."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

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
    "mainspring.styles": "Other authoring styles.",
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
    return "".join(parts)


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
    text = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.])\s", text)[0].replace("|", "\\|")


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
