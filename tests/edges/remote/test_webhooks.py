"""What partners are told: only where it is allowed, and signed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mainspring import Mainspring
from mainspring.app.signatures import StandardWebhooks, keys_of
from mainspring.codec.wire import schema
from mainspring.errors import SettingError, WiringError
from mainspring.remote import Webhooks
from tests.edges.remote.charged_elsewhere import QUICK, SECRET, CardCharged, ChargeCard, OrderPaid, PlaceOrder, shop
from tests.edges.remote.servers import Reply, Server, answered, serving
from tests.support.running import run
from tests.support.waiting import until

OTHER_SECRET = "whsec_QW5vdGhlclNlY3JldE9mU29tZUxlbmd0aA=="  # noqa: S105  of these tests


def callback_of(message: OrderPaid) -> str | None:
    return message.callback


async def charge(command: ChargeCard) -> CardCharged:
    return CardCharged(command.order_id)


def use(
    folder: Path, body: Callable[[Mainspring, Server, str], Awaitable[None]], *replies: Reply, **settings: Any
) -> None:
    """Run an app that posts what is paid to where the order says, at a server that answers so."""

    async def main() -> None:
        async with serving(*replies) as server:
            app = shop(folder)
            app.handler(charge)
            url = f"http://127.0.0.1:{server.port}"
            given: dict[str, Any] = {"secrets": SECRET, **settings}
            hooks = Webhooks(app, allow=[url], **given)
            hooks.subscribe(OrderPaid, to=callback_of, retry=QUICK)
            async with app:
                await body(app, server, url)

    run(main)


async def dead_letters(app: Mainspring, number: int) -> list[str]:
    async def are_there() -> bool:
        return len(await app.dead_letters()) == number

    await until(are_there)
    return [f"{letter.type}: {letter.error}" for letter in await app.dead_letters()]


def test_what_is_published_is_posted_signed_and_under_one_key(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server, url: str) -> None:
        await (await app.send(PlaceOrder("o-1", callback=f"{url}/paid?shop=1"))).result()
        await until(lambda: len(server.requests) == 3)
        first, *others = server.requests
        assert first.path == "/paid?shop=1"
        assert all(request.body == first.body for request in others)
        assert all(request.headers["idempotency-key"] == first.headers["webhook-id"] for request in server.requests)
        jsonschema_rs.validator_for(schema()).validate(first.envelope)
        assert (first.envelope["type"], first.envelope["kind"]) == ("OrderPaid", "event")
        assert first.envelope["source"] == "/shop"
        scheme = StandardWebhooks()
        for secret in (SECRET, OTHER_SECRET):
            proven = scheme.prove(keys_of(scheme, secret), first.headers, first.body)
            assert proven is not None
            assert proven.id == first.headers["webhook-id"]
        assert first.headers["x-shop"] == "1"

    replies = (answered(500), answered(503, b"", "retry-after: 0"), answered(204))
    settings = {"secrets": [SECRET, OTHER_SECRET], "source": "/shop", "headers": {"X-Shop": "1"}}
    use(tmp_path, body, *replies, **settings)


def test_a_url_out_of_a_message_that_is_not_allowed_is_never_called(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server, url: str) -> None:
        async with serving() as victim:
            await app.send(PlaceOrder("o-1", callback=f"http://127.0.0.1:{victim.port}/"))
            await app.send(PlaceOrder("o-2", callback="https://169.254.169.254/latest/meta-data"))
            letters = await dead_letters(app, 2)
            assert all("It is not on the allow-list" in letter for letter in letters)
            assert victim.connections == 0
        assert server.connections == 0

    use(tmp_path, body)


def test_who_is_gone_is_not_asked_again(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server, url: str) -> None:
        await app.send(PlaceOrder("o-1", callback=f"{url}/"))
        assert "answered 410: nobody is here" in (await dead_letters(app, 1))[0]
        assert len(server.requests) == 1

    use(tmp_path, body, answered(410, b"nobody is here"))


def test_nobody_to_tell_is_nobody_told(tmp_path: Path) -> None:
    async def body(app: Mainspring, server: Server, url: str) -> None:
        receipt = await app.send(PlaceOrder("o-1"))
        await receipt.result()

        async def is_quiet() -> bool:
            return not await receipt.outputs()

        await until(is_quiet)
        assert (server.connections, await app.dead_letters()) == (0, [])

    use(tmp_path, body)


def test_a_sent_message_is_carried_out_when_it_is_answered(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(answered(500), answered(200)) as server:
            app = shop(tmp_path)
            url = f"http://127.0.0.1:{server.port}/charge"
            Webhooks(app, allow=[url], secrets=SECRET).handle(ChargeCard, to=url, retry=QUICK, breaker=None)
            async with app:
                receipt = await app.send(PlaceOrder("o-1"))

                async def is_quiet() -> bool:
                    return not await receipt.outputs()

                await until(is_quiet)
            assert [request.envelope["kind"] for request in server.requests] == ["command", "command"]

    run(main)


def test_nothing_leaves_unless_it_is_allowed_signed_and_declared_once(tmp_path: Path) -> None:
    app = shop(tmp_path)
    with pytest.raises(SettingError, match="allow"):
        Webhooks(app, allow=[], secrets=SECRET)
    with pytest.raises(SettingError, match="secrets"):
        Webhooks(app, allow=["https://hooks.example.com"], secrets=[])
    hooks = Webhooks(app, allow=["https://hooks.example.com"], secrets=SECRET)
    with pytest.raises(SettingError, match="allow-list"):
        hooks.subscribe(OrderPaid, to="https://evil.example.com/")
    hooks.subscribe(OrderPaid, to="https://hooks.example.com/")
    with pytest.raises(WiringError, match="Two subscribers"):
        hooks.subscribe(OrderPaid, to="https://hooks.example.com/")
