"""The fingerprint of the code that makes a workflow's states: a snapshot of other code is not trusted."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

from mainspring.core.definition import Definition
from mainspring.core.type_parameters import unwrapped
from mainspring.sources import class_text, module_text

_KEPT_AS: Final = "__mainspring_fingerprint__"
# Only authors' code: a new release of Python or of a library is no reason to fold everything anew.
_OTHERS: Final = (sys.stdlib_module_names - {"__main__"}) | {"mainspring", "msgspec", "pydantic"}


def fingerprint_of(cls: type[Any], definition: Definition) -> str:
    """Return a digest of the modules that the workflow is written in, and of all types that its states hold.

    It is that of the code that runs: a file that is changed afterwards does not change it in this process.
    """
    try:
        return cls.__dict__[_KEPT_AS]
    except KeyError:
        setattr(cls, _KEPT_AS, digest := _digest(cls, definition))
        return digest


def _digest(cls: type[Any], definition: Definition) -> str:
    digest = hashlib.sha256()
    modules: set[str] = set()
    for base in filter(_by_authors, cls.__mro__):
        # The class distinguishes it from others in its module; the module has the helpers that evolve calls.
        digest.update(_written(base))
        if base.__module__ not in modules:
            modules.add(base.__module__)
            digest.update(module_text(base.__module__).encode())
    if definition.version != 1:
        digest.update(str(definition.version).encode())
    for held in _held_by(definition.states):
        digest.update(_written(held))
    return digest.hexdigest()[:16]


def _by_authors(cls: type[Any]) -> bool:
    return cls.__module__.partition(".")[0] not in _OTHERS


def _written(cls: type[Any]) -> bytes:
    """Return a class as it is written, or at least what its fields are."""
    source = class_text(cls)
    if source is None:
        source = repr(sorted(getattr(cls, "__annotations__", {}).items(), key=str))
    return source.encode()


def _held_by(states: Iterable[type[Any]]) -> list[type[Any]]:
    """Return the states, their authors' bases, and all that their fields hold, in an order that is always the same."""
    found: dict[type[Any], None] = {}
    roots = tuple(states)
    waiting: list[Any] = list(reversed(roots))
    while waiting:
        hint = unwrapped(waiting.pop())
        # The arguments of a Callable stand in a list of their own.
        arguments = cast("list[Any]", hint) if isinstance(hint, list) else [*get_args(hint)]
        if arguments:
            waiting.extend(reversed([*arguments, get_origin(hint)]))
        elif isinstance(hint, type) and hint not in found and (hint in roots or _by_authors(hint)):
            found[hint] = None
            waiting.extend(reversed([*hint.__mro__[1:], *_fields(hint)]))
    return list(found)


def _fields(cls: type[Any]) -> list[Any]:
    try:
        return list(get_type_hints(cls).values())
    except Exception:  # noqa: BLE001  an annotation that cannot be read at run time: its text is in the source
        return []
