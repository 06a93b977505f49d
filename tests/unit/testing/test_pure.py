from __future__ import annotations

import inspect
from datetime import UTC, datetime

import pytest

from mainspring import Decisions, Publish, Send
from mainspring.testing import assert_pure
from tests.unit.testing.paid_orders import Input, OrderAbandoned, Orders, Output, ShipOrder, State


class Impure(Orders):
    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        print(message)  # noqa: T201  a planted bug
        return [Send(ShipOrder(str(datetime.now(UTC)))), Publish(OrderAbandoned(message.order_id))]


def test_a_pure_workflow_passes_as_a_class_or_as_an_instance() -> None:
    assert_pure(Orders)
    assert_pure(Orders())


def test_what_is_impure_is_listed_with_its_place_and_what_to_do() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_pure(Impure())
    first = inspect.getsourcelines(Impure)[1]
    assert (
        str(caught.value).replace(__file__, "test_pure.py")
        == f"""\
Impure has 2 impure places:
  test_pure.py:{first + 2}: Impure.decide calls print (io). Send a message to a handler that does it.
  test_pure.py:{first + 3}: Impure.decide calls datetime.now (clock). \
Take the time from the message or its envelope; to wait, return Schedule."""
    )
