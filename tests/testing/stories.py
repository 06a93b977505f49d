"""What the tests of fuzz share: the story that a failure tells, and a workflow that breaks on a duplicate."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mainspring import Decisions
from mainspring.testing import FuzzFailure
from tests.testing.shop import (
    AwaitingPayment,
    Input,
    Orders,
    Output,
    PlaceOrder,
    State,
)

PLACED = """\
position  kind     direction  event        message
1                             Began
2         command  input      InitiatedBy  PlaceOrder(order_id='o-1', amount=4200)
3         command  output     Sent         ChargeCard(order_id='o-1', amount=4200)
4         timer    output     Scheduled    PaymentTimedOut(order_id='o-1') after 5 min"""

PLACED_AND_CHARGED = """\
  1. PlaceOrder(order_id='o-1', amount=4200)
  2. CardCharged(order_id='o-1')"""


def story(run: Callable[[], object]) -> str:
    with pytest.raises(FuzzFailure) as caught:
        run()
    return str(caught.value)


class Strict(Orders):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PlaceOrder(), AwaitingPayment():
                raise ValueError("placed twice")
        return super().decide(message, state)
