"""What the kit's tests share: the story that a failure tells, and a workflow that breaks on a duplicate."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import TracebackType

import pytest

from mainspring import Decisions
from mainspring.testing import FuzzFailure
from tests.unit.testing.paid_orders import (
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


def failure(check: Callable[[], object]) -> str:
    with pytest.raises(AssertionError) as caught:
        check()
    return str(caught.value)


def shown_frames(tb: TracebackType | None) -> list[str]:
    """Return the files of those frames that pytest shows."""
    frames = [frame for frame, _ in traceback.walk_tb(tb)]
    return [frame.f_code.co_filename for frame in frames if not frame.f_locals.get("__tracebackhide__")]
