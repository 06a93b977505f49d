"""DBOS on the workloads: `python -m bench.peers.dbos_runs JSON`, in DBOS's own environment. See README.md here."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from bench.peers import dbos_flows as flows
from bench.peers.shared import (
    REHEARSED,
    STEPS,
    Asked,
    Figures,
    NotDoneError,
    asked,
    effects_of,
    emit,
    end_on_sigterm,
    lead_seconds,
    must,
    order,
    percentiles,
    rss_mb,
    throughput,
    until,
)

DBOS = flows.DBOS
DBOSClient: Any = import_module("dbos").DBOSClient
sa: Any = import_module("sqlalchemy")

QUEUE = "orders"
VERSION = "1"
ENQUEUED_TOGETHER = 1_000
# How many W6 has in the making at once: all 10,000 at once wait for connections, and the first ones time out.
STARTED_AT_ONCE = 64
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")


@dataclass(frozen=True)
class Knobs:
    """How DBOS is used. What is None or as here is its default. README.md has the reason for each.

    `processes` work on a queue, fed by a client; with 0 of them workflows start in the run's own process.
    """

    threads: int | None = None
    pre_ping: bool = True
    wal: bool = False
    processes: int = 0
    worker_concurrency: int | None = None
    poll_seconds: float = 1.0


BEST: dict[tuple[str, str], Knobs] = {
    ("sqlite", "w1"): Knobs(threads=2, pre_ping=False, wal=True),
    ("sqlite", "w5"): Knobs(threads=64, pre_ping=False, wal=True, worker_concurrency=100, poll_seconds=0.05),
    ("sqlite", ""): Knobs(threads=2, pre_ping=False, wal=True),
    ("postgres", "w1"): Knobs(threads=2, pre_ping=False, processes=2, worker_concurrency=100, poll_seconds=0.2),
    ("postgres", "w5"): Knobs(threads=64, pre_ping=False, worker_concurrency=100, poll_seconds=0.05),
    ("postgres", ""): Knobs(threads=4, pre_ping=False),
}


def knobs_of(run: Asked) -> Knobs:
    chosen = Knobs()
    if run.best:
        chosen = BEST.get((run.store, run.workload)) or BEST[run.store, ""]
    return replace(chosen, **run.knobs)


# ---- DBOS itself


def url_of(run: Asked) -> str:
    return f"sqlite:///{run.path / 'dbos.sqlite'}" if run.store == "sqlite" else run.url


def launch(run: Asked, knobs: Knobs, executor: str = "local") -> None:
    config: dict[str, Any] = {
        "name": "orders",
        "system_database_url": url_of(run),
        "log_level": "ERROR",
        "application_version": VERSION,
        "executor_id": executor,
    }
    if run.store == "postgres":
        config["dbos_system_schema"] = run.schema
    if knobs.threads is not None:
        config["max_executor_threads"] = knobs.threads
    if not knobs.pre_ping:
        config["db_engine_kwargs"] = {"pool_pre_ping": False}
    DBOS(config=config)
    DBOS.launch()


def register_queue(knobs: Knobs) -> None:
    DBOS.register_queue(
        QUEUE,
        worker_concurrency=knobs.worker_concurrency,
        polling_interval_sec=knobs.poll_seconds,
        on_conflict="always_update",
    )


def prepare(run: Asked, knobs: Knobs) -> None:
    """Set what belongs to the database: in SQLite the journal is the file's own property."""
    if run.store == "sqlite" and knobs.wal:
        connection = sqlite3.connect(run.path / "dbos.sqlite")
        must("journal", connection.execute("PRAGMA journal_mode = WAL").fetchone()[0], "wal")
        connection.close()


class Database:
    """What DBOS has stored, read beside it; and whether it is durable."""

    def __init__(self, run: Asked, knobs: Knobs) -> None:
        self._run = run
        self._knobs = knobs
        driver = url_of(run).replace("postgresql://", "postgresql+psycopg://", 1)
        self.engine: Any = sa.create_engine(driver)
        self._tables = "" if run.store == "sqlite" else f'"{run.schema}".'

    def _scalar(self, query: str) -> Any:
        with self.engine.connect() as connection:
            return connection.execute(sa.text(query)).scalar()

    def completed(self) -> int:
        return self._scalar(f"SELECT count(*) FROM {self._tables}workflow_status WHERE status = 'SUCCESS'")  # noqa: S608  our own names

    def steps(self) -> int:
        return self._scalar(f"SELECT count(*) FROM {self._tables}operation_outputs")  # noqa: S608  our own names

    def size(self) -> int:
        if self._run.store == "postgres":
            return self._scalar(
                "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class AS c"  # noqa: S608  our own names
                " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
                f" WHERE n.nspname = '{self._run.schema}' AND c.relkind = 'r'"
            )
        with self.engine.connect() as connection:
            connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
        return (self._run.path / "dbos.sqlite").stat().st_size

    def check_done(self, instances: int, steps: int) -> None:
        must("completed workflows", self.completed(), instances)
        must("recorded steps", self.steps(), steps)
        if self._run.store == "sqlite":
            must("journal", self._scalar("PRAGMA journal_mode"), "wal" if self._knobs.wal else "delete")

    def check_durable(self) -> None:
        """Ask a connection of DBOS's own, in the process that uses it."""
        # No public way leads there; a newer DBOS that has moved it gets no figure.
        own = import_module("dbos._dbos")._get_dbos_instance()._sys_db.engine  # noqa: SLF001
        with own.connect() as connection:
            if self._run.store == "sqlite":
                must("synchronous (2 is FULL)", connection.execute(sa.text("PRAGMA synchronous")).scalar(), 2)
                return
            for name in DURABLE:
                must(name, connection.execute(sa.text(f"SHOW {name}")).scalar(), "on")


def enqueue(run: Asked, n: int, *, together: bool) -> None:
    """Enqueue orders as a client does: one by one, or many in a transaction of the client's own."""
    engine = sa.create_engine(url_of(run).replace("postgresql://", "postgresql+psycopg://", 1))
    client = DBOSClient(system_database_engine=engine, dbos_system_schema=run.schema or "dbos")
    options = {"workflow_name": flows.fulfil.__qualname__, "queue_name": QUEUE, "app_version": VERSION}
    if not together:
        for number in range(n):
            client.enqueue(options, order(number))
    for begin in range(0, n if together else 0, ENQUEUED_TOGETHER):
        with engine.begin() as connection:
            for number in range(begin, min(n, begin + ENQUEUED_TOGETHER)):
                client.enqueue_in_transaction(connection, options, order(number))
    client.destroy()
    engine.dispose()


class Worker:
    """A process that works on the queue. It ends when its input does."""

    def __init__(self, run: Asked, executor: str, ledger: Path | None = None) -> None:
        environment = dict(os.environ) | ({} if ledger is None else {flows.LEDGER: str(ledger)})
        self.process = subprocess.Popen(  # noqa: S603  this very package
            [sys.executable, "-m", "bench.peers.dbos_runs", json.dumps(asdict(run)), executor],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def ready(self) -> None:
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline()) != "ready\n":
            if not line:
                raise NotDoneError(f"the worker ended with exit code {self.process.wait()}")

    def kill(self) -> None:
        """Kill -9."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def work(run: Asked, executor: str) -> None:
    """Be such a process."""
    knobs = knobs_of(run)
    launch(run, knobs, executor)
    register_queue(knobs)
    Database(run, knobs).check_durable()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


@contextmanager
def schema_made(run: Asked, knobs: Knobs) -> Generator[None]:
    """Let DBOS make its tables and the queue, and be away again."""
    launch(run, knobs)
    register_queue(knobs)
    DBOS.destroy()
    yield


# ---- the workloads


def w1(run: Asked, knobs: Knobs, database: Database) -> Figures:
    n = run.n
    if knobs.processes:
        return _w1_by_processes(run, knobs, database)
    launch(run, knobs)
    database.check_durable()
    empty, begun = database.size(), time.perf_counter()
    handles = [DBOS.start_workflow(flows.fulfil, order(number)) for number in range(n)]
    for handle in handles:
        handle.get_result()
    seconds = time.perf_counter() - begun
    database.check_done(n, len(STEPS) * n)
    size = round((database.size() - empty) / n)
    return {**throughput(n, seconds), "disk_bytes_per_instance": size, "rss_mb": rss_mb()}


def _w1_by_processes(run: Asked, knobs: Knobs, database: Database) -> Figures:
    n = run.n
    with schema_made(run, knobs):
        workers = [Worker(run, f"worker-{number}") for number in range(knobs.processes)]
    try:
        for worker in workers:
            worker.ready()
        empty, begun = database.size(), time.perf_counter()
        enqueue(run, n, together=True)
        until(database.completed, n)
        seconds = time.perf_counter() - begun
        memory = rss_mb([worker.process.pid for worker in workers])
    finally:
        for worker in workers:
            worker.kill()
    database.check_done(n, len(STEPS) * n)
    size = round((database.size() - empty) / n)
    return {**throughput(n, seconds), "disk_bytes_per_instance": size, "rss_mb": memory}


def w2(run: Asked, knobs: Knobs, database: Database) -> Figures:
    launch(run, knobs)
    database.check_durable()
    took: list[float] = []
    for number in range(run.n):
        begun = time.perf_counter()
        DBOS.start_workflow(flows.fulfil, order(number)).get_result()
        took.append(time.perf_counter() - begun)
    database.check_done(run.n, len(STEPS) * run.n)
    return {**percentiles(took), "rss_mb": rss_mb()}


def w3(run: Asked, knobs: Knobs, database: Database) -> Figures:
    launch(run, knobs)
    database.check_durable()
    begun = time.perf_counter()
    must("calls", DBOS.start_workflow(flows.chain, order(0), run.n).get_result(), run.n)
    seconds = time.perf_counter() - begun
    database.check_done(1, run.n)
    return {"seconds": round(seconds, 4), "rss_mb": rss_mb()}


def w4(run: Asked, knobs: Knobs, database: Database) -> Figures:
    launch(run, knobs)
    database.check_durable()

    async def joined() -> int:
        handle = await DBOS.start_workflow_async(flows.fan_out, order(0), run.n)
        return await handle.get_result()

    begun = time.perf_counter()
    must("joined", asyncio.run(joined()), run.n)
    seconds = time.perf_counter() - begun
    database.check_done(1, run.n)
    return {"seconds": round(seconds, 4), "rss_mb": rss_mb()}


def w5(run: Asked, knobs: Knobs, database: Database) -> Figures:
    n, ledger = run.n, run.path / "effects"
    with schema_made(run, knobs):
        # Before anybody works, so that all have been accepted at the kill.
        enqueue(run, n, together=True)
    with Worker(run, "worker", ledger):
        until(database.completed, n // 3)
    at_kill = database.completed()
    if at_kill == n:
        raise NotDoneError("all had completed before the kill")
    begun = time.perf_counter()
    with Worker(run, "worker", ledger) as second:
        until(database.completed, n)
        seconds = time.perf_counter() - begun
        memory = rss_mb([second.process.pid])
    database.check_done(n, len(STEPS) * n)
    return {"seconds": round(seconds, 3), "completed_at_kill": at_kill, **effects_of(ledger, n), "rss_mb": memory}


def w6(run: Asked, knobs: Knobs, database: Database) -> Figures:
    launch(run, knobs)
    database.check_durable()
    figures = asyncio.run(_slept(run.n))
    database.check_done(run.n + REHEARSED, run.n + REHEARSED)
    return {**figures, "rss_mb": rss_mb()}


async def _slept(n: int) -> Figures:
    begun = time.perf_counter()
    await _woken(await _asleep(REHEARSED, time.time()))
    due = time.time() + lead_seconds(n, time.perf_counter() - begun)
    handles = await _asleep(n, due)
    if time.time() >= due:
        raise NotDoneError("they were due before all had been put to sleep")
    await asyncio.sleep(due - time.time())  # what is measured begins when they are due
    asleep = rss_mb()
    await _woken(handles)
    return {"late_s": round(time.time() - due, 4), "asleep_rss_mb": asleep}


async def _asleep(n: int, due: float) -> list[Any]:
    limit = asyncio.Semaphore(STARTED_AT_ONCE)

    async def start() -> Any:
        async with limit:
            return await DBOS.start_workflow_async(flows.sleeper, due)

    return await asyncio.gather(*[start() for _ in range(n)])


async def _woken(handles: list[Any]) -> None:
    await asyncio.gather(*[handle.get_result() for handle in handles])


RUNS: dict[str, Callable[[Asked, Knobs, Database], Figures]] = {
    "w1": w1, "w2": w2, "w3": w3, "w4": w4, "w5": w5, "w6": w6,
}  # fmt: skip


def main(text: str) -> None:
    run = asked(text)
    knobs = knobs_of(run)
    prepare(run, knobs)
    figures = RUNS[run.workload](run, knobs, Database(run, knobs))
    emit({**figures, "version": importlib.metadata.version("dbos"), "threads": threading.active_count()})


if __name__ == "__main__":
    end_on_sigterm()
    code = 1
    try:
        if len(sys.argv) > 2:
            work(asked(sys.argv[1]), sys.argv[2])
        else:
            main(sys.argv[1])
        code = 0
    except NotDoneError as reason:
        sys.stderr.write(f"no figure: {reason}\n")
    except Exception:  # noqa: BLE001  it is shown whole
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Its threads are many, and need not be joined: what counts is on the disk.
        os._exit(code)
