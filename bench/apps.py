"""The apps that are measured: handlers do nothing and return a small record."""

from __future__ import annotations

from bench.workflows import (
    Branch,
    BranchDone,
    Call,
    Called,
    Chain,
    Charge,
    Charged,
    FanOut,
    Orders,
    Ship,
    Shipped,
    Sleeper,
    Validate,
    Validated,
)
from mainspring import Context, Mainspring

CHAIN_ID = "chain"
FAN_OUT_ID = "fan-out"


def orders(url: str) -> Mainspring:
    """W1, W2."""
    app = Mainspring(url)
    app.add(Orders())

    @app.handler
    async def validate(command: Validate) -> Validated:  # pyright: ignore[reportUnusedFunction]  the app calls it
        return Validated(command.order.id, "validate", ok=True)

    @app.handler
    async def charge(command: Charge) -> Charged:  # pyright: ignore[reportUnusedFunction]  the app calls it
        return Charged(command.order.id, "charge", ok=True)

    @app.handler
    async def ship(command: Ship) -> Shipped:  # pyright: ignore[reportUnusedFunction]  the app calls it
        return Shipped(command.order.id, "ship", ok=True)

    return app


def everything(url: str) -> Mainspring:
    """Orders, beside many that sleep."""
    app = orders(url)
    app.add(Sleeper())
    return app


def chain(url: str, workflow: Chain | None = None) -> tuple[Mainspring, list[int]]:
    """W3 and replay; with a list whose one number tells how many calls were made, for the progress shown."""
    app = Mainspring(url)
    app.add(workflow or Chain())
    made = [0]

    @app.handler
    async def call(command: Call, context: Context) -> Called:  # pyright: ignore[reportUnusedFunction]  the app calls it
        made[0] = command.number
        return Called(context.instance.partition("/")[2], command.number, ok=True)

    return app, made


def fan_out(url: str) -> Mainspring:
    """W4."""
    app = Mainspring(url)
    app.add(FanOut())

    @app.handler
    async def branch(command: Branch) -> BranchDone:  # pyright: ignore[reportUnusedFunction]  the app calls it
        return BranchDone(FAN_OUT_ID, command.number, ok=True)

    return app


def sleepers(url: str) -> Mainspring:
    """W6."""
    app = Mainspring(url)
    app.add(Sleeper())
    return app
