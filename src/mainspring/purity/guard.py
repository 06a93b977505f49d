"""The run-time guard: code under it cannot reach the clock, randomness or the outside, not even indirectly.

`datetime.now` is a method written in C and cannot be replaced. So the guard does not replace anything: it asks Python's
profiler, which sees every call, and raises before an impure one is made. It is for tests; a worker never pays for it.

What it does not see: a C function that calls another C function with no Python between, as `map(time.localtime, …)`
does, and what other threads do.
"""

from __future__ import annotations

import gc
import random
import sys
import sysconfig
from asyncio import events
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FrameType, TracebackType
from typing import Any, Final

from mainspring.errors import ImpureCallError
from mainspring.flows.loop import FlowLoop
from mainspring.flows.run import FlowRandom
from mainspring.purity.rules import FIXES, PUBLIC_NAMES, Rule, rule_of, rule_of_method

_C_MODULES: Final = frozenset(
    {"time", "io", "_io", "posix", "nt", "_socket", "_posixsubprocess", "_sqlite3", "sqlite3", "_uuid"}
)
_C_CALLS: Final = frozenset(
    {("builtins", "print"), ("builtins", "input"), ("builtins", "breakpoint"), ("_thread", "start_new_thread")}
    | {("_thread", "start_joinable_thread")}
)
_PYTHON_MODULES: Final = frozenset(
    {"logging", "socket", "subprocess", "urllib.request", "http.client", "requests.sessions", "httpx._client"}
    | {"asyncio.base_events", "asyncio.events", "asyncio.runners", "asyncio.tasks", "sqlite3"}
)
_ASYNCIO_MODULES: Final = frozenset({"asyncio.events", "asyncio.tasks"})
_PYTHON_CALLS: Final[dict[Any, frozenset[str]]] = {
    "os": frozenset({"getenv", "getenvb", "__getitem__", "__setitem__", "__delitem__", "__iter__"}),
    "uuid": frozenset({"uuid1", "uuid4", "uuid6", "uuid7", "getnode"}),
}

# Methods of these are called all the time and touch nothing.
_INNOCENT_OWNERS: Final = frozenset({list, dict, str, tuple, set, frozenset, bytes, int, float})

# Python's own errands in the middle of pure code: an import, a warning, the rules of a time zone.
_ERRANDS: Final = frozenset(
    {"importlib._bootstrap", "importlib._bootstrap_external", "_frozen_importlib", "_frozen_importlib_external"}
    | {"warnings", "_py_warnings", "zoneinfo._common", "zoneinfo._tzpath"}
)
_LIBRARIES: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_GENERATED: Final = ("<string>", "<frozen ", "<attrs ", "<__array_function__")
_SEEDED_HERE: Final[CodeType] = random.Random.__init__.__code__


def purity_guard(where: str) -> PurityGuard:
    """Return a context manager under which an impure call raises ImpureCallError. `where` names the code in it.

    Guards nest, and a profiler that was running resumes afterwards. An author's own `except Exception` does not hide
    what was caught: it is raised again at the end. A `random.Random(seed)` made under the guard is pure, and allowed.

    >>> import time
    >>> from mainspring.errors import ImpureCallError
    >>> try:
    ...     with purity_guard("Orders.decide"):
    ...         time.time()
    ... except ImpureCallError as error:
    ...     print(error.where, "called", error.call)
    Orders.decide called time.time
    """
    return PurityGuard(where)


class PurityGuard:
    """The guard itself; see `purity_guard`.

    >>> with PurityGuard("Orders.decide"):
    ...     sorted({"b", "a"})
    ['a', 'b']
    """

    __slots__ = ("_caught", "_collecting", "_outer", "_previous", "_seeded", "_where")

    def __init__(self, where: str) -> None:
        self._where = where
        self._caught: ImpureCallError | None = None
        self._seeded: list[object] = []
        self._outer: FrameType | None = None
        self._previous: Any = None
        self._collecting = False

    def __enter__(self) -> None:
        self._outer = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  where the guarded code begins
        self._previous = sys.getprofile()
        # A collection would run strangers' finalizers inside the guarded code, and the author would be blamed.
        self._collecting = gc.isenabled()
        gc.disable()
        sys.setprofile(self._watch)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        _resume(self._previous)
        if self._collecting:
            gc.enable()
        self._outer = None
        caught, self._caught = self._caught, None
        if caught is not None and caught is not error and (error is None or isinstance(error, Exception)):
            raise caught from None

    def _watch(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call":
            module = arg.__module__
            if module is None:
                self._watch_method(frame, arg)
            elif module in _C_MODULES:
                rule = rule_of(module, arg.__name__)
                if rule is not None:
                    self._catch(frame, f"{PUBLIC_NAMES.get(module, module)}.{arg.__name__}", rule)
            elif (module, arg.__name__) in _C_CALLS:
                self._catch(frame, arg.__name__, "io")
        elif event == "call":
            module = frame.f_globals.get("__name__")
            if module in _ASYNCIO_MODULES and type(events._get_running_loop()) is FlowLoop:  # noqa: SLF001
                return  # its loop runs what is ready and reaches nothing
            if module in _PYTHON_MODULES or frame.f_code.co_name in _PYTHON_CALLS.get(module, ()):
                self._catch(frame, _name(frame), "random" if module == "uuid" else "io")
            elif frame.f_code is _SEEDED_HERE and frame.f_locals.get("x") is not None:
                self._seeded.append(frame.f_locals["self"])

    def _watch_method(self, frame: FrameType, method: BuiltinFunctionType) -> None:
        owner = method.__self__
        if type(owner) in _INNOCENT_OWNERS:
            return
        if type(owner) is FlowRandom:
            return  # seeded with what is recorded
        rule = rule_of_method(owner, method.__name__)
        if rule is None or any(owner is seeded for seeded in self._seeded):
            return
        cls = owner if isinstance(owner, type) else type(owner)
        self._catch(frame, f"{cls.__name__}.{method.__name__}", rule)

    def _catch(self, frame: FrameType, call: str, rule: Rule) -> None:
        frames = list(self._inside(frame))
        if any(inner.f_globals.get("__name__") in _ERRANDS for inner in frames):
            return
        place = next((i for i, inner in enumerate(frames) if not is_library(inner.f_code)), len(frames) - 1)
        author = frames[place] if frames else frame
        entered = next((_name(inner) for inner in reversed(frames[:place]) if not is_generated(inner.f_code)), call)
        if entered != call:
            call = f"{entered}, which called {call}"
        self._caught = ImpureCallError(self._where, call, author.f_code.co_filename, author.f_lineno, FIXES[rule])
        raise self._caught

    def _inside(self, frame: FrameType | None) -> Iterator[FrameType]:
        """Yield the frames from the call outwards, as far as the guard reaches."""
        while frame is not None and frame is not self._outer:
            yield frame
            frame = frame.f_back
        if frame is not None and frame is self._outer:
            yield frame


def is_library(code: CodeType) -> bool:
    """Return True if code is a library's, or generated, and not an author's.

    >>> import json
    >>> is_library(json.dumps.__code__)
    True
    """
    return code.co_filename.startswith(_LIBRARIES) or is_generated(code)


def is_generated(code: CodeType) -> bool:
    """Return True if code was written by a program, as a dataclass's methods are.

    >>> is_generated(compile("1 + 1", "<string>", "eval"))
    True
    """
    return code.co_filename.startswith(_GENERATED)


def _name(frame: FrameType) -> str:
    # The private modules inside a package are not what its users know: pathlib._local is pathlib.
    module = str(frame.f_globals.get("__name__")).partition("._")[0]
    name = f"{module}.{frame.f_code.co_qualname}"
    return "os.environ" if name.startswith("os._Environ.") else name


def _resume(profiler: Any) -> None:
    """Resume a profiler that was running. One written in C is not a function, and is started by its own method."""
    if profiler is None or callable(profiler):
        sys.setprofile(profiler)
    else:
        sys.setprofile(None)
        profiler.enable()
