from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import InstanceId
from mainspring.core.messages import output_id
from mainspring.core.route import ID_CHARACTERS, route
from mainspring.errors import InvalidIdError, RouteError
from tests.unit.core.orders import CardCharged, OrderFulfilment


@dataclass(frozen=True)
class RoutesTo(OrderFulfilment):
    id: Any

    def route(self, message: Any) -> Any:
        return self.id


def test_route_gives_the_instance_that_a_message_belongs_to() -> None:
    assert route(OrderFulfilment(), CardCharged("o-1")) == "o-1"


def test_none_skips_the_message() -> None:
    assert route(RoutesTo(None), CardCharged("o-1")) is None


@pytest.mark.parametrize("id", ["o-1", "a/b", "größe", "with space", "x" * ID_CHARACTERS, "订单"])
def test_an_id_may_be_any_visible_text(id: str) -> None:
    assert route(RoutesTo(id), CardCharged("o-1")) == id


@pytest.mark.parametrize(
    ("id", "problem"),
    [
        (7, "is a int, not a string"),
        (b"o-1", "is a bytes, not a string"),
        ("", "is empty"),
        ("x" * (ID_CHARACTERS + 1), "has 1,001 characters"),
        ("line\nbreak", "cannot be seen"),
        ("nul\0", "cannot be seen"),
        ("right\u202eleft", "cannot be seen"),
        ("\ud800", "cannot be seen"),
    ],
)
def test_an_id_that_cannot_be_stored_or_shown_is_refused(id: object, problem: str) -> None:
    with pytest.raises(InvalidIdError, match=problem):
        route(RoutesTo(id), CardCharged("o-1"))


def test_an_outputs_id_is_derived_from_its_place_in_the_stream() -> None:
    assert output_id(InstanceId("OrderFulfilment", "o-1"), 12) == "OrderFulfilment/o-1/12"


def test_an_interrupt_from_the_keyboard_passes_through_a_route() -> None:
    class Interrupted(OrderFulfilment):
        def route(self, message: object) -> str | None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        route(Interrupted(), CardCharged("o-1"))


@pytest.mark.parametrize("error", [ZeroDivisionError("no"), SystemExit(3)])
def test_a_route_that_raises_is_told_with_its_message(error: BaseException) -> None:
    class Broken(OrderFulfilment):
        def route(self, message: object) -> str | None:
            raise error

    with pytest.raises(RouteError) as caught:
        route(Broken(), CardCharged("o-1"))
    assert caught.value.__cause__ is error
