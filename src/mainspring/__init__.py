"""Durable workflows in plain Python; your database is the engine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Type checkers see the names themselves, so that they refuse one that there is not.
if TYPE_CHECKING:
    from mainspring import errors as errors
    from mainspring import testing as testing
    from mainspring import views as views
    from mainspring._names import *  # noqa: F403  the one list of them

# So that `import mainspring` is enough for `except mainspring.errors.StoreError`.
_MODULES = ("errors", "testing", "views")
_homes: dict[str, str] = {}


def _home_of() -> dict[str, str]:
    """Return the module that each name comes from, read from the lines `from module import name as name`."""
    if not _homes:
        # Read as it was installed, from a zip file too.
        loader: Any = __loader__
        names: bytes = loader.get_data(f"{__file__.removesuffix('__init__.py')}_names.py")
        lines = (line.split() for line in names.decode().splitlines() if line.startswith("from "))
        _homes.update((words[-1], words[1]) for words in lines)
    return _homes


if not TYPE_CHECKING:
    # Everything is imported when it is first asked for: the command line needs no more than the errors, a workflow and
    # its tests the pure core, and only an app the engine.
    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"mainspring.{name}")
        if name == "__all__":
            return sorted(_home_of())
        if name not in _home_of():
            raise AttributeError(f"module 'mainspring' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_home_of()[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_home_of(), *_MODULES})
