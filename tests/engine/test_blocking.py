import ast
import inspect
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from textwrap import dedent

import pytest

from mainspring import FeedEntry, Instance, Mainspring, Received, Transaction, WorkflowHandle
from mainspring.app.blocking import (
    BlockingApp,
    BlockingInstance,
    BlockingPauses,
    BlockingProjection,
    BlockingProjections,
    BlockingSchedules,
    BlockingTasks,
    BlockingTransaction,
    BlockingWorkflow,
)
from mainspring.app.pauses import Pauses
from mainspring.app.posting import Post
from mainspring.app.projections import ProjectionHandle, Projections
from mainspring.app.schedules import Schedules
from mainspring.app.tasks import Tasks
from mainspring.errors import NoSuchInstanceError, WiringError
from mainspring.sources import syntax_tree
from mainspring.testing.simulation.simulate import BlockingWorld
from mainspring.testing.simulation.world import World
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

    @app.projections.add(key=lambda entry: entry.instance)
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


def test_a_workflow_is_sent_to_without_await(make_app: MakeApp) -> None:
    with shop(make_app()).blocking() as blocking:
        orders = blocking.workflow(Shop)
        assert orders.send(PlaceOrder("o-1")).result() == Receipted("o-1", 0)
        assert [r.result() for r in orders.send_many([PlaceOrder("o-2")])] == [Receipted("o-2", 0)]
        assert orders.instance("o-1").result() == Receipted("o-1", 0)


FACADES = [
    (BlockingApp, Mainspring, {"start", "stop"}),
    (BlockingInstance, Instance, set[str]()),
    (BlockingWorkflow, WorkflowHandle, set[str]()),
    (BlockingProjection, ProjectionHandle, set[str]()),
    (BlockingProjections, Projections, set[str]()),
    (BlockingTasks, Tasks, set[str]()),
    (BlockingSchedules, Schedules, {"declare"}),
    (BlockingPauses, Pauses, set[str]()),
    (BlockingTransaction, Transaction, set[str]()),
    (BlockingWorld, World, {"close", "drive"}),
]


@pytest.mark.parametrize(("facade", "target", "unneeded"), FACADES, ids=[facade.__name__ for facade, _, _ in FACADES])
def test_type_checkers_know_every_method_that_is_awaited(facade: type, target: type, unneeded: set[str]) -> None:
    awaited = {
        name for name, value in vars(target).items() if inspect.iscoroutinefunction(value) and not name.startswith("_")
    }

    assert told_of(facade) & awaited == awaited - unneeded
    assert len(awaited - unneeded) > 0


def told_of(facade: type) -> set[str]:
    """Return the names in the part of a class that is for type checkers alone."""
    [cls] = syntax_tree(dedent(inspect.getsource(facade))).body
    assert isinstance(cls, ast.ClassDef)
    parts = [node for node in cls.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    found: set[str] = set()
    for node in chain.from_iterable(part.body for part in parts):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            [to] = node.targets
            stands_for = ast.unparse(node.value)
            own = stands_for.endswith(f".{ast.unparse(to)})") or stands_for == f"at_once({Post.__name__}.blocking)"
            assert own, "a name stands for its own method"
            found.add(ast.unparse(to))
    return found


def test_outside_its_with_block_it_says_so(make_app: MakeApp) -> None:
    blocking = closed_shop(make_app()).blocking()
    with pytest.raises(WiringError, match="not running"):
        blocking.send(PlaceOrder("o-1"))
    with blocking:
        pass
    with pytest.raises(WiringError, match="not running"):
        blocking.send(PlaceOrder("o-1"))
