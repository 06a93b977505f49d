"""Kills a process at each crash point, lets another one go on, and has the end judged.

Each process is forked from one that has imported everything and runs no thread (multiprocessing's fork server), and
begins with a copy of a prepared database: a file, or a database made from a template.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit, urlunsplit

from tests.proof.crash.evidence import sample
from tests.proof.crash.files import Lines, Place
from tests.proof.crash.tables import Database
from tests.proof.crash_points.client import PATIENCE_SECONDS
from tests.proof.crash_points.doomed_process import Life, live, note_of
from tests.proof.crash_points.judge import Ending, judged
from tests.proof.crash_points.points import NEVER, Point
from tests.proof.crash_points.scenario import Scenario
from tests.support.forking import fork_server

LIFE_SECONDS: Final = 180.0
GONE_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.001
LOG_LINES: Final = 20


class Store(Protocol):
    """Where databases are."""

    def address(self, place: Place) -> None:
        """Give a run a database of its own, without anything in it."""
        ...

    def copy(self, source: Place, target: Place) -> None:
        """Give a run a copy of another's database. Its other files are copied already."""
        ...

    def wait_until_gone(self, place: Place) -> None:
        """Return when the store has seen that a killed process is gone."""
        ...

    def drop(self, place: Place) -> None:
        """Remove a run's database. Its files are removed by others."""
        ...


class Files:
    """SQLite: the database is one of the run's files."""

    def address(self, place: Place) -> None: ...

    def copy(self, source: Place, target: Place) -> None: ...

    def wait_until_gone(self, place: Place) -> None: ...

    def drop(self, place: Place) -> None: ...


class OnServer:
    """PostgreSQL: databases on one server. A copy is made from a template."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._admin = Database(server)
        self._numbers = count(1)

    def close(self) -> None:
        self._admin.close()

    def address(self, place: Place) -> None:
        self._admin.rows(f"CREATE DATABASE {self._named(place)}")

    def copy(self, source: Place, target: Place) -> None:
        self.wait_until_gone(source)
        template = _database(source)
        self._admin.rows(f"CREATE DATABASE {self._named(target)} TEMPLATE {template} STRATEGY file_copy")

    def wait_until_gone(self, place: Place) -> None:
        ends = time.monotonic() + GONE_SECONDS
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = ?1"
        while self._admin.rows(sessions, _database(place))[0][0]:
            if time.monotonic() > ends:
                raise TimeoutError(f"sessions of a dead process are still in {_database(place)}")
            time.sleep(LOOK_SECONDS)  # between two looks at the sessions

    def drop(self, place: Place) -> None:
        self._admin.rows(f"DROP DATABASE {_database(place)} WITH (FORCE)")

    def _named(self, place: Place) -> str:
        name = f"crash_point_{next(self._numbers)}_{time.monotonic_ns()}"
        place.use(urlunsplit(urlsplit(self._server)._replace(path=f"/{name}")))
        return name


def _database(place: Place) -> str:
    return urlsplit(place.url).path.removeprefix("/")


class BrokenError(Exception):
    """A scenario cannot even be told without a crash."""


@dataclass(frozen=True)
class Prepared:
    """A scenario with a database to copy, what a run without a crash came to, and the points that it had."""

    scenario: Scenario
    template: Place
    ending: Ending
    points: list[str]


@dataclass(frozen=True)
class Crash:
    """What came of one kill: where it was, and what was wrong afterwards."""

    point: Point
    where: str
    faults: tuple[str, ...]


class Runner:
    """Runs scenarios on one store. `plant` is a bug that every process has, but for those that only prepare."""

    def __init__(self, folder: Path, store: Store, plant: str | None = None) -> None:
        self._folder = folder
        self._store = store
        self._plant = plant
        self._runs = count(1)
        self._processes = fork_server()

    def prepare(self, scenario: Scenario) -> Prepared:
        """Make the database that every run begins with, and tell the scenario once without a crash."""
        template = self._place()
        self._store.address(template)
        self._must(self._life(scenario, template, 0, before=True))
        self._store.wait_until_gone(template)
        if scenario.age is not None:
            scenario.age(template)
        run = self._copy(template)
        try:
            self._must(self._life(scenario, run, 1, plant=self._plant))
            ending, faults = judged(scenario, run)
            if faults:
                raise BrokenError(f"{scenario.name} without a crash: {'; '.join(faults)}")
            return Prepared(scenario, template, ending, self._passed(run))
        finally:
            self._remove(run)

    def crash(self, prepared: Prepared, point: Point, patience_seconds: float = PATIENCE_SECONDS) -> Crash | None:
        """Kill a process at a crash point, let another go on, and judge. None: there is no such point.

        The other one has that patience with what does not come.
        """
        scenario, run = prepared.scenario, self._copy(prepared.template)
        try:
            life = self._life(scenario, run, 1, last=point, plant=self._plant)
            code = self._lived(life)
            if code == 0:
                return None
            if code != -signal.SIGKILL:
                return Crash(point, "no point", (f"the process ended with {code}", *log_of(run)))
            where = self._passed(run)[-1]
            self._store.wait_until_gone(run)
            if scenario.age is None and (found := sample(run, 1, pays=False)) is not None:
                Lines(run.samples).add(sync=False, **found)
            code = self._lived(replace(life, number=2, last=NEVER, patience_seconds=patience_seconds))
            self._store.wait_until_gone(run)
            _, faults = judged(scenario, run, prepared.ending)
            ended = [] if code == 0 else [f"the next process ended with {code}", *log_of(run)]
            return Crash(point, where, (*faults, *ended))
        finally:
            self._remove(run)

    def remove(self, prepared: Prepared) -> None:
        """Remove what was prepared."""
        self._remove(prepared.template)

    def _life(self, scenario: Scenario, place: Place, number: int, **more: Any) -> Life:
        return Life(scenario.name, place.folder, number, **more)

    def _live(self) -> Callable[[Any], None]:
        """Return what a process does with its life."""
        return live

    def _passed(self, place: Place) -> list[str]:
        """Return the points that a process has passed."""
        return note_of(place).read_text().splitlines()

    def _must(self, life: Life) -> None:
        if (code := self._lived(life)) != 0:
            log = "\n".join(log_of(Place(life.folder)))
            raise BrokenError(f"{life.scenario} ended with {code} though nobody killed it:\n{log}")

    def _lived(self, life: Life) -> int | None:
        """Return the exit code of a process that lived so; None if it did not come to its end."""
        process = self._processes.Process(target=self._live(), args=(life,))
        process.start()
        process.join(LIFE_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            return None
        return process.exitcode

    def _place(self) -> Place:
        folder = self._folder / f"run-{next(self._runs)}"
        folder.mkdir()
        return Place(folder)

    def _copy(self, template: Place) -> Place:
        run = self._place()
        shutil.copytree(template.folder, run.folder, dirs_exist_ok=True)
        self._store.copy(template, run)
        return run

    def _remove(self, place: Place) -> None:
        self._store.drop(place)
        shutil.rmtree(place.folder)


def log_of(place: Place) -> list[str]:
    return place.log.read_text().splitlines()[-LOG_LINES:] if place.log.exists() else []
