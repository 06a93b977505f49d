from dataclasses import dataclass
from datetime import timedelta

import pytest

from mainspring import FeedEntry, Received
from mainspring.errors import NoSuchInstanceError, WiringError
from tests.engine.shop import Note, Paying, PlaceOrder, Receipted, Shop
from tests.engine.test_stepping import closed_shop, shop
from tests.support.apps import MakeApp


@dataclass(frozen=True)
class Kept:
    count: int = 0


def test_a_program_without_an_event_loop_sends_and_waits(make_app: MakeApp) -> None:
    with shop(make_app()).blocking() as blocking:
        receipt = blocking.send(PlaceOrder("o-1"))
        assert receipt.status == "stepped"
        assert receipt.result(timeout=timedelta(seconds=60)) == Receipted("o-1", 0)
        assert [r.result() for r in blocking.send_many([PlaceOrder("o-2"), PlaceOrder("o-3")])] == [
            Receipted("o-2", 0),
            Receipted("o-3", 0),
        ]


def test_instances_and_errors_are_the_same_as_in_the_async_app(make_app: MakeApp) -> None:
    with closed_shop(make_app()).blocking() as blocking:
        blocking.send(PlaceOrder("o-1"))
        blocking.send(Note("o-1", "a"))
        assert blocking.instance(Shop, "o-1").state() == Paying("o-1", 1, ("a",))
        with pytest.raises(NoSuchInstanceError, match="There is no instance Shop/o-9"):
            blocking.instance(Shop, "o-9").state()


def test_read_models_tasks_and_schedules_are_asked_without_await(make_app: MakeApp) -> None:
    app = closed_shop(make_app())

    @app.projection(key=lambda entry: entry.instance)
    def notes(document: Kept | None, entry: FeedEntry) -> Kept | None:
        noted = isinstance(entry.event, Received) and isinstance(entry.event.message, Note)
        return Kept((document or Kept()).count + noted)

    with app.blocking() as blocking:
        blocking.send(PlaceOrder("o-1"))
        blocking.send(Note("o-1", "a"))
        blocking.projections("notes").caught_up()
        assert blocking.projections("notes").get("o-1") == Kept(1)
        assert [status.name for status in blocking.projections.list()] == ["notes"]
        assert (blocking.tasks.list(), blocking.schedules.list(), blocking.pauses.list()) == ([], [], [])
        assert not callable(blocking.instance(Shop, "o-1")), "a template of Django calls whatever can be called"


def test_outside_its_with_block_it_says_so(make_app: MakeApp) -> None:
    blocking = closed_shop(make_app()).blocking()
    with pytest.raises(WiringError, match="not running"):
        blocking.send(PlaceOrder("o-1"))
    with blocking:
        pass
    with pytest.raises(WiringError, match="not running"):
        blocking.send(PlaceOrder("o-1"))
