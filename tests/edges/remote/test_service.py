"""Commands that another service carries out: real HTTP, real files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from msgspec import json

from mainspring import Mainspring, Retry
from mainspring.app.answers import take_envelope
from mainspring.app.arrivals import Arrivals
from mainspring.app.internals import internals_of
from mainspring.app.signatures import StandardWebhooks, keys_of
from mainspring.codec.wire import read_envelope, schema
from mainspring.errors import InstanceFailedError, SettingError, WiringError
from mainspring.remote import Service
from mainspring.testing.clock import VirtualClock
from mainspring.web.api import api
from tests.edges.remote.charged_elsewhere import (
    QUICK,
    SECRET,
    CardCharged,
    ChargeCard,
    Orders,
    PlaceOrder,
    result,
    shop,
)
from tests.edges.remote.servers import Reply, Server, answered, serving
from tests.support.running import run
from tests.support.waiting import until

Client = httpx.AsyncClient
SERVERS: dict[int, Server] = {}


def replying(*changes: dict[str, Any] | None, status: int = 200) -> Reply:
    """Answer a command with its result: all of them, if several are given."""

    async def reply(writer: Any) -> None:
        command = server_of(writer).requests[-1].envelope
        results = [result(command, **(change or {})) for change in changes]
        writer.write(answered(status, results[0] if len(results) == 1 else results))
        await writer.drain()

    return reply


def server_of(writer: Any) -> Server:
    return SERVERS[writer.get_extra_info("sockname")[1]]


def use(folder: Path, replies: list[Reply], body: Callable[[Mainspring, Server], Awaitable[None]]) -> None:
    """Run an app whose cards are charged by a service that answers so."""

    async def main() -> None:
        async with serving(*replies) as server:
            SERVERS[server.port] = server
            app = shop(folder)
            payments = Service(app, f"http://127.0.0.1:{server.port}/commands", secrets=SECRET)
            payments.handles(ChargeCard, returns=CardCharged, retry=QUICK, breaker=None)
            async with app:
                await body(app, server)

    run(main)


@asynccontextmanager
async def asking(app: Mainspring) -> AsyncGenerator[Client]:
    transport = httpx.ASGITransport(app=api(app, start=False), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def failure_of(app: Mainspring, order: PlaceOrder) -> str:
    with pytest.raises(InstanceFailedError) as failed:
        await (await app.send(order)).result()
    return failed.value.reason or ""


def test_a_command_is_carried_out_elsewhere_and_its_result_is_recorded(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        receipt = await app.send(PlaceOrder("o-1"), id="checkout-17")
        assert await receipt.result() == CardCharged("o-1")
        (request,) = server.requests
        envelope = request.envelope
        jsonschema_rs.validator_for(schema()).validate(envelope)
        assert request.path == "/commands"
        assert request.headers["content-type"] == "application/cloudevents+json"
        assert request.headers["idempotency-key"] == envelope["id"] == "Orders/o-1/3"
        assert (envelope["sender"], envelope["correlationid"], envelope["kind"]) == (
            "Orders/o-1",
            "checkout-17",
            "command",
        )
        scheme = StandardWebhooks()
        assert scheme.prove(keys_of(scheme, SECRET), request.headers, request.body) is not None
        recorded = [entry.event for entry in await receipt.stream()]
        assert "Received" in str(type(recorded[3]))

    use(tmp_path, [replying({})], body)


def test_every_attempt_has_the_same_key_and_what_is_not_answered_is_asked_again(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        assert await (await app.send(PlaceOrder("café.1"))).result() == CardCharged("café.1")
        keys = [request.headers["idempotency-key"] for request in server.requests]
        assert keys == ["Orders/caf%C3%A9%2E1/3"] * 3
        assert {request.envelope["id"] for request in server.requests} == {"Orders/café.1/3"}

    use(tmp_path, [answered(500), answered(429, b"", "retry-after: 0"), replying({})], body)


def test_another_worker_sends_the_very_same_bytes(tmp_path: Path) -> None:
    clock, retry = VirtualClock(), Retry(first=timedelta(minutes=1), jitter=False)

    def asking(server: Server) -> Mainspring:
        app = shop(tmp_path, clock)
        payments = Service(app, f"http://127.0.0.1:{server.port}/commands", secrets=SECRET)
        payments.handles(ChargeCard, returns=CardCharged, retry=retry)
        return app

    async def main() -> None:
        async with serving(answered(500), replying({})) as server:
            SERVERS[server.port] = server
            async with asking(server) as app:
                await app.send(PlaceOrder("o-1"), id="checkout-17")
                await until(lambda: len(server.requests) == 1)
            assert len(server.requests) == 1, "the first worker has not asked again"
            clock.advance(61)
            async with asking(server) as app:
                await app.instance(Orders, "o-1").result()
            first, second = server.requests
            assert first.body == second.body

    run(main)


def test_a_refusal_is_a_definite_failure_in_the_services_own_words(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        assert "after 1, definitely" in (reason := await failure_of(app, PlaceOrder("o-1")))
        assert "answered 422: The card is stolen." in reason

    use(tmp_path, [answered(422, {"title": "refused", "detail": "The card is stolen."})], body)


def test_a_refusal_after_a_call_that_may_have_been_carried_out_is_not_definite(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        assert "after 2, perhaps" in (reason := await failure_of(app, PlaceOrder("o-1")))
        assert "answered 401" in reason

    use(tmp_path, [answered(500), answered(401)], body)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (answered(503, b"not now"), "answered 503: not now"),
        (answered(200, b"{}"), "with what is no result"),
        (answered(200, b"no JSON"), "with what is no result"),
        (answered(200, b" " * 3_000_000), "answered more than"),
        (replying({"type": "CardRefused"}), "answered CardRefused"),
        (replying({"data": {}}), "with what is no result"),
        (replying({"causationid": "Orders/o-2/3"}), "instead of Orders/o-1/3"),
    ],
)
def test_what_is_not_as_agreed_is_tried_again_and_then_told(reply: Reply, problem: str, tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        reason = await failure_of(app, PlaceOrder("o-1"))
        assert "after 3, perhaps" in reason
        assert problem in reason
        assert len(server.requests) == 3
        assert await app.dead_letters() == []

    use(tmp_path, [reply], body)


def test_several_results_are_all_recorded_and_none_is_fine_too(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        await app.send(PlaceOrder("o-1"))
        await until(lambda: has_settled(app, "o-1"))
        assert len(server.requests) == 1
        await (await app.send(PlaceOrder("o-2"))).result()

    use(tmp_path, [answered(204), replying({}, {})], body)


async def has_settled(app: Mainspring, order_id: str) -> bool:
    return not await app.instance(Orders, order_id).outputs()


# ---- results that come later


async def post_result(client: Client, command: Any, **changed: Any) -> httpx.Response:
    late = result(command, kind="result", instance=command["sender"], **changed)
    return await client.post("/api/envelopes", content=json.encode(late))


async def take_result(app: Mainspring, command: Any) -> str:
    """Take a result as the API does, and return what became of it."""
    late = read_envelope(json.encode(result(command, kind="result", instance=command["sender"])))
    ((_, status, _),) = await take_envelope(app, Arrivals(app), late)
    return status


def test_a_result_may_come_later_by_itself_and_counts_once(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        async with asking(app) as client:
            receipt = await app.send(PlaceOrder("o-1"))
            await until(lambda: has_settled(app, "o-1"))
            command = server.requests[0].envelope
            answers = [await post_result(client, command, id=f"attempt {n}") for n in range(3)]
            assert [answer.json()["receipts"] for answer in answers] == [
                [{"instance": "Orders/o-1", "status": status, "message_id": "Orders/o-1/3/1"}]
                for status in ("stepped", "duplicate", "duplicate")
            ]
            assert await receipt.result() == CardCharged("o-1")
            assert sum("CardCharged" in str(entry.event) for entry in await receipt.stream()) == 2  # taken, and the end

    use(tmp_path, [answered(202)], body)


def test_a_result_that_came_by_itself_is_not_taken_again_from_an_answer_nor_the_other_way_round(tmp_path: Path) -> None:
    async def posts_and_answers(writer: Any) -> None:
        """The result is posted, the 202 is lost, and the next attempt is answered with the result."""
        server = server_of(writer)
        if len(server.requests) == 1:
            await take_result(apps[0], server.requests[0].envelope)
            writer.close()
        else:
            writer.write(answered(200, result(server.requests[-1].envelope)))
            await writer.drain()

    apps: list[Mainspring] = []

    async def body(app: Mainspring, server: Server) -> None:
        apps.append(app)
        for order_id in ("o-1", "o-2"):
            receipt = await app.send(PlaceOrder(order_id))
            assert await receipt.result() == CardCharged(order_id)
            await until(lambda order_id=order_id: has_settled(app, order_id))
            assert await take_result(app, server.requests[-1].envelope) == "duplicate"
            kinds = [type(entry.event).__name__ for entry in await receipt.stream()]
            assert (kinds.count("Received"), kinds.count("Kept")) == (1, 0)
        assert len(server.requests) == 3

    use(tmp_path, [posts_and_answers], body)


def test_a_result_of_nothing_is_refused(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], int]] = [
        ({"causationid": "Orders/o-2/3"}, 409),
        ({"causationid": "Orders/o-1"}, 409),
        ({"causationid": "Orders/o-1/x"}, 409),
        ({"instance": "Others/o-1", "causationid": "Others/o-1/3"}, 422),
        ({"type": "Nothing"}, 422),
        ({"data": {"order_id": 7}}, 422),
        ({"specversion": "2.0"}, 422),
    ]

    async def body(app: Mainspring, server: Server) -> None:
        await app.send(PlaceOrder("o-1"))
        await until(lambda: has_settled(app, "o-1"))
        late = result(server.requests[0].envelope, kind="result", instance="Orders/o-1")
        async with asking(app) as client:
            for changed, status in cases:
                answer = await client.post("/api/envelopes", content=json.encode(late | changed))
                assert answer.status_code == status, answer.text
                assert answer.headers["content-type"] == "application/problem+json"

    use(tmp_path, [answered(202)], body)


def test_after_a_reset_a_late_result_comes_once_more(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        receipt = await app.send(PlaceOrder("o-1"))
        await until(lambda: has_settled(app, "o-1"))
        await take_result(app, server.requests[0].envelope)
        await receipt.result()
        await receipt.reset(3)
        await until(lambda: ended(app, "o-1"))
        assert len(server.requests) == 1

    use(tmp_path, [answered(202)], body)


def test_after_a_reset_a_command_is_carried_out_again_and_its_answer_counts(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        receipt = await app.send(PlaceOrder("o-1"))
        await receipt.result()
        await receipt.reset(3)
        await until(lambda: len(server.requests) == 2)
        await until(lambda: has_settled(app, "o-1"))
        assert await ended(app, "o-1")

    use(tmp_path, [replying({})], body)


async def ended(app: Mainspring, order_id: str) -> bool:
    return (await app.instance(Orders, order_id).row()).status == "completed"


def test_a_fan_out_is_told_results_and_no_promise_of_them(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        assert await (await app.send(PlaceOrder("o-1", parts=2))).result() == CardCharged("o-1-1")
        server.replies = [answered(202)]
        assert "a fan-out has to know the result" in await failure_of(app, PlaceOrder("o-2", parts=1))

    use(tmp_path, [replying({})], body)


# ---- messages of other services in their envelope


def test_a_message_in_its_envelope_is_taken_once_by_its_source_and_id(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server) -> None:
        async with asking(app) as client:
            order = {
                "specversion": "1.0",
                "id": "7",
                "source": "/web",
                "type": "PlaceOrder",
                "data": {"order_id": "o-1"},
            }
            statuses: list[str] = []
            for changed in ({}, {}, {"source": "/mobile"}):
                answer = await client.post(
                    "/api/envelopes", content=json.encode({**order, "kind": "command", **changed})
                )
                statuses += [receipt["status"] for receipt in answer.json()["receipts"]]
            assert statuses[:2] == ["stepped", "duplicate"]
            assert statuses[2] in ("stepped", "accepted", "suspended"), "another message with the same id"
            other = await client.post(
                "/api/envelopes", content=json.encode({**order, "data": {"order_id": "o-1", "amount": 1}})
            )
            assert other.status_code == 409

    use(tmp_path, [answered(202)], body)


# ---- settings


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "http://payments.example.com/"},
        {"secrets": "short"},
        {"secrets": "whsec_this is no base64 at all"},
        {"headers": {"Host": "evil.example.com"}},
        {"headers": {"webhook-id": "1"}},
        {"headers": {"x-token": "a\r\nb"}},
        {"networks": ["everywhere"]},
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_and_no_secret_is_told(settings: dict[str, Any]) -> None:
    url = settings.pop("url", "https://payments.example.com/")
    with pytest.raises(SettingError) as refused:
        Service(Mainspring("memory://"), url, **settings)
    assert "this is no" not in str(refused.value)


def test_a_command_has_one_handler_here_or_elsewhere(tmp_path: Path) -> None:
    payments = Service(app := shop(tmp_path), "https://payments.example.com/")
    payments.handles(ChargeCard, returns=CardCharged)

    with pytest.raises(WiringError, match="Two handlers take ChargeCard"):
        payments.handles(ChargeCard)
    with pytest.raises(WiringError, match="Leave batch"):
        payments.handles(CardCharged, batch=10)
    assert internals_of(app).registry.handlers["ChargeCard"].result_types == [CardCharged]


def test_a_service_that_is_not_public_is_not_called(tmp_path: Path) -> None:
    async def main() -> None:
        app = shop(tmp_path)
        payments = Service(app, "https://localhost.localdomain:1/")
        payments.handles(ChargeCard, returns=CardCharged, retry=QUICK)
        async with app:
            assert "localhost.localdomain" in await failure_of(app, PlaceOrder("o-1"))

    asyncio.run(main())
