"""One pytest session for all mutants: the tests are collected once, and each mutant is tried in a fork of it.

The tests are run once to record which of them reaches which line. A mutant in a function is then tried by giving the
function the code of the mutated one, in a child that runs only the tests that reach its line, the quickest first, and
ends at the first that fails. That reaches no code that is run while the modules are imported: such mutants are tried
by `fresh`, in a process that imports the mutated module in the first place, as are those that survived and whose
function was also called while the tests were collected.
"""

from __future__ import annotations

import gc
import importlib.util
import math
import os
import pickle
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, Literal, Self, TypeAlias

import hypothesis
import pytest

from tests.mutants.mutations import Mutant
from tests.support.examples import limit_examples

Verdict: TypeAlias = Literal["killed", "timed out", "survived", "not reached"]

MEMORY_BYTES: Final = 6 * 1024**3
FAILED, UNSWAPPED, BROKEN = 1, 3, 4
OVER_TIME: Final = (signal.SIGPROF, signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
LEAST_SECONDS: Final = 4.0
"""What a mutant may take in any case, of the processor's time; beyond that, four times what its tests take."""
WAITING_SECONDS: Final = 300
"""A mutant that waits for ever takes no processor's time: it is ended after this, on the busiest machine too."""
EXAMPLES: Final = 20
"""Of a property without a number of its own: fewer than in the tests, so that a score is too low."""
OPTIONS: Final = (
    "-q",
    "-s",
    "--disable-plugin-autoload",  # hundreds of processes would import them all
    *("-p", "_hypothesis_pytestplugin"),
    *("-p", "xdist.plugin"),  # the tests' own settings have a hook of it
    *("-p", "no:cacheprovider"),
    "--assert=plain",
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


@dataclass
class Reached:
    """Which tests reach which lines: the lines by file, the tests by their places in the collection.

    Those in `lost` may reach any line: Python ends the tracing of a test in which the stack runs out.
    """

    by_test: list[dict[str, set[int]]] = field(default_factory=list[dict[str, set[int]]])
    seconds: list[float] = field(default_factory=list[float])
    lost: set[int] = field(default_factory=set[int])
    imported: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def tests(self, mutant: Mutant) -> list[int]:
        """Return the tests that reach a mutant, the quickest first, then those of which nobody knows."""
        path, lines = str(mutant.module.path), range(mutant.lines[0], mutant.lines[1] + 1)
        found = [
            test
            for test, files in enumerate(self.by_test)
            if test in self.lost or not files.get(path, set()).isdisjoint(lines)
        ]
        return sorted(found, key=lambda test: (test in self.lost, self.seconds[test]))

    def on_import(self, mutant: Mutant) -> bool:
        """Tell whether its function was called during collection: what that made may hold the sound code."""
        lines = range(mutant.body[0], mutant.body[1] + 1)
        return not self.imported.get(str(mutant.module.path), set()).isdisjoint(lines)


class Tracer:
    """Notes the lines that are run in some files."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = {str(path) for path in paths}
        self.lines: dict[str, set[int]] = {}
        self.is_lost = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        path = frame.f_code.co_filename
        if path not in self._paths:
            return None
        lines = self.lines.setdefault(path, set())

        def line(frame: FrameType, event: str, argument: object) -> Any:
            lines.add(frame.f_lineno)
            return line

        return line

    def __enter__(self) -> Self:
        threading.settrace(self)
        sys.settrace(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.is_lost = sys.gettrace() is not self
        sys.settrace(None)
        threading.settrace(None)  # pyright: ignore[reportArgumentType]  that is how it is switched off


class Children:
    """Forks, so many at a time, and what each of them ended with."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._running: dict[int, Callable[[int], None]] = {}

    def start(self, work: Callable[[], int], ended: Callable[[int], None]) -> None:
        """Run something in a child, and tell what its status was."""
        while len(self._running) >= self._jobs:
            self._await_one()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a fork beside threads: the child runs none of theirs
            pid = os.fork()
        if pid == 0:
            status = BROKEN
            try:
                _silence()
                gc.disable()
                status = work()
            finally:
                os._exit(status)
        self._running[pid] = ended

    def finish(self) -> None:
        while self._running:
            self._await_one()

    def _await_one(self) -> None:
        pid, status = os.wait()
        self._running.pop(pid)(status)


class Session:
    """The plugin that collects as pytest does, and runs the mutants instead of the tests."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        jobs: int,
        least_seconds: float,
        told: Callable[[Mutant, Verdict | None], None],
    ) -> None:
        self._mutants = mutants
        self._least_seconds = least_seconds
        self._children = Children(jobs)
        self._told = told
        self._collecting = Tracer(mutant.module.path for mutant in mutants)
        self._failed = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Iterator[None]:
        find_quickly()
        with self._collecting:
            return (yield)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = session.items
        reached = self._recorded(items)
        reached.imported = self._collecting.lines
        functions = _functions({str(mutant.module.path) for mutant in self._mutants})
        gc.collect()
        gc.freeze()
        for mutant in self._mutants:
            self._try(mutant, items, reached, functions)
        self._children.finish()
        return True

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        limit_examples(items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def _passes(self, item: pytest.Item) -> bool:
        """Run a test by pytest's own hook: those of other plugins around it set the filters for warnings, for one."""
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return not self._failed

    def _recorded(self, items: list[pytest.Item]) -> Reached:
        """Run the tests as they are, in a child: what the program keeps for later is not to be kept here."""
        reading, writing = os.pipe()
        broken: list[str] = []

        def record() -> int:
            os.close(reading)
            found = Reached()
            for item in items:
                began = time.process_time()
                with Tracer(mutant.module.path for mutant in self._mutants) as tracer:
                    if not self._passes(item):
                        broken.append(item.nodeid)
                if tracer.is_lost:
                    found.lost.add(len(found.by_test))
                found.by_test.append(tracer.lines)
                found.seconds.append(time.process_time() - began)
            with os.fdopen(writing, "wb") as stream:
                pickle.dump((found, broken), stream)
            return 0

        self._children.start(record, lambda _: None)
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            found, broken = pickle.load(stream)  # noqa: S301  our own child's
        self._children.finish()
        if broken:
            pytest.exit(f"without any mutant these tests fail: {', '.join(broken)}", returncode=BROKEN)
        return found

    def _try(
        self, mutant: Mutant, items: list[pytest.Item], reached: Reached, functions: dict[tuple[str, str], list[Any]]
    ) -> None:
        tests = reached.tests(mutant)
        swapped = functions.get((str(mutant.module.path), mutant.function), [])
        on_import = reached.on_import(mutant)
        if not mutant.function or not swapped or (not tests and on_import):
            self._told(mutant, None)
            return
        if not tests:
            self._told(mutant, "not reached")
            return

        def work() -> int:
            bound(self._least_seconds, sum(reached.seconds[test] for test in tests))
            if not _swap(mutant, swapped):
                return UNSWAPPED
            return 0 if all(self._passes(items[test]) for test in tests) else FAILED

        def ended(status: int) -> None:
            found = verdict(status)
            self._told(mutant, None if found == "survived" and on_import else found)

        self._children.start(work, ended)


def verdict(status: int) -> Verdict | None:
    """Return what a child's status says of its mutant; None if it could not be tried."""
    if os.WIFSIGNALED(status):
        return "timed out" if os.WTERMSIG(status) in OVER_TIME else "killed"
    code = os.WEXITSTATUS(status)
    if code == BROKEN:
        raise RuntimeError("a mutant could not be tried at all")
    return None if code == UNSWAPPED else "survived" if code == 0 else "killed"


def bound(least_seconds: float, seconds: float) -> None:
    """End this process when it has taken so much more time that it will never end by itself."""
    limit = least_seconds + 4 * seconds
    for each in (signal.SIGPROF, signal.SIGXCPU, signal.SIGALRM):
        signal.signal(each, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, limit)
    whole = math.ceil(limit)
    # The programs that a test starts have no such timer: this one they have.
    resource.setrlimit(resource.RLIMIT_CPU, (whole + 1, whole + 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.alarm(WAITING_SECONDS + whole)


def find_quickly() -> None:
    """Let hypothesis stop at the first example that fails, and remember nothing."""
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    few = hypothesis.settings(max_examples=EXAMPLES, phases=phases, database=None)
    hypothesis.settings.register_profile("mutants", few)
    hypothesis.settings.load_profile("mutants")


class Fresh:
    """The plugin and the import hook of a process that imports a mutated module."""

    def __init__(self, mutant: Mutant | None) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if self._mutant is None or name != self._mutant.module.name:
            return None
        file = str(self._mutant.module.path)
        locations = [str(Path(file).parent)] if Path(file).stem == "__init__" else None
        loader = _Mutated(name, file, self._mutant)
        return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=locations)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        find_quickly()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        limit_examples(items)


class _Mutated(SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._mutant.source, self.path, "exec", dont_inherit=True)


def run_fresh(mutant: Mutant | None, tests: Path) -> int:
    """Import a mutated module and run all tests until one fails, those named after the module first."""
    finder = Fresh(mutant)
    sys.meta_path.insert(0, finder)  # pyright: ignore[reportArgumentType]  a finder by what it does
    own = mutant.module.path.stem if mutant is not None else ""
    files = sorted(tests.rglob("test_*.py"), key=lambda file: (own not in file.stem, file.stat().st_size, file))
    status = pytest.main([*OPTIONS, "-x", *map(str, files)], plugins=[finder])
    return 0 if status == pytest.ExitCode.OK else FAILED


def _functions(paths: set[str]) -> dict[tuple[str, str], list[FunctionType]]:
    found: dict[tuple[str, str], list[FunctionType]] = {}
    gc.unfreeze()  # what was frozen by the tests' own settings would not be seen
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename in paths:
            found.setdefault((each.__code__.co_filename, each.__code__.co_qualname), []).append(each)
    return found


def _swap(mutant: Mutant, functions: list[FunctionType]) -> bool:
    """Give the functions the code of the mutated one; tell whether that could be done."""
    code: CodeType | None = compile(mutant.source, str(mutant.module.path), "exec", dont_inherit=True)
    for name in mutant.function.split("."):
        inner = code.co_consts if code is not None else ()
        code = next((each for each in inner if isinstance(each, CodeType) and each.co_name == name), None)
    if code is None or any(code.co_freevars != each.__code__.co_freevars for each in functions):
        return False
    for each in functions:
        each.__code__ = code
    return True


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
