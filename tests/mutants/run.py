"""Tries mutants on the tests of a folder: in forks of one session where that will do, in fresh processes otherwise."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

import pytest

from tests.mutants.mutations import Mutant
from tests.mutants.session import BROKEN, OPTIONS, Children, Session, Verdict, bound, run_fresh, verdict

SHARED: Final = ("hypothesis.internal.conjecture.engine", "msgspec", "pydantic")
"""What every fresh process needs, and is no part of the program: imported once, here."""
FRESH_SECONDS: Final = 60.0
"""A few times what all tests of a folder take of the processor's time, the imports with them."""


@dataclass(frozen=True)
class Tried:
    """A mutant, and what became of it."""

    mutant: Mutant
    verdict: Verdict

    @property
    def is_killed(self) -> bool:
        return self.verdict in ("killed", "timed out")


class Progress:
    """Tells on one line how far it has come."""

    def __init__(self, total: int, name: str, stream: TextIO = sys.stderr) -> None:
        self._total, self._name, self._stream = total, name, stream
        self._done = self._alive = 0
        self._began = time.monotonic()

    def tell(self, tried: Tried) -> None:
        self._done += 1
        self._alive += not tried.is_killed
        if not tried.is_killed:
            print(f"{tried.verdict}: {tried.mutant}", file=self._stream, flush=True)
        seconds = time.monotonic() - self._began
        end = "\r" if self._stream.isatty() and self._done < self._total else "\n"
        if end == "\r" or self._done % 200 == 0 or self._done == self._total:
            line = f"{self._name}: {self._done} of {self._total} mutants, {self._alive} survived, {seconds:.0f} s"
            print(line, end=end, file=self._stream, flush=True)


def try_all(mutants: Sequence[Mutant], tests: Path, jobs: int, least_seconds: float) -> list[Tried]:
    """Try all mutants of one package on the tests of one folder."""
    progress = Progress(len(mutants), tests.name)
    done: dict[int, Tried] = {}
    left: list[int] = []

    def told(place: int, found: Verdict | None) -> None:
        if found is None:
            left.append(place)
        else:
            done[place] = Tried(mutants[place], found)
            progress.tell(done[place])

    for place, found in _in_one_session(mutants, tests, jobs, least_seconds):
        told(place, found)
    fresh = FreshProcesses(tests, jobs)
    for place in left.copy():
        fresh.start(mutants[place], lambda found, place=place: told(place, found))
    fresh.finish()
    return [done[place] for place in range(len(mutants))]


class FreshProcesses:
    """Processes that import the program anew. The first of all has no mutant in it: its tests have to pass."""

    def __init__(self, tests: Path, jobs: int) -> None:
        self._tests = tests
        self._children = Children(jobs)
        self._passed: bool | None = None

    def start(self, mutant: Mutant, told: Callable[[Verdict | None], None]) -> None:
        if self._passed is None:
            for name in SHARED:
                importlib.import_module(name)
            self._run(None, self._checked)
            self._children.finish()
        self._run(mutant, told)

    def finish(self) -> None:
        self._children.finish()

    def _run(self, mutant: Mutant | None, told: Callable[[Verdict | None], None]) -> None:
        def work() -> int:
            bound(FRESH_SECONDS, 0)
            return run_fresh(mutant, self._tests)

        self._children.start(work, lambda status: told(verdict(status)))

    def _checked(self, found: Verdict | None) -> None:
        self._passed = found == "survived"
        if not self._passed:
            raise SystemExit(f"the tests of {self._tests} fail in a process of their own, without any mutant: {found}")


def _in_one_session(
    mutants: Sequence[Mutant], tests: Path, jobs: int, least_seconds: float
) -> Iterator[tuple[int, Verdict | None]]:
    """Yield the verdicts of a session, which runs in a child: nothing of the program is imported here."""
    reading, writing = os.pipe()
    places = {id(mutant): place for place, mutant in enumerate(mutants)}
    pid = os.fork()
    if pid == 0:
        status = BROKEN
        try:
            os.close(reading)
            os.dup2(2, 1)  # what pytest says is no part of the report
            with os.fdopen(writing, "wb", buffering=0) as stream:

                def told(mutant: Mutant, found: Verdict | None) -> None:
                    stream.write(pickle.dumps((places[id(mutant)], found)))

                session = Session(mutants, jobs, least_seconds, told)
                status = pytest.main([*OPTIONS, str(tests)], plugins=[session])
        except BaseException:  # noqa: BLE001  it ends here, and is told
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        while True:
            try:
                yield pickle.load(stream)  # noqa: S301  our own child's
            except EOFError:
                break
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise SystemExit(f"the tests of {tests} cannot be collected, or fail without any mutant")
