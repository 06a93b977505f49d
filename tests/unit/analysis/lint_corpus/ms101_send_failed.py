"""A failure of the wrong command is handled: the one that can come there finds no case.

expect: MS101
"""

from __future__ import annotations

from typing import Any

from mainspring import Decisions, Fail, Mainspring, SendFailed
from tests.unit.analysis.lint_corpus.common import Paid, Pay, Ship, Shipped
from tests.unit.analysis.lint_corpus.good_send_failed import Input, Output
from tests.unit.analysis.lint_corpus.good_send_failed import Orders as Good


class Orders(Good):
    name = "Orders"

    def decide(self, message: Any, state: Any) -> Decisions[Input, Output] | None:
        match message:
            case SendFailed(type="Pay"):
                return [Fail("not paid")]
        return self.others(message, state)


app = Mainspring("memory://")
app.add(Orders())


@app.handler
async def pay(command: Pay) -> Paid:
    return Paid(command.id)


@app.handler
async def ship(command: Ship) -> Shipped:
    return Shipped(command.id)
