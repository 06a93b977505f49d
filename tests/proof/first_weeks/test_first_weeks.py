"""The first weeks of a team, on PostgreSQL with workers that are processes: each trouble stays where it began."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from mainspring import Mainspring, Received, SendFailed
from mainspring.analysis.stuck.held import held_back
from mainspring.app.internals import internals_of
from mainspring.engine.claiming.lone_trials import MAX_LOST
from mainspring.errors import InstanceFailedError, OperationError, StoreError, TaskRefusedError
from mainspring.port.records import Status, Unit
from mainspring.port.suspects import SUSPECT
from mainspring.stores.postgres import session
from mainspring.testing.store_contract.rig import input_row
from mainspring.views import Task
from tests.proof.first_weeks.office import Approve, Case, Note, Open, hurried, hurry, main
from tests.proof.first_weeks.office import office as running
from tests.proof.postgres_faults.standby import paired
from tests.support.postgres.schemas import clean_schema
from tests.support.restarted import Restarted, Started
from tests.support.running import run
from tests.support.soaking import some_of
from tests.support.waiting import until

WORKERS = 2
HUNG = 40
SOME = 20


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
    assert await held_back(internals_of(office.app).engine.store) == {}


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
    await internals_of(office.app).engine.committer.commit(Unit("Case", "thinker", accepts=(think,)))
    (error,) = await office.ends("suspended", "thinker")
    assert "its step for Think had not ended" in error


async def hung_functions_keep_nobody_waiting(office: Office) -> None:
    await office.open("hang", *(f"hung-{n}" for n in range(HUNG)))
    await office.open("look", "seen")
    await office.ends("completed", "seen")
    await office.ends("failed", *(f"hung-{n}" for n in range(HUNG)))


async def an_answer_is_for_its_own_case(office: Office) -> None:
    await office.open("ask", "asked-1", "asked-2")
    (first,) = await tasks_of(office, "asked-1")
    with pytest.raises(TaskRefusedError):
        await office.app.tasks.complete(first.id, Approve("asked-2"), actor="ann", roles=["boss"])
    await office.app.tasks.complete(first.id, Approve("asked-1"), actor="ann", roles=["boss"])
    await office.ends("completed", "asked-1")


async def tasks_of(office: Office, id: str) -> list[Task]:
    return [task for task in await office.app.tasks.list() if task.instance == id]


async def an_answer_that_was_skipped_opens_its_task_again(office: Office) -> None:
    await office.open("ask", "doubted")
    (task,) = await tasks_of(office, "doubted")
    await office.app.tasks.complete(task.id, Approve("doubted", clear=False), actor="ann", roles=["boss"])
    await office.ends("suspended", "doubted")
    assert await tasks_of(office, "doubted") == []
    await office.app.instance(Case, "doubted").skip(actor="ops")
    (again,) = await tasks_of(office, "doubted")
    assert (again.id, again.status) == (task.id, "open")
    await office.app.tasks.complete(task.id, Approve("doubted"), actor="ann", roles=["boss"])
    await office.ends("completed", "doubted")


async def what_newer_workers_know_waits_for_them(office: Office) -> None:
    strange, plain = [f"strange-{n}" for n in range(10)], [f"plain-{n}" for n in range(10)]
    sender = running(Mainspring(internals_of(office.app).url), newer=True)
    await sender.start(work=False)
    await sender.send_many([Open(id, "remind") for id in strange])
    await sender.stop()
    await office.open("ok", *plain)
    await office.ends("completed", *plain)
    await office.ends("running", *strange)
    assert await office.app.dead_letters() == []
    async with running(Mainspring(internals_of(office.app).url), newer=True):
        await office.ends("completed", *strange)


async def what_was_taken_is_not_retried(office: Office) -> None:
    await office.open("shrug", "taken")
    await office.open("leave", "left")
    (left,) = await until(office.app.dead_letters)
    case = office.app.instance(Case, "taken")
    await until(lambda: _has_failed(case))
    # As a release before this one kept it, which had no word for a failure that was taken.
    (stored,) = await internals_of(office.app).engine.store.dead_letters(1, 0)
    row, output = await case.row(), stored.output
    assert output is not None
    old = replace(
        stored, instance="taken", output=replace(output, instance=row.key), message_id=f"Case/taken/{output.version}"
    )
    await internals_of(office.app).engine.committer.commit(Unit("Case", "taken", dead_letters=(old,)))
    (_, taken) = await office.app.dead_letters()
    for letter, why in ((left, "Case/left has completed"), (taken, "Case/taken has taken its failure")):
        with pytest.raises(OperationError, match=why):
            await office.app.retry_dead_letter(letter.id)
        await office.app.discard_dead_letter(letter.id)


async def _has_failed(case: Any) -> bool:
    events: list[Any] = [entry.event for entry in await case.stream()]
    return any(isinstance(event, Received) and isinstance(event.message, SendFailed) for event in events)


WEEKS: list[Callable[[Office], Awaitable[None]]] = [
    declined_cards_hold_nobody_back,
    what_kills_workers_is_given_up,
    a_chosen_id_takes_nobodys_place,
    a_decide_without_an_end_is_ended,
    hung_functions_keep_nobody_waiting,
    an_answer_is_for_its_own_case,
    an_answer_that_was_skipped_opens_its_task_again,
    what_newer_workers_know_waits_for_them,
    what_was_taken_is_not_retried,
]


def test_each_trouble_of_the_first_weeks_stays_where_it_began() -> None:
    async def body(url: str) -> None:
        app = running(Mainspring(url))
        await app.start(work=False)
        workers = Restarted(main, url, WORKERS)
        try:
            for week in WEEKS:
                await week(Office(app, workers))
            # What failed was told to its case, which took it; and nothing is left to be looked after but the thinker.
            assert await app.dead_letters() == []
            assert [row.id for row in await app.instances(status="suspended")] == ["thinker"]
            assert await internals_of(app).engine.store.suspects(10) == []
        finally:
            workers.stop()
            await app.stop()

    with clean_schema() as url:
        run(lambda: body(url))


class Sender:
    """Opens cases without an end, and opens one again that may not have come in, under the same id."""

    def __init__(self, app: Mainspring, name: str) -> None:
        self._app, self._name = app, name
        self.opened: list[str] = []
        self.stopping = False

    async def send(self) -> None:
        for number in count():
            if self.stopping:
                return
            await self._open(f"{self._name}-{number}")

    async def _open(self, id: str) -> None:
        while True:
            try:
                await self._app.send(Open(id, "ok"), id=f"open-{id}")
            except StoreError:
                continue  # it may have been taken: it is opened again under its id
            self.opened.append(id)
            return


@asynccontextmanager
async def sending(app: Mainspring) -> AsyncGenerator[list[Sender]]:
    """Let some send all the time."""
    senders = [Sender(app, f"{name}") for name in ("ann", "bob", "cem")]
    tasks = [asyncio.ensure_future(sender.send()) for sender in senders]
    try:
        yield senders
    finally:
        for sender in senders:
            sender.stopping = True
        await asyncio.gather(*tasks)


async def more(senders: list[Sender]) -> None:
    """Return when each has opened some more."""
    before = [len(sender.opened) for sender in senders]
    seconds = 4 * session.ANSWER_SECONDS
    pairs = list(zip(senders, before, strict=True))
    await until(lambda: all(len(sender.opened) > then + SOME for sender, then in pairs), max(seconds, 60.0))


@pytest.mark.parametrize("work", some_of([hurried, main], [hurried]))
def test_a_primary_that_hangs_costs_nobody_more_than_a_wait_when_its_standby_takes_over(
    work: Callable[[str, Started], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The long form has the time that a server has elsewhere: it is 40 s until its silence is believed."""

    async def body() -> None:
        async with paired() as pair:
            url, hanging = pair.url("postgres"), pair.primary
            app, workers = running(Mainspring(url)), Restarted(work, url, WORKERS)
            try:
                await app.start(work=False)
                await workers.at_work()  # one that cannot reach its database when it starts ends, as it should
                async with sending(app) as senders:
                    await more(senders)
                    hanging.signal_all(signal.SIGSTOP)
                    await pair.take_over()
                    await more(senders)
                office = Office(app, workers)
                await office.ends("completed", *(id for sender in senders for id in sender.opened))
                assert await app.dead_letters() == []
                assert await app.instances(status="suspended") == []
                assert workers.deaths == 0
            finally:
                workers.stop()
                await app.stop()
                hanging.signal_all(signal.SIGCONT)

    if work is hurried:
        monkeypatch.setattr(session, "CONNECT_SECONDS", session.CONNECT_SECONDS)
        monkeypatch.setattr(session, "ANSWER_SECONDS", session.ANSWER_SECONDS)
        hurry()
    asyncio.run(body())
