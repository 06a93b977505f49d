"""An operator of the golden app, after an upgrade: mends what stopped, and answers what was asked."""

from __future__ import annotations

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.port.records import InstanceFilter
from tests.proof.golden.orders import Order
from tests.proof.golden.reading import MOST
from tests.proof.golden.trip_handlers import answer
from tests.proof.golden.trips import Trip
from tests.support.waiting import until


async def mend(app: Mainspring) -> None:
    """Retry the dead letters, resume what is suspended, and let the clerk approve what is open."""
    for letter in await app.dead_letters():
        await app.retry_dead_letter(letter.id, actor="ann")
    for row in await internals_of(app).engine.store.instances(InstanceFilter(status="suspended"), MOST):
        await app.instance_at(f"{row.workflow}/{row.id}").resume(actor="ann")
    for task in await app.tasks.list(role="clerk"):
        await answer(app, task.instance, yes=True)


async def all_ended(app: Mainspring) -> bool:
    """Tell whether every order and every trip has ended, and nothing is owed."""
    store = internals_of(app).engine.store
    for workflow in (Order, Trip):
        rows = await store.instances(InstanceFilter(workflow=workflow.__name__), MOST)
        if any(row.status not in ("completed", "failed", "cancelled") for row in rows):
            return False
    return not await store.outputs(None, timers=False, limit=1)


async def rest(app: Mainspring) -> None:
    """Wait until there is nothing to do any more."""
    await until(lambda: all_ended(app))
