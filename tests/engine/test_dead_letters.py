"""Dead letters that are corrected and carried out after all (E4)."""

import pytest

from mainspring import Context, DoNotRetryError, Mainspring
from mainspring.core.events import Resent
from mainspring.errors import OperationError
from tests.engine.jobs import Done, Job, Start, Work, has_status, job
from tests.engine.shop import Note, PlaceOrder
from tests.engine.test_stepping import closed_shop
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def test_a_corrected_command_is_recorded_and_carried_out_under_a_key_of_its_own(make_app: MakeApp) -> None:
    keys: list[str] = []

    async def work(command: Work, context: Context) -> Done:
        keys.append(context.idempotency_key)
        if command.part == 0:
            raise DoNotRetryError("part 0 does not exist")
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id, Work("j-1", 7), actor="ann")
            assert await app.dead_letters() == []
            instance = app.instance(Job, "j-1")
            await instance.result()
            (resent,) = [entry for entry in await instance.stream() if isinstance(entry.event, Resent)]
            assert (resent.event, resent.actor) == (Resent(Work("j-1", 7)), "ann")
            assert keys == ["Job/j-1/3", f"Job/j-1/{resent.position}"]
            assert [line.what for line in await instance.log()].count("Resent") == 1

    run(main)


def test_a_corrected_input_is_taken_under_its_old_id(make_app: MakeApp) -> None:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await app.send(Done("j-1", 0), id="m-1")
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id, Start("j-1", times=0))
            assert await app.dead_letters() == []
            assert (await app.instance(Job, "j-1").stream())[1].message_id == "m-1"

    run(main)


def test_a_command_cannot_become_what_its_workflow_does_not_send(make_app: MakeApp) -> None:
    async def work(command: Work) -> Done:
        raise DoNotRetryError("no")

    async def main() -> None:
        async with job(make_app(), work) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            (letter,) = await app.dead_letters()
            with pytest.raises(OperationError, match="Use an output of Job"):
                await app.retry_dead_letter(letter.id, Start("j-1"))
            assert await app.dead_letters() == [letter]

    run(main)


def test_a_letter_that_was_sent_again_and_taken_meanwhile_goes_when_it_is_retried() -> None:
    async def main() -> None:
        async with closed_shop(Mainspring("memory://")) as app:
            await app.send(Note("o-1", "early"), id="m-1")
            (letter,) = await app.dead_letters()
            await app.send(PlaceOrder("o-1"))
            assert (await app.send(Note("o-1", "early"), id="m-1")).status == "stepped"
            await app.retry_dead_letter(letter.id)
            assert await app.dead_letters() == []

    run(main)
