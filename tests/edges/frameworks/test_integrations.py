"""An app inside web frameworks: its life, what endpoints ask for, and whom it keeps out of its file."""

import os
import secrets
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy
from fastapi import FastAPI, HTTPException
from fastapi.responses import PlainTextResponse

from examples.frameworks import orders
from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.publication import PUBLICATION, publication_of
from mainspring.engine.runtime import Runtime
from mainspring.errors import DuplicateIdError, SettingError, WiringError
from mainspring.frameworks.asgi import app_of, lifespan
from mainspring.frameworks.django import configured
from mainspring.frameworks.django.checks import check_databases
from mainspring.frameworks.django.configured import configured_app
from mainspring.frameworks.fastapi import App, InTransaction
from mainspring.frameworks.own_file import kept_alone
from mainspring.frameworks.process import Running
from mainspring.web import studio
from tests.edges.frameworks.support import Place, orders_of, served, shop
from tests.support.running import run

HERE_SECONDS = 0.3
"""Time enough for a second thread to come where it must not come; where it does not, a test waits for so long."""

# ---- lifespans


def test_an_inner_lifespan_runs_while_the_app_does_and_both_states_are_there() -> None:
    told: list[str] = []
    app = shop("memory://")

    @asynccontextmanager
    async def inner(_web: Any) -> AsyncGenerator[dict[str, str]]:
        await app.send(Place("first"))
        told.append("begun")
        yield {"own": "state"}
        await app.send(Place("last"))
        told.append("ended")

    async def main() -> None:
        async with lifespan(app, inner=inner)(None) as state:
            assert state == {"mainspring": app, "own": "state"}
            assert told == ["begun"]
        assert told == ["begun", "ended"]
        with pytest.raises(WiringError, match="not running"):
            await app.stats()

    run(main)


def test_when_the_inner_lifespan_fails_the_app_is_stopped() -> None:
    app = shop("memory://")

    @asynccontextmanager
    async def inner(_web: Any) -> AsyncGenerator[None]:
        raise LookupError
        yield

    async def main() -> None:
        with pytest.raises(LookupError):
            async with lifespan(app, inner=inner)(None):
                pass
        await app.start()  # it can be started again
        await app.stop()

    run(main)


def test_what_runs_when_the_server_stops_may_finish(tmp_path: Path) -> None:
    app = orders.shop(f"sqlite:///{tmp_path / 'shop.db'}")

    async def main() -> None:
        async with lifespan(app, drain=timedelta(seconds=20))(None):
            receipts = [await app.send(orders.PlaceOrder(f"o-{n}", "clock")) for n in range(10)]
        await app.start(work=False)
        assert [(await receipt.row()).status for receipt in receipts] == ["completed"] * 10
        await app.stop()

    run(main)


def test_a_server_without_the_lifespan_says_so() -> None:
    with pytest.raises(WiringError, match="lifespan=lifespan"):
        app_of(SimpleNamespace(state=SimpleNamespace()))


# ---- FastAPI


def web_of(app: Mainspring) -> FastAPI:
    web = FastAPI(lifespan=lifespan(app))

    @web.post("/orders/{order}")
    async def place(order: str, transaction: InTransaction, app: App, id: str | None = None, fail: bool = False) -> str:
        assert app is app_of(SimpleNamespace(state=SimpleNamespace(mainspring=app)))
        await transaction.execute("CREATE TABLE IF NOT EXISTS shop_orders (id text PRIMARY KEY)")
        await transaction.execute("INSERT INTO shop_orders VALUES ($1)", order)
        transaction.send(Place(order), id=id)
        if fail:
            raise HTTPException(402, "No money.")
        return "placed"

    @web.exception_handler(DuplicateIdError)
    async def twice(_request: Any, error: DuplicateIdError) -> PlainTextResponse:
        return PlainTextResponse(str(error), status_code=409)

    return web


async def count(app: Mainspring) -> int:
    async with app.transaction() as transaction:
        return await transaction.fetchval("SELECT count(*) FROM shop_orders")


def test_an_endpoints_transaction_is_committed_before_it_answers_and_undone_by_an_error(tmp_path: Path) -> None:
    app = shop(f"sqlite:///{tmp_path / 'shop.db'}")

    async def main() -> None:
        async with served(web_of(app)) as client:
            assert (await client.post("/orders/o-1?id=m-1")).status_code == 200
            assert await count(app) == 1
            assert (await client.post("/orders/o-2?fail=true")).status_code == 402
            assert await count(app) == 1
            await (app.instance_at("Orders/o-1")).result()
            assert await orders_of(app) == {"o-1"}

    run(main)


def test_the_studio_is_mounted_beside_the_shops_own_routes() -> None:
    app = shop("memory://")
    web = web_of(app)
    web.mount("/studio", studio(app, start=False))

    async def main() -> None:
        async with served(web) as client:
            await app.send(Place("o-1"))
            (found,) = (await client.get("/studio/api/instances")).json()["items"]
            assert found["id"] == "o-1"

    run(main)


def test_a_commit_that_fails_is_what_the_caller_is_told(tmp_path: Path) -> None:
    """An answer that is sent before the commit would be a lie."""
    app = shop(f"sqlite:///{tmp_path / 'shop.db'}")

    async def main() -> None:
        async with served(web_of(app)) as client:
            await app.send(Place("o-1", 2), id="m-1")
            answer = await client.post("/orders/o-1?id=m-1")
            assert (answer.status_code, "m-1" in answer.text) == (409, True)
            async with app.transaction() as transaction:
                await transaction.execute("CREATE TABLE IF NOT EXISTS shop_orders (id text PRIMARY KEY)")
            assert await count(app) == 0

    run(main)


# ---- processes without an event loop


def test_an_app_starts_at_its_first_use_and_again_after_a_stop(tmp_path: Path) -> None:
    running = Running(shop(f"sqlite:///{tmp_path / 'shop.db'}"), work=True)
    assert running.app is running.app
    running.app.send(Place("o-1"))
    running.stop()
    running.stop()
    assert [row.id for row in running.app.instances()] == ["o-1"]
    running.stop()


ENDING = """
import sys
from examples.frameworks.orders import PlaceOrder, shop
from mainspring.frameworks.flask import FlaskMainspring
spring = FlaskMainspring(shop(sys.argv[1]), work=True)
print(spring.send(PlaceOrder("o-1", "clock")).status)
"""


def test_a_process_that_ends_lets_what_runs_finish(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", ENDING, url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  ours
    assert (done.stdout, done.stderr) == ("stepped\n", "")
    with orders.shop(url).blocking(work=False) as app:
        assert [(row.id, row.status) for row in app.instances()] == [("o-1", "completed")]
        assert app.stats().workers == 0


def test_an_app_that_was_used_before_a_fork_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(shop(f"sqlite:///{tmp_path / 'shop.db'}"))
    assert running.app.stats().inbox == 0
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: 1)
        with pytest.raises(WiringError, match="before this process was forked"):
            _ = running.app
        running.stop()  # it is not this one's to stop
    assert running.app.stats().inbox == 0
    running.stop()


def test_an_app_that_cannot_start_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    running = Running(shop(f"sqlite:///{folder / 'shop.db'}"))
    with pytest.raises(Exception, match="later"):
        _ = running.app
    folder.mkdir()
    assert running.app.stats().inbox == 0
    running.stop()


# ---- the app's own file


@pytest.mark.parametrize("way", ["path", "text", "bytes", "uri", "sqlalchemy"])
def test_no_other_library_opens_the_apps_file_while_it_runs(way: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    engine = sqlalchemy.create_engine(f"sqlite:///{file}")
    ways = {
        "path": lambda: sqlite3.connect(file),
        "text": lambda: sqlite3.connect(str(tmp_path / "." / "shop.db")),
        "bytes": lambda: sqlite3.connect(os.fsencode(file)),
        "uri": lambda: sqlite3.connect(f"file:{file}?mode=rw", uri=True),
        "sqlalchemy": engine.connect,
    }
    with kept_alone(f"sqlite:///{file}"):
        with pytest.raises(WiringError, match=r"shop\.db"):
            ways[way]()
        sqlite3.connect(tmp_path / "another.db").close()
        sqlite3.connect(":memory:").close()
    sqlite3.connect(file).close()  # the app has stopped
    engine.dispose()


def test_a_lifespan_keeps_others_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with lifespan(shop(f"sqlite:///{tmp_path / 'shop.db'}"))(None):
            with pytest.raises(WiringError):
                sqlite3.connect(tmp_path / "shop.db")

    run(main)


# ---- Django's settings


def checked(monkeypatch: pytest.MonkeyPatch, address: object, name: str = "") -> list[Any]:
    databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": name}}
    settings = SimpleNamespace(MAINSPRING_APP=address, DATABASES=databases)
    monkeypatch.setattr("django.conf.settings", settings)
    return check_databases()


def test_djangos_check_finds_a_file_that_both_would_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.edges.frameworks.support.flow", shop(f"sqlite:///{tmp_path / 'shop.db'}"), raising=False)
    address = "tests.edges.frameworks.support:flow"
    assert checked(monkeypatch, address, str(tmp_path / "django.db")) == []
    (found,) = checked(monkeypatch, address, str(tmp_path / "shop.db"))
    assert found.id == "mainspring.E002"


@pytest.mark.parametrize(
    "address", [None, "shop", "tests.edges.frameworks.support:Orders", "tests.edges.frameworks.support:nobody"]
)
def test_djangos_check_finds_an_app_that_is_not_there(address: object, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = checked(monkeypatch, address)
    assert found.id == "mainspring.E001"
    with pytest.raises(SettingError, match="MAINSPRING_APP"):
        configured_app()


# ---- threads


def test_threads_that_begin_at_the_same_time_make_ids_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request's thread posts while another one is about to draw what sets this process's ids apart from others'."""
    runtime, inside, draw = Runtime(), list[str](), secrets.token_hex

    def interrupted(count: int) -> str:
        monkeypatch.setattr(secrets, "token_hex", draw)
        thread = threading.Thread(target=lambda: inside.append(runtime.new_id()))
        thread.start()
        thread.join()
        return draw(count)

    monkeypatch.setattr(secrets, "token_hex", interrupted)
    ids = {runtime.new_id(), *inside, runtime.new_id()}
    assert len(ids) == 3
    assert {len(id.partition("-")[0]) for id in ids} == {20}


def test_two_first_requests_of_django_start_one_app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    app, both, found = shop(f"sqlite:///{tmp_path / 'shop.db'}"), threading.Barrier(2), list[object]()

    class Slow(Running):
        def __init__(self, *given: Any, **options: Any) -> None:
            with suppress(threading.BrokenBarrierError):
                both.wait(HERE_SECONDS)  # both are here, unless one waits for the other
            super().__init__(*given, **options)

    monkeypatch.setattr(configured, "Running", Slow)
    monkeypatch.setattr(configured, "configured_app", lambda: app)
    threads = [threading.Thread(target=lambda: found.append(configured.running())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert len(found) == 2
        assert found[0] is found[1]
    finally:
        configured._running(app).stop()  # pyright: ignore[reportPrivateUsage]  nobody but a test stops it  # noqa: SLF001


def test_two_first_requests_that_publish_for_subscribers_both_do(monkeypatch: pytest.MonkeyPatch) -> None:
    app, both, instances = shop("postgresql://db.example/shop"), threading.Barrier(2), list[str]()

    @app.subscribe
    async def hears(placed: Place) -> None: ...

    def slow(given: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            both.wait(HERE_SECONDS)  # both are here, unless one waits for the other
        return publication_of(given)

    monkeypatch.setattr("mainspring.engine.registry.publication_of", slow)
    threads = [
        threading.Thread(
            target=lambda: instances.extend(p.ref.workflow for p in internals_of(app).envelopes.published(Place("o-1")))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert instances == [PUBLICATION] * 2
