"""The packing table. A parcel's number hangs on its order alone, so asking twice is safe."""

from __future__ import annotations

from hashlib import sha256

from examples.order_inventory.workflow import OrderPacked, PackOrder


async def pack_order(command: PackOrder) -> OrderPacked:
    return OrderPacked(command.order_id, f"PARCEL-{sha256(command.order_id.encode()).hexdigest()[:8].upper()}")
