"""Places in code as people write them: from where Python finds the module, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from mainspring.analysis.model import Machine, Place

T = TypeVar("T")


def without_roots(machine: Machine, roots: Sequence[str]) -> Machine:
    """Return a machine whose places begin where Python looks for modules: `roots` is `sys.path`.

    >>> machine = Machine("Door", place=Place("/srv/app/doors/door.py", 12))
    >>> str(without_roots(machine, ["/srv", "/srv/app"]).place)
    'doors/door.py:12'
    """
    return _moved(machine, _nearest_first(roots))


def shortened(file: str, roots: Sequence[str]) -> str:
    """Return a file's path from where Python looks for modules.

    >>> shortened("/srv/app/doors/door.py", ["/srv", "/srv/app"])
    'doors/door.py'
    """
    return _shortened(PurePath(file), _nearest_first(roots))


def _nearest_first(roots: Sequence[str]) -> list[PurePath]:
    return [PurePath(root) for root in sorted((root for root in roots if root), key=len, reverse=True)]


def _moved(value: T, roots: Sequence[PurePath]) -> T:
    moved: Any = value
    if isinstance(value, Place):
        moved = Place(_shortened(PurePath(value.file), roots), value.line)
    elif isinstance(value, tuple):
        moved = tuple(_moved(part, roots) for part in cast("tuple[object, ...]", value))
    elif isinstance(value, Struct):
        moved = replace(value, **{name: _moved(getattr(value, name), roots) for name in value.__struct_fields__})
    return moved


def _shortened(path: PurePath, roots: Sequence[PurePath]) -> str:
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return (path if root is None else path.relative_to(root)).as_posix()
