"""Handlers in processes: real ones, some of them killed on purpose."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Context, DoNotRetryError, Mainspring, Retry
from mainspring.app.given import MOST_PROCESSES
from mainspring.app.internals import internals_of
from mainspring.engine.handlers.process_pool import Child, ProcessPool
from mainspring.engine.inputs.pending import NEVER_US
from mainspring.engine.runtime import Runtime
from mainspring.errors import SettingError, WiringError
from mainspring.testing import simulate
from mainspring.testing.clock import VirtualClock
from tests.engine.computing import (
    FOLDER,
    OddError,
    dies,
    does,
    exits,
    hangs,
    hangs_at_first,
    many,
    noted,
    odd,
    raises_odd,
    raises_open,
    refuses,
    returns_a_lock,
    shadowed_one,
    with_files,
)
from tests.engine.jobs import QUICK, Done, Job, Start, Work, has_status, job
from tests.support.apps import MakeApp
from tests.support.paths import ROOT
from tests.support.running import run
from tests.support.waiting import until

TIMEOUT = timedelta(seconds=5)
PATIENCE_SECONDS = 60.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the processes write what they do; they inherit its name."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return tmp_path


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    pool = ProcessPool(2)
    yield pool
    pool.close()


def notes(folder: Path) -> list[list[str]]:
    path = folder / "notes"
    return [line.split(" ", 1) for line in path.read_text().splitlines()] if path.exists() else []


def is_gone(pid: int) -> bool:
    try:
        # A zombie is one that its parent has not asked for yet.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter where it ends between opening and reading
        return True


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_gone(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.001)  # it is no child of ours: its end has to be looked for


# ---- calls


def called(pool: ProcessPool, function: Callable[[], Any]) -> Any:
    return asyncio.run(pool.call(does, function, lambda: None))


def test_a_handler_runs_in_another_process_and_its_result_is_recorded(make_app: MakeApp, folder: Path) -> None:
    async def main() -> None:
        async with job(make_app(), noted, executor="process") as app:
            await (await app.send(Start("j-1", times=3))).result()

    run(main)
    assert sorted(text for _, text in notes(folder)) == ["part 0", "part 1", "part 2"]
    assert str(os.getpid()) not in {pid for pid, _ in notes(folder)}


def test_there_are_no_more_processes_than_allowed_and_none_after_the_stop(folder: Path) -> None:
    async def main() -> None:
        app = Mainspring("memory://", processes=2)
        async with job(app, noted, executor="process"):
            await (await app.send(Start("j-1", times=20))).result()

    run(main)
    pids = {int(pid) for pid, _ in notes(folder)}
    assert len(notes(folder)) == 20
    assert 1 <= len(pids) <= 2
    assert all(map(is_gone, pids))


def test_a_killed_process_costs_one_attempt_and_the_pool_comes_back(folder: Path) -> None:
    async def main() -> None:
        app = Mainspring("memory://", processes=1)
        async with job(app, hangs_at_first, executor="process", retry=QUICK):
            receipt = await app.send(Start("j-1", times=2))
            await until(lambda: bool(notes(folder)))
            os.kill(int(notes(folder)[0][0]), signal.SIGKILL)
            await receipt.result()

    run(main)
    texts = [text for _, text in notes(folder)]
    assert sorted(texts) == ["part 0", "part 0", "part 1"]
    assert len({pid for pid, _ in notes(folder)}) == 2


def test_an_attempt_over_its_time_is_killed_and_made_again(folder: Path) -> None:
    clock = VirtualClock()

    async def main() -> None:
        app = Mainspring("memory://", runtime=Runtime(clock))
        async with job(app, hangs_at_first, executor="process", retry=QUICK, timeout=TIMEOUT):
            await app.send(Start("j-1"))
            await until(lambda: bool(notes(folder)))
            await until(lambda: is_timed(app))
            clock.advance(TIMEOUT.total_seconds())
            await until(lambda: is_gone(int(notes(folder)[0][0])))
            await until(lambda: is_completed(app))

    def is_timed(app: Mainspring) -> bool:
        """Tell whether the engine has heard that the attempt began: its time runs from then on."""
        running = (
            job
            for runner in internals_of(app).engine.dispatcher.runners
            for jobs in runner.running.values()
            for job in jobs
        )
        return any(job.deadline_us != NEVER_US for job in running)

    async def is_completed(app: Mainspring) -> bool:
        clock.advance(0.001)  # what is tried again waits a moment
        return await has_status(app, "j-1", "completed")

    run(main)
    assert [text for _, text in notes(folder)] == ["part 0", "part 0"]


def test_a_cancelled_instance_ends_its_process(folder: Path) -> None:
    async def main() -> None:
        async with job(Mainspring("memory://"), hangs, executor="process") as app:
            await app.send(Start("j-1"))
            await until(lambda: bool(notes(folder)))
            await app.instance(Job, "j-1").cancel()
            await until(lambda: is_gone(int(notes(folder)[0][0])))
            assert await has_status(app, "j-1", "cancelled")

    run(main)


def test_a_stop_that_has_no_more_patience_ends_the_process_and_the_command_waits(folder: Path) -> None:
    def app() -> Mainspring:
        return job(Mainspring(f"sqlite:///{folder}/kept.db"), hangs_at_first, executor="process")

    async def first() -> None:
        stopped = app()
        await stopped.start()
        await stopped.send(Start("j-1"))
        await until(lambda: bool(notes(folder)))
        await stopped.stop(drain=timedelta(0))
        assert is_gone(int(notes(folder)[0][0]))

    async def second() -> None:
        async with app() as started:
            await started.instance(Job, "j-1").result()

    run(first)
    run(second)
    assert [text for _, text in notes(folder)] == ["part 0", "part 0"]


def test_errors_that_are_never_tried_again_are_known_by_their_type(folder: Path) -> None:
    async def main() -> None:
        app = Mainspring("memory://")
        async with job(app, odd, executor="process", retry=Retry(max_attempts=5, never=(OddError,))):
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            assert letter.error == "OddError: 7: no"

    run(main)
    assert len(notes(folder)) == 1


def test_a_batch_goes_to_a_process_as_a_whole(folder: Path) -> None:
    async def main() -> None:
        app = job(Mainspring("memory://"), many, executor="process", batch=3, retry=Retry(max_attempts=1))
        async with app:
            await app.send(Start("j-1", times=3))
            await until(lambda: has_status(app, "j-1", "suspended"))

    run(main)
    assert [text for _, text in notes(folder)] == ["batch of 3"]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are not shown here")
def test_a_process_inherits_no_open_database(folder: Path) -> None:
    async def main() -> None:
        app = job(Mainspring(f"sqlite:///{folder}/kept.db"), with_files, executor="process")
        async with app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert notes(folder)
    assert [text for _, text in notes(folder) if "kept.db" in text] == []


def test_what_a_function_raises_is_raised_here_with_where_it_was(pool: ProcessPool) -> None:
    with pytest.raises(OddError, match="7: no") as caught:
        called(pool, raises_odd)

    assert caught.value.code == 7
    assert "in raises_odd" in caught.value.__notes__[0]
    with pytest.raises(DoNotRetryError, match="never"):
        called(pool, refuses)
    with pytest.raises(RuntimeError, match="OpenError: a lock"):
        called(pool, raises_open)
    with pytest.raises(RuntimeError, match="raised SystemExit"):
        called(pool, exits)
    with pytest.raises(TypeError, match="cannot pickle"):
        called(pool, returns_a_lock)
    assert len(pool.pids) == 1, "none of these ends a process"


def test_a_process_that_dies_is_named_with_its_exit_code_and_replaced(pool: ProcessPool) -> None:
    with pytest.raises(ChildProcessError, match="exit code 3 in the middle of the call"):
        called(pool, dies)

    assert called(pool, os.getpid) == pool.pids[0]


def test_a_process_that_died_without_work_costs_nobody_an_attempt(pool: ProcessPool) -> None:
    first = called(pool, os.getpid)
    os.kill(first, signal.SIGKILL)
    wait_until_gone(first)

    assert called(pool, os.getpid) not in {first, os.getpid()}


def test_a_process_whose_death_is_not_seen_yet_costs_nobody_an_attempt_either(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = called(pool, os.getpid)
    os.kill(first, signal.SIGKILL)
    monkeypatch.setattr(Child, "is_alive", lambda _: True)

    assert called(pool, os.getpid) not in {first, os.getpid()}
    assert len(pool.pids) == 1


def test_a_signal_to_all_leaves_the_processes_to_their_worker(pool: ProcessPool) -> None:
    first = called(pool, os.getpid)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(first, number)

    assert called(pool, os.getpid) == first


ORPHAN = """
import asyncio, os, time
from mainspring.engine.handlers.process_pool import ProcessPool
if __name__ == "__main__":
    pool = ProcessPool(1)
    asyncio.run(pool.call(print, os.getpid(), lambda: None))
    print(*pool.pids, flush=True)
    asyncio.run(pool.call(time.sleep, 600, lambda: None))
"""


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="processes are not shown here")
def test_a_process_ends_with_a_worker_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    with subprocess.Popen([sys.executable, "-u", script], stdout=subprocess.PIPE, cwd=ROOT) as worker:  # noqa: S603  ours
        assert worker.stdout is not None
        worker.stdout.readline()
        pid = int(worker.stdout.readline())
        worker.kill()
    wait_until_gone(pid)


def test_a_script_without_a_guard_is_told_what_it_lacks(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(ORPHAN.replace('if __name__ == "__main__":', "if True:"))

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603  ours

    assert 'under `if __name__ == "__main__":`' in done.stderr


def test_a_simulation_calls_it_in_its_own_world(folder: Path) -> None:
    app = job(Mainspring("memory://"), noted, executor="process")

    async def main() -> None:
        async with simulate(app) as world:
            await (await world.app.send(Start("j-1"))).result()

    run(main)
    assert notes(folder) == [[str(os.getpid()), "part 0"]]


# ---- wiring


async def asynchronous(command: Work) -> Done:
    raise NotImplementedError


def with_context(command: Work, context: Context) -> Done:
    raise NotImplementedError


class Desk:
    def work(self, command: Work) -> Done:
        raise NotImplementedError


def local() -> Callable[[Work], Done]:
    def work(command: Work) -> Done:
        raise NotImplementedError

    return work


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (asynchronous, "is async"),
        (with_context, "takes a context: heartbeats, resources and the envelope are not there"),
        (Desk().work, "is not at the top of a module"),
        (local(), "is not at the top of a module"),
    ],
)
def test_what_no_process_could_run_is_refused_when_it_is_registered(function: Any, problem: str) -> None:
    with pytest.raises(WiringError, match=f"runs in a process and {problem}") as caught:
        Mainspring("memory://").handler(executor="process")(function)

    assert "`def " in str(caught.value)


def test_other_executors_are_refused() -> None:
    with pytest.raises(WiringError, match="has executor='gpu'"):
        Mainspring("memory://").handler(executor="gpu")(noted)  # pyright: ignore[reportCallIssue, reportArgumentType]  on purpose


def test_a_subscriber_does_not_run_in_a_process() -> None:
    options: Any = {"executor": "process"}
    with pytest.raises(WiringError, match="subscribes and would run in a process"):
        Mainspring("memory://").subscribe(**options)(noted)


@pytest.mark.parametrize("processes", [0, -1, True, 1.5, "2", MOST_PROCESSES + 1])
def test_a_number_of_processes_that_makes_no_sense_is_refused(processes: Any) -> None:
    with pytest.raises(SettingError, match="processes"):
        Mainspring("memory://", processes=processes)


def test_a_name_that_stands_for_something_else_is_found_at_the_start() -> None:
    app = job(Mainspring("memory://"), shadowed_one, executor="process")

    async def main() -> None:
        await app.start()

    with pytest.raises(WiringError, match="where shadowed cannot be found"):
        run(main)


def test_a_message_that_no_process_finds_is_found_at_the_start() -> None:
    @dataclass(frozen=True)
    class Hidden:
        id: str

    def work(command: Any) -> None: ...

    work.__annotations__ = {"command": Hidden, "return": None}
    work.__qualname__ = "work"
    app = Mainspring("memory://")
    app.add(Job())
    app.handler(executor="process")(work)

    async def main() -> None:
        await app.start()

    with pytest.raises(WiringError, match="cannot be found"):
        run(main)
