"""A shop whose orders are a flow. Its database is in the current directory; the command line's tests copy this file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mainspring import Mainspring
from mainspring.flows import ask, receive

app = Mainspring("sqlite:///flow.db")


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str
    card: str


@dataclass(frozen=True)
class Confirmed:
    order_id: str


@dataclass(frozen=True)
class Release:
    order_id: str


@app.step
async def charge(order_id: str, card: str) -> str:
    return f"charge of {card}"


@app.step
async def ship(order_id: str, parcel: int) -> int:
    return parcel


@app.flow(id="order_id")
async def fulfil(order: PlaceOrder) -> int:
    """Charges, waits for a confirmation, and ships."""
    charged = await charge(order.order_id, order.card)
    await confirmed(charged)
    parcels = await asyncio.gather(ship(order.order_id, 1), ship(order.order_id, 2))
    await ask(f"Release {order.order_id}?", Release, role="lead")
    return sum(parcels)


async def confirmed(receipt: str) -> None:
    shown = receipt.upper()
    async with asyncio.timeout(3_600):
        await receive(Confirmed)
    assert shown
