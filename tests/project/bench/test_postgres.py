"""Every bench runs on PostgreSQL too, with default durability, and its checks can fail. No figure is asserted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from bench.__main__ import main
from bench.apps import everything
from bench.catalogue import BENCHES
from bench.checks import NotDoneError, all_completed, stream_lengths, until_completed
from bench.compare import compare
from bench.fill import fill, finished
from bench.idle import check
from bench.limit_postgres import latency, throughput
from bench.limit_rows import APPEND, Tables, tables
from bench.processes import Workers
from bench.rounds import measured
from bench.servers import DEFAULTS, connection, drop_schema, measured_server
from bench.settings import Settings
from bench.workflows import order, order_id
from mainspring.app.internals import internals_of
from mainspring.errors import DamagedRecordError
from mainspring.port.records import InstanceFilter, Ref
from mainspring.stores.postgres.statements import within
from tests.support.postgres.server import VARIABLE, Server, Unavailable, shared_server

# W5's orders must not all complete before somebody sees that a third has.
SIZES = {"w2": 5, "w3": 20, "w4": 20, "w5": 1_000, "w5-restart": 100, "replay": 50, "limit-loop": 5}
SCHEMAS = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench\\_%'"


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    """A server as one has it by default: the other tests' one forgets what it wrote."""
    if given := os.environ.get(VARIABLE):
        yield given
        return
    try:
        own = Server(settings=DEFAULTS)
        own.start()
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    yield own.url
    own.remove()


@pytest.fixture
def settings(server: str, tmp_path: Path) -> Generator[Settings]:
    made = Settings(str(tmp_path), "postgres", n=30, chunk=10, batch=10, server=server, schema=f"b{uuid4().hex[:12]}")
    yield made
    asyncio.run(drop_schema(made))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.measure.FSYNCS", 2)
    # The moment must not have come before all are asleep, on the busiest machine.
    monkeypatch.setattr("bench.w6.SHORTEST_SLEEP_SECONDS", 30.0)
    monkeypatch.setattr("bench.idle.SETTLE_SECONDS", 0.0)
    monkeypatch.setattr("bench.idle.IDLE_SECONDS", 0.1)
    monkeypatch.setattr("bench.isolation.PASSES", 1)
    monkeypatch.setattr("bench.isolation.SECONDS", 0.1)
    monkeypatch.setattr("bench.isolation.BURST", 150)
    monkeypatch.setattr("bench.isolation.SECONDS_BETWEEN_BURSTS", 0.05)
    monkeypatch.setattr("bench.idle.PAIRS", 2)
    monkeypatch.setattr("bench.computing.PASSES", 1)
    monkeypatch.setattr("bench.growth.REPEATS", 1)
    for name in ("ORDERS", "NAPS", "AT_ONCE", "NOTES", "COLD_NOTES"):
        monkeypatch.setattr(f"bench.growth_axes.{name}", 5)
    monkeypatch.setattr("bench.growth_axes.NAP_SECONDS", 0.1)


def sized(settings: Settings, **changed: Any) -> Settings:
    return Settings(**{name: getattr(settings, name) for name in settings.__struct_fields__} | changed)


# ---- they run


# Those that do something of their own there; the others run on SQLite above all, and there in test_bench.py.
ON_POSTGRES = ("w1", "w2", "w3", "w4", "w5-restart", "limit", "limit-bulk", "limit-loop", "replay")
# W5 crashes a server of its own under four workers; W6 waits.
IN_A_SOAK = ("w5", "w6")


@pytest.mark.parametrize("name", [*ON_POSTGRES, *(pytest.param(name, marks=pytest.mark.soak) for name in IN_A_SOAK)])
def test_a_bench_measures_on_postgres(name: str, settings: Settings) -> None:
    figures = measured(name, sized(settings, n=SIZES.get(name, 30), chunk=100 if name == "w5" else 10))

    assert figures[BENCHES[name].figure] > 0
    assert json.loads(json.dumps(figures)) == figures


def test_orders_are_done_by_processes_of_their_own(settings: Settings) -> None:
    figures = measured("w1", sized(settings, workers=2))

    assert figures["workers"] == 2
    assert figures["instances_per_s"] > 0


def test_the_comparison_has_one_and_two_workers_on_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {("limit", 0): 1_000.0, ("limit-bulk", 0): 2_000.0, ("w1", 0): 600.0, ("w1", 1): 500.0, ("w1", 2): 800.0}

    def told(name: str, asked: Settings) -> dict[str, Any]:
        rate = rates.get((name, asked.workers), 1.0)
        return {"instances_per_s": rate, "p50_ms": 3.0, "p99_ms": 9.0, "others_busy": 0.0}

    monkeypatch.setattr("bench.compare.one_round", told)

    figures = compare(Settings(str(tmp_path), "postgres", n=10), 1, lambda _: None)

    assert (figures["w1_to_limit"], figures["w1_to_limit_target"]) == (0.6, 0.5)
    assert figures["one_worker_to_limit"] == 0.5
    assert figures["two_workers_to_one_worker"] == 1.6
    assert figures["w2_to_limit_loop"] == 1.0


def test_the_command_measures_a_server_that_is_named_and_leaves_nothing_there(
    server: str, disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(str(disk), "postgres", server=server)
    before = asyncio.run(counted(settings))
    command = ["bench", "limit", "--store", "postgres", "--url", server, "--dir", str(disk)]
    monkeypatch.setattr(sys, "argv", [*command, "--n", "20", "--repeat", "1", "--json"])
    sigterm = signal.getsignal(signal.SIGTERM)

    try:
        main()
    finally:
        signal.signal(signal.SIGTERM, sigterm)

    printed = json.loads(capsys.readouterr().out)
    assert (printed["bench"], printed["store"], printed["n"]) == ("limit", "postgres", 20)
    assert asyncio.run(counted(settings)) == before


async def counted(settings: Settings) -> int:
    async with connection(settings) as opened:
        return await opened.fetchval(SCHEMAS)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(["w1", "--store", "sqlite"], "--store postgres"), (["w5", "--store", "postgres"], "leave --url out")],
)
def test_a_server_that_cannot_be_measured_is_refused(
    arguments: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments, "--url", "postgresql://127.0.0.1:1/none"])
    before = signal.getsignal(signal.SIGTERM)

    try:
        with pytest.raises(SystemExit, match=reason):
            main()
    finally:
        signal.signal(signal.SIGTERM, before)


# ---- they can fail


def test_a_server_that_forgets_is_refused(tmp_path: Path) -> None:
    try:
        url = shared_server().url
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")

    with (
        pytest.raises(SystemExit, match="fsync=off"),
        measured_server(Settings(str(tmp_path), "postgres"), url),
    ):
        pass


def test_a_limit_that_leaves_out_a_row_has_no_figure(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def lazy(numbers: range, step: int) -> Tables:
        rows = tables(numbers, step)
        rows[APPEND] = rows[APPEND][1:]
        return rows

    monkeypatch.setattr("bench.limit_postgres.tables", lazy)

    with pytest.raises(AssertionError):
        throughput(settings)


def test_a_limit_on_a_server_that_forgets_has_no_figure(settings: Settings) -> None:
    try:
        url = shared_server().url
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")

    with pytest.raises(AssertionError, match="fsync"):
        latency(sized(settings, server=url))


def test_a_worker_that_cannot_work_gives_no_figure(settings: Settings) -> None:
    async def start() -> None:
        app = everything(settings.url)
        await app.start(work=False)
        try:
            with Workers(settings, "nobody", 1) as workers:
                await workers.ready(app)
        finally:
            await app.stop()

    with pytest.raises(NotDoneError, match="0 of 1 workers"):
        asyncio.run(start())


def test_a_worker_that_ends_meanwhile_gives_no_figure(settings: Settings) -> None:
    with pytest.raises(NotDoneError, match="exit codes"), Workers(settings, "nobody", 1) as workers:
        os.waitid(os.P_PID, workers.pids[0], os.WEXITED | os.WNOWAIT)


# ---- those that wait are what the engine would have written


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_copies_of_one_that_sleeps_wake_up_as_it_does(store: str, settings: Settings) -> None:
    async def sleep_and_wake() -> None:
        await fill(own, datetime.now(UTC) + timedelta(seconds=0.2))
        async with everything(own.url) as app:
            await asyncio.wait_for(until_completed(app, own.n), 60)
            await all_completed(app, own.n)
            assert len(await internals_of(app).engine.store.feed(0, 1_000)) == 5 * own.n

    own = sized(settings, store=store)
    asyncio.run(sleep_and_wake())


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_copies_of_one_that_is_done_are_what_the_engine_would_have_written(store: str, settings: Settings) -> None:
    async def grow_and_go_on() -> None:
        copies = await finished(own)
        await copies.grow(5)
        async with everything(own.url) as app:
            await (await app.send(order(100))).result()
        last = await copies.grow(12)
        async with everything(own.url) as app:
            await all_completed(app, 13)
            rows = await internals_of(app).engine.store.instances(InstanceFilter(), 100, 0)
            assert [rows[-1].key, len(rows)] == [last, 13]
            refs = [Ref("Orders", order_id(number)) for number in range(12)]
            await stream_lengths(app, refs, 9)
            assert len(await internals_of(app).engine.store.feed(0, 1_000)) == 9 * 13

    own = sized(settings, store=store)
    asyncio.run(grow_and_go_on())


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_those_that_wait_are_counted(store: str, settings: Settings) -> None:
    own = sized(settings, store=store, n=5)
    asyncio.run(fill(own, datetime.now(UTC) + timedelta(days=1)))

    with pytest.raises(NotDoneError, match="'running': 6"):
        asyncio.run(check(sized(own, n=6)))


def test_those_that_wait_are_read(settings: Settings) -> None:
    async def damage() -> None:
        async with connection(settings) as opened:
            await opened.execute(
                within(settings.schema, "UPDATE mainspring.events SET time_us = 0 WHERE instance = 30")
            )

    asyncio.run(fill(settings, datetime.now(UTC) + timedelta(days=1)))
    asyncio.run(damage())

    with pytest.raises(DamagedRecordError):
        asyncio.run(check(settings))
