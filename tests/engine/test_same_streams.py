"""Invariant 19: the same inputs give the same streams on every store."""

from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import Runtime
from mainspring.errors import MainspringError
from mainspring.port.records import InstanceFilter, Ref
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.engine.shop import Break, Charge, Charged, Note, PlaceOrder, Ship, Shipped, Shop
from tests.engine.test_timers import Close, Open, Ticket, pass_time, settle
from tests.support.apps import TimeGoesOn
from tests.support.postgres.schemas import clean_schema
from tests.support.running import run

PAGE = 1_000
# What no store can choose: when it was, and how long it took.
TIMES = {"time_us", "created_us", "updated_us", "duration_us", "position", "key"}

orders = st.sampled_from(["o-1", "o-2"])
messages = st.one_of(
    st.builds(PlaceOrder, orders, st.integers(0, 9)),
    st.builds(Note, orders, st.text("ab", max_size=2)),
    st.builds(Break, orders),
    st.builds(Charged, orders),
    st.builds(Shipped, orders),
    st.builds(Open, orders),
    st.builds(Close, orders),
)
# A message under an id, which may have been used before; a time that passes; or what an operator does to an order.
acts = st.one_of(
    st.tuples(messages, st.integers(0, 30)),
    st.sampled_from([20, 61, 310]),
    st.tuples(orders, st.sampled_from(["resume", "skip", "cancel"])),
)


def shop(app: Mainspring) -> Mainspring:
    app.add(Shop(), Ticket())
    app.external(Ship)

    @app.handler
    async def charge(command: Charge) -> Charged | None:
        return Charged(command.order_id) if command.amount % 2 else None

    return app


async def told(app: Mainspring, clock: VirtualClock, script: list[Any]) -> list[Any]:
    """Return what became of each act, and what stands in the store afterwards."""
    found: list[Any] = []
    async with shop(app):
        for act in script:
            match act:
                case int(seconds):
                    await pass_time(app, clock, seconds)
                case str(order), str(does):
                    found.append(await _tried(getattr(app.instance(Shop, order), does)(actor="ann")))
                case message, number:
                    found.append(await _tried(_sent(app, message, f"m-{number}")))
            await settle(app)
        found += [await _stored(app), [(one.workflow, one.type, one.reason) for one in await app.dead_letters()]]
    return found


async def _sent(app: Mainspring, message: Any, id: str) -> str:
    return (await app.send(message, id=id)).status


async def _tried(act: Coroutine[Any, Any, Any]) -> str:
    try:
        return str(await act)
    except MainspringError as error:
        return str(error)


async def _stored(app: Mainspring) -> list[Any]:
    store = internals_of(app).engine.store
    rows = sorted(await store.instances(InstanceFilter(), PAGE), key=lambda row: (row.workflow, row.id))
    refs = [Ref(row.workflow, row.id) for row in rows]
    streams = [await store.stream(ref, 0, PAGE) for ref in refs]
    return [[_timeless(row) for row in rows], [[_timeless(event) for event in stream] for stream in streams]]


def _timeless(record: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(record).items() if name not in TIMES}


# Each example makes three databases; a soak, which tries others each time, takes more of them.
@settings(
    max_examples=4 if settings().derandomize else 12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(script=st.lists(acts, min_size=1, max_size=10))
def test_the_same_inputs_give_the_same_streams_on_every_store(
    script: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    stores: list[Any] = []

    async def on(name: str, url: str) -> None:
        clock = VirtualClock()
        own = MemoryStore(clock) if name == "memory" else None
        app = TimeGoesOn(url, runtime=Runtime(clock), store=own)
        stores.append(await told(app, clock, script))

    run(lambda: on("memory", "memory://"))
    run(lambda: on("sqlite", f"sqlite:///{folder / 'test.db'}"))
    assert stores[1] == stores[0]
    # Last: where there is no server it is skipped.
    with clean_schema() as schema:
        run(lambda: on("postgres", schema))
    assert stores[2] == stores[0]
