"""Dead letters of an edge over HTTP: shown as far as they may be, corrected, and discarded."""

import asyncio
from pathlib import Path
from typing import Any

from tests.edges.brokers.orders_and_payments import Orders, drained, memory, message, orders
from tests.edges.web.support import served

BROKEN = b'{"order_id": "o-1", "amount": "a secret"'
WRONG = {"order_id": "o-1", "amount": "a secret"}


def letters(tmp_path: Path, **settings: Any) -> list[dict[str, Any]]:
    """Return the letters of two messages, one that is no JSON and one with a wrong field; then correct and discard."""

    async def main() -> list[dict[str, Any]]:
        broker = memory()
        shop, _ = orders(f"sqlite:///{tmp_path}/orders.db", broker)
        async with served(shop, **settings) as client:
            sent = [message("orders.in", "1", BROKEN), message("orders.in", "2", WRONG, note="a secret", actor="ann")]
            await broker.publish(sent)
            await drained(broker, "orders.in")
            found = (await client.get("/api/dead-letters")).json()["items"]
            # They are kept together, in no order of their own.
            listed = sorted(found, key=lambda letter: letter["message_id"])
            first, second = (letter["id"] for letter in listed)
            assert (await client.get(f"/api/dead-letters/{first}")).json() == listed[0]
            assert (await client.post(f"/api/dead-letters/{first}/retry")).status_code == 422
            corrected = await client.post(f"/api/dead-letters/{first}/retry", json={"order_id": "o-1", "amount": 1})
            assert corrected.json() == {"id": first, "left": False}
            assert (await shop.instance(Orders, "o-1").row()).status == "running"
            assert (await client.delete(f"/api/dead-letters/{second}")).json() == {"id": second, "left": False}
            assert (await client.get("/api/dead-letters")).json()["items"] == []
        return listed

    return asyncio.run(main())


def test_they_are_shown_with_what_came_and_can_be_corrected_and_discarded(tmp_path: Path) -> None:
    broken, wrong = letters(tmp_path)

    assert (broken["message"], wrong["message"]) == (BROKEN.decode(), WRONG)
    assert wrong["headers"]["ce-actor"] == "ann"
    assert "ce-note" not in wrong["headers"]  # nobody here reads it
    assert (wrong["instance"], wrong["type"], wrong["reason"]) == (
        "mainspring.Edge/orders",
        "PlaceOrder",
        "it cannot be read",
    )


def test_what_is_declared_sensitive_is_not_shown_of_them_either(tmp_path: Path) -> None:
    broken, wrong = letters(tmp_path, redact=["PlaceOrder.amount", "actor"])

    assert (broken["message"], wrong["message"]) == ("[redacted]", {"order_id": "o-1", "amount": "[redacted]"})
    assert wrong["headers"]["ce-actor"] == "[redacted]"
