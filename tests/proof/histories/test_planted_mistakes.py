"""Mistakes in the running code, such as engines like this one have had: each shows in what its clients see."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace as with_other

from mainspring import Mainspring, TaskOutcome
from mainspring.app import instance
from mainspring.app.tasks import Tasks
from mainspring.core.step import step
from mainspring.engine.inputs.stored_streams import present_state
from mainspring.engine.stepping import stepper
from mainspring.stores.commit.judge import Judge
from mainspring.stores.sqlite import SqliteStore
from tests.proof.crash.evidence import quiet
from tests.proof.crash.files import Place
from tests.proof.crash.seen import judge_histories, last_look
from tests.proof.crash.undisturbed import write_slate
from tests.proof.histories.calls import Witness
from tests.proof.histories.judge import Judged
from tests.proof.histories.slates import Chalk, Drop, Tally, add_slates
from tests.support.running import run
from tests.support.waiting import until

Mistake = Callable[[pytest.MonkeyPatch], None]
MISTAKES: list[Mistake] = []


def mistake(planted: Mistake) -> Mistake:
    MISTAKES.append(planted)
    return planted


@mistake
def a_write_is_acknowledged_and_forgotten(patch: pytest.MonkeyPatch) -> None:
    submit = stepper.Stepper.submit

    def forgetful(self: stepper.Stepper, pending: Any) -> None:
        if isinstance(pending.message, Chalk) and pending.answer is not None:
            pending.answer.resolve("stepped")
        else:
            submit(self, pending)

    patch.setattr(stepper.Stepper, "submit", forgetful)


@mistake
def ids_are_not_looked_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Judge, "_duplicate", lambda *_: None)


@mistake
def the_inbox_is_overtaken(patch: pytest.MonkeyPatch) -> None:
    commit = SqliteStore.commit

    async def hasty(self: SqliteStore, worker: int, units: Any) -> Any:
        return await commit(self, worker, [with_other(unit, direct=False) for unit in units])

    patch.setattr(SqliteStore, "commit", hasty)


@mistake
def a_state_is_read_from_memory(patch: pytest.MonkeyPatch) -> None:
    known: dict[str, Any] = {}

    async def remembered(store: Any, entry: Any, loaded: Any, lull: Any) -> Any:
        spot = f"{loaded.row.workflow}/{loaded.row.id}"
        if spot not in known:
            known[spot] = await present_state(store, entry, loaded, lull)
            return known[spot]
        # Every other look: whoever waits for something to come sees it in the end.
        return known.pop(spot)

    patch.setattr(instance, "present_state", remembered)


@mistake
def a_step_decides_on_an_old_state(patch: pytest.MonkeyPatch) -> None:
    def late(workflow: Any, state: Any, version: int, envelope: Any, *more: Any) -> Any:
        old = workflow.initial_state if isinstance(envelope.message, Tally) else state
        return step(workflow, old, version, envelope, *more)

    patch.setattr(stepper, "step", late)


@mistake
def everybody_is_told_that_theirs_was_the_first_answer(patch: pytest.MonkeyPatch) -> None:
    complete = Tasks.complete

    async def flattering(self: Tasks, id: str, answer: Any, **more: Any) -> TaskOutcome:
        outcome = await complete(self, id, answer, **more)
        return with_other(outcome, first=True, answered_by=more["actor"], message=answer)

    patch.setattr(Tasks, "complete", flattering)


async def _go(place: Place) -> None:
    client, worker = (_app(place) for _ in range(2))
    await client.start(work=False)
    try:
        witness = Witness(client, place.history("1"), "1")
        # Nobody works yet: what is accepted waits.
        for message in (Chalk("s-0", "a"), Drop("s-0", "b"), Chalk("s-0", "c")):
            await witness.send("Slate/s-0", message, message.mark)
            await witness.state("Slate/s-0")
        async with worker:
            await write_slate(client, witness)
            await until(lambda: quiet(place, ()))
            await last_look(client, place)
    finally:
        await client.stop()


def _app(place: Place) -> Mainspring:
    app = Mainspring(place.url)
    add_slates(app)
    return app


def _judged(place: Place) -> Judged:
    run(lambda: _go(place))
    return judge_histories(place)


def test_without_a_mistake_all_is_explained(tmp_path: Any) -> None:
    judged = _judged(Place(tmp_path))
    assert (judged.violations, judged.undecided, judged.decided) == ([], [], 3)


@pytest.mark.parametrize("planted", MISTAKES, ids=lambda planted: planted.__name__)
def test_a_mistake_shows_in_what_clients_see(planted: Mistake, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch)
    assert _judged(Place(tmp_path)).violations
