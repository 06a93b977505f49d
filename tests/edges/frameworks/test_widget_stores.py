"""The storefront in both styles: a widget that is paid for is dispatched, another one is put back."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from examples.both_styles import widget_store, widget_store_flow
from tests.edges.frameworks.support import served
from tests.support.waiting import until

stores = pytest.mark.parametrize("style", [widget_store, widget_store_flow], ids=["decide", "flow"])


@stores
def test_a_widget_is_dispatched_when_it_is_paid_for_and_else_put_back(
    style: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # its database is there
    monkeypatch.setattr(style, "DISPATCH", timedelta(milliseconds=50))

    async def story() -> None:
        async with asyncio.timeout(60), served(style.web) as client:

            async def ended() -> bool:
                return all(row["status"] == "completed" for row in (await client.get("/orders")).json())

            for id, said in (("o-1", "paid"), ("o-2", "declined")):
                assert (await client.post(f"/checkout/{id}")).json() == {"payment": id}
                assert (await client.post(f"/checkout/{id}")).json() == {"payment": id}, "a second click"
                await client.post(f"/payment_webhook/{id}/{said}")
            await until(ended)
            assert (await client.get("/product")).json() == {"inventory": 99}
            assert (await client.get("/order/o-3")).status_code == 404
            stages = {row["order_id"]: row["stage"] for row in (await client.get("/orders")).json()}
            assert stages["o-1"].lower() == "paid"

    asyncio.run(story())
