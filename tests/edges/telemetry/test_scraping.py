"""The two places to be scraped from: a worker's own port, and the HTTP API."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.scraping import exposition
from mainspring.errors import SettingError, WiringError
from mainspring.telemetry.scraping import HEAD_BYTES, REQUESTS_AT_ONCE, Scraped
from mainspring.web.api import api
from tests.edges.telemetry.order_of_every_kind import PlaceOrder, shop
from tests.edges.telemetry.spans import Spans, trace_ids
from tests.edges.web.support import asked
from tests.support.running import run
from tests.support.waiting import PATIENCE_SECONDS

TOKEN = "a-token-that-is-long-enough"  # noqa: S105  of a test


@asynccontextmanager
async def scraped(app: Mainspring, token: str | None = None) -> AsyncGenerator[tuple[Scraped, httpx.AsyncClient]]:
    service = Scraped(lambda accept: exposition(app, accept), token=token)
    internals_of(app).services.add(service)
    async with app, httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
        yield service, client


def test_a_worker_is_scraped_at_a_port_of_its_own_while_it_runs() -> None:
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True)

    async def main() -> None:
        async with scraped(app) as (service, client):
            await app.send(PlaceOrder("o-1"))
            answer = await client.get(service.address)
            assert answer.headers["content-type"].startswith("text/plain; version=")
            assert 'mainspring_inputs_total{outcome="stepped",workflow="Orders"} 1.0' in answer.text
            newer = await client.get(service.address, headers={"accept": "application/openmetrics-text;version=1.0.0"})
            assert newer.headers["content-type"].startswith("application/openmetrics-text")
            assert newer.text.endswith("# EOF\n")
            address = service.address
        with pytest.raises(httpx.ConnectError):
            async with httpx.AsyncClient() as gone:
                await gone.get(address)

    run(main)


def test_what_is_no_request_for_metrics_is_refused() -> None:
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True)

    async def main() -> None:
        async with scraped(app) as (service, client):
            other = service.address.replace("/metrics", "/")
            assert (await client.get(other)).status_code == 404
            assert (await client.post(service.address)).status_code == 405
            assert (await client.get(service.address, headers={"host": "evil.example.com"})).status_code == 421
            port = urlsplit(service.address).port or 0
            for bytes, begins in ((b"\0\1\2\r\n\r\n", b"HTTP/1.1 400"), (b"x" * (2 * HEAD_BYTES), b"")):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(bytes)
                try:
                    assert (await reader.read()).startswith(begins)
                except ConnectionResetError:
                    assert not begins
                writer.close()
            assert (await client.get(service.address)).status_code == 200

    run(main)


def test_who_asks_nothing_and_who_reads_nothing_hold_up_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.telemetry.scraping.REQUEST_SECONDS", 3_600)  # it does not give up by itself

    async def endless(_: str) -> tuple[bytes, str]:
        return bytes(100_000_000), "text/plain"

    async def main() -> None:
        service = Scraped(endless)
        await service.start()
        place = urlsplit(service.address)
        silent, other = await asyncio.open_connection(place.hostname, place.port)
        deaf, writer = await asyncio.open_connection(place.hostname, place.port, limit=1)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await deaf.readexactly(1)
        await service.stop()
        assert await silent.read() == b""
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await deaf.readexactly(100_000_000)
        writer.close()
        other.close()

    run(main)


def test_who_asks_nothing_makes_room_for_who_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.telemetry.scraping.REQUEST_SECONDS", 3_600)  # it does not give up by itself
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True)

    async def main() -> None:
        async with scraped(app) as (service, client):
            place = urlsplit(service.address)
            silent = [await asyncio.open_connection(place.hostname, place.port) for _ in range(2 * REQUESTS_AT_ONCE)]
            assert (await client.get(service.address)).status_code == 200
            for reader, _ in silent[: REQUESTS_AT_ONCE + 1]:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
            assert not any(reader.at_eof() or reader.exception() for reader, _ in silent[REQUESTS_AT_ONCE + 1 :])
            for _, writer in silent:
                writer.transport.abort()

    run(main)


def test_beyond_loopback_a_token_is_asked_for() -> None:
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True)
    with pytest.raises(SettingError, match="set MAINSPRING_METRICS_TOKEN"):
        Scraped(lambda accept: exposition(app, accept), "0.0.0.0")  # noqa: S104  that is what is refused
    with pytest.raises(SettingError, match="20 characters or more"):
        Scraped(lambda accept: exposition(app, accept), token="short")  # noqa: S106  as above

    async def main() -> None:
        async with scraped(app, TOKEN) as (service, client):
            host = {"host": "worker-7.example.com"}
            assert (await client.get(service.address, headers=host)).status_code == 401
            wrong = {**host, "authorization": "Bearer another-token-of-some-length"}
            assert (await client.get(service.address, headers=wrong)).status_code == 401
            right = {**host, "authorization": f"Bearer {TOKEN}"}
            assert (await client.get(service.address, headers=right)).status_code == 200

    run(main)


def test_a_port_that_is_taken_is_told_and_leaves_nothing_running() -> None:
    first, second = shop(Mainspring("memory://")), shop(Mainspring("memory://"))
    for app in (first, second):
        app.observe(metrics=True)

    async def main() -> None:
        async with scraped(first) as (service, _):
            port = urlsplit(service.address).port or 0
            internals_of(second).services.add(Scraped(lambda accept: exposition(second, accept), port=port))
            with pytest.raises(SettingError, match="Choose another port"):
                await second.start()
            with pytest.raises(WiringError, match="not running"):
                _ = internals_of(second).engine

    run(main)


def test_the_api_counts_its_requests_by_route_and_shows_them() -> None:
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True)

    async def main() -> None:
        async with app, asked(api(app, start=False)) as client:
            for id in ("o-1", "o-2"):
                assert (await client.post("/api/messages/PlaceOrder", json={"id": id})).status_code == 200
            assert (await client.post("/api/messages/PlaceOrder", json={"nothing": 1})).status_code == 422
            assert (await client.get("/somewhere/o-1")).status_code == 404
            answer = await client.get("/api/metrics")
            assert answer.headers["content-type"].startswith("text/plain; version=")
            counted = [line for line in answer.text.splitlines() if line.startswith("mainspring_http_requests_total{")]
            assert counted == [
                'mainspring_http_requests_total{method="POST",route="/messages/{type}",status="200"} 2.0',
                'mainspring_http_requests_total{method="POST",route="/messages/{type}",status="422"} 1.0',
                'mainspring_http_requests_total{method="GET",route="none",status="404"} 1.0',
            ]
            assert 'mainspring_inputs_total{outcome="stepped",workflow="Orders"} 2.0' in answer.text

    run(main)


def test_a_message_over_http_belongs_to_the_trace_of_its_request() -> None:
    spans, app = Spans(), shop(Mainspring("memory://"))
    app.observe(traces=spans.provider)
    headers = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}

    async def main() -> None:
        async with app, asked(api(app, start=False)) as client:
            await client.post("/api/messages/PlaceOrder", json={"id": "o-1"}, headers=headers)
            await client.post("/api/messages/PlaceOrder", json={"id": "o-2"}, headers={"traceparent": "nonsense"})

    run(main)
    first, second = spans.of("PlaceOrder", "send")
    assert trace_ids([first]) == {0x4BF92F3577B34DA6A3CE929D0E0E4736}
    assert first.parent is not None
    assert first.parent.span_id == 0x00F067AA0BA902B7
    assert second.parent is None


def test_the_api_says_how_to_turn_metrics_on() -> None:
    app = shop(Mainspring("memory://"))

    async def main() -> None:
        async with app, asked(api(app, start=False)) as client:
            answer = await client.get("/api/metrics")
            document: dict[str, Any] = answer.json()
            assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
            assert "app.observe(metrics=True)" in document["detail"]

    run(main)
