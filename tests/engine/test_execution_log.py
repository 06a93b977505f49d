"""What happened to an instance, who did it, and how long it took (C8)."""

from datetime import timedelta

from mainspring import Context
from tests.engine.jobs import QUICK, Done, Job, Start, Work, has_status, job
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def test_the_log_tells_who_did_what_and_how_long_it_took(make_app: MakeApp) -> None:
    async def work(command: Work, context: Context) -> Done:
        if context.attempt < 3:
            raise ConnectionError("refused")
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, retry=QUICK) as app:
            await (await app.send(Start("j-1"), actor="ann")).result()
            log = await app.instance(Job, "j-1").log()
            assert [(line.what, line.about, line.actor, line.attempt) for line in log] == [
                ("Started", "Start", "ann", None),
                ("Stepped", "Done", None, 3),
                ("Completed", "", None, None),
            ]
            assert log[0].state == "Working"
            assert log[1].duration is not None
            assert log[1].duration >= timedelta(0)
            assert [line.time for line in log] == sorted(line.time for line in log if line.time is not None)

    run(main)


def test_a_fault_is_told_from_what_an_operator_does(make_app: MakeApp) -> None:
    async def work(command: Work) -> Done:
        raise ConnectionError("refused")

    async def main() -> None:
        async with job(make_app(), work, retry=QUICK) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            instance = app.instance(Job, "j-1")
            await instance.resume(actor="bob")
            await instance.suspend("while we look")
            await instance.cancel("of no use", actor="bob")
            lines = [(line.what, line.actor) for line in await instance.log()]
            assert lines == [
                ("Started", None),
                ("Faulted", None),
                ("Resumed", "bob"),
                ("Suspended", "operator"),
                ("Cancelled", "bob"),
            ]

    run(main)
