"""The first weeks of a team, on PostgreSQL with workers that are processes: each trouble stays where it began."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mainspring import Mainspring
from mainspring.analysis.stuck.held import held_back
from mainspring.engine.claiming.lone_trials import MAX_LOST
from mainspring.errors import InstanceFailedError, TaskRefusedError
from mainspring.port.records import Status, Unit
from mainspring.port.suspects import SUSPECT
from mainspring.testing.store_contract.rig import input_row
from tests.proof.first_weeks.office import Approve, Case, Note, Open, main, office
from tests.support.postgres.schemas import clean_schema
from tests.support.restarted import Restarted
from tests.support.running import run
from tests.support.waiting import until

WORKERS = 2
HUNG = 40


class Office:
    """An app that sends, and the workers, of which each one that dies is replaced."""

    def __init__(self, app: Mainspring, workers: Restarted) -> None:
        self.app, self.workers = app, workers

    async def open(self, what: str, *ids: str) -> None:
        await self.app.send_many([Open(id, what) for id in ids])

    async def ends(self, status: Status, *ids: str) -> list[str]:
        """Wait until these cases have a status, and return their errors."""

        async def all_have() -> list[str] | None:
            self.workers.mend()
            rows = {row.id: row for row in await self.app.instances(status=status, limit=1_000)}
            return [rows[id].error or "" for id in ids] if rows.keys() >= set(ids) else None

        return await until(all_have)

    async def fails(self, id: str, why: str) -> None:
        """Wait until a case has failed, for this reason."""
        await self.ends("failed", id)
        with pytest.raises(InstanceFailedError, match=why):
            await self.app.instance(Case, id).result()


async def declined_cards_hold_nobody_back(office: Office) -> None:
    await office.open("decline", *(f"declined-{n}" for n in range(5)))
    await office.open("ok", "good")
    await office.ends("completed", "good")
    await office.fails("declined-0", "declined")
    assert await held_back(office.app.engine.store) == {}


async def what_kills_workers_is_given_up(office: Office) -> None:
    await office.open("die", "fatal")
    await office.open("ok", *(f"neighbour-{n}" for n in range(10)))
    await office.ends("completed", *(f"neighbour-{n}" for n in range(10)))
    await office.fails("fatal", f"was lost with {SUSPECT + MAX_LOST} workers")
    assert office.workers.deaths == SUSPECT + MAX_LOST


async def a_chosen_id_takes_nobodys_place(office: Office) -> None:
    await office.open("wait", "told")
    await office.app.send(Note("told", last=False), id="Case/teller/3")
    await office.open("tell:told", "teller")
    await office.ends("completed", "told", "teller")


async def a_decide_without_an_end_is_ended(office: Office) -> None:
    await office.open("wait", "thinker")
    # Not sent: that would be stepped here.
    think = input_row("think-1", "thinker", workflow="Case", type="Think", body=b'{"id":"thinker"}')
    await office.app.engine.committer.commit(Unit("Case", "thinker", accepts=(think,)))
    (error,) = await office.ends("suspended", "thinker")
    assert "its step for Think had not ended" in error


async def hung_functions_keep_nobody_waiting(office: Office) -> None:
    await office.open("hang", *(f"hung-{n}" for n in range(HUNG)))
    await office.open("look", "seen")
    await office.ends("completed", "seen")
    await office.ends("failed", *(f"hung-{n}" for n in range(HUNG)))


async def an_answer_is_for_its_own_case(office: Office) -> None:
    await office.open("ask", "asked-1", "asked-2")
    tasks = await office.app.tasks.list()
    first = next(task for task in tasks if task.instance == "asked-1")
    with pytest.raises(TaskRefusedError):
        await office.app.tasks.complete(first.id, Approve("asked-2"), actor="ann", roles=["boss"])
    await office.app.tasks.complete(first.id, Approve("asked-1"), actor="ann", roles=["boss"])
    await office.ends("completed", "asked-1")


WEEKS: list[Callable[[Office], Awaitable[None]]] = [
    declined_cards_hold_nobody_back,
    what_kills_workers_is_given_up,
    a_chosen_id_takes_nobodys_place,
    a_decide_without_an_end_is_ended,
    hung_functions_keep_nobody_waiting,
    an_answer_is_for_its_own_case,
]


def test_each_trouble_of_the_first_weeks_stays_where_it_began() -> None:
    async def body(url: str) -> None:
        app = office(Mainspring(url))
        await app.start(work=False)
        workers = Restarted(main, url, WORKERS)
        try:
            for week in WEEKS:
                await week(Office(app, workers))
            # What failed was told to its case, which took it; and nothing is left to be looked after but the thinker.
            assert await app.dead_letters() == []
            assert [row.id for row in await app.instances(status="suspended")] == ["thinker"]
            assert await app.engine.store.suspects(10) == []
        finally:
            workers.stop()
            await app.stop()

    with clean_schema() as url:
        run(lambda: body(url))
