"""What happened to an instance, who did it, and how long it took (C8)."""

from datetime import timedelta

from mainspring import Context, Mainspring, Retry
from mainspring.app.internals import internals_of
from mainspring.engine.recording.stored_values import moment
from mainspring.testing.clock import VirtualClock
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
            (name,) = [worker.name for worker in await internals_of(app).engine.store.workers()]
            assert [(line.what, line.about, line.actor, line.attempt) for line in log] == [
                ("Started", "Start", "ann", None),
                ("Attempted", "ConnectionError: refused", name, 1),
                ("Attempted", "ConnectionError: refused", name, 2),
                ("Stepped", "Done", None, 3),
                ("Completed", "", None, None),
            ]
            assert log[0].state == "Working"
            assert [line.duration is not None for line in log] == [False, True, True, True, False]
            assert all(line.duration >= timedelta(0) for line in log if line.duration is not None)
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
            (name,) = [worker.name for worker in await internals_of(app).engine.store.workers()]
            lines = [(line.what, line.actor) for line in await instance.log()]
            assert lines == [
                ("Started", None),
                *[("Attempted", name)] * 3,
                ("Faulted", None),
                ("Resumed", "bob"),
                ("Suspended", "operator"),
                ("Cancelled", "bob"),
            ]

    run(main)


def test_attempts_that_failed_can_be_listed(make_app: MakeApp) -> None:
    """Who made them, when, how long each took, and the error: of a command that was given up as well."""
    clock = VirtualClock()
    retry = Retry(max_attempts=3, first=timedelta(seconds=10), multiplier=1, jitter=False)

    async def work(command: Work, context: Context) -> Done:
        clock.advance(context.attempt)
        raise ConnectionError(f"refused {context.attempt}")

    async def main() -> None:
        async with job(make_app(clock), work, retry=retry) as app:
            instance = app.instance(Job, "j-1")
            begun = moment(clock.now_us())
            await app.send(Start("j-1"))
            for count in (1, 2):
                await until(lambda n=count: _has_attempts(app, n))
                await until(lambda: internals_of(app).engine.committer.idle)
                clock.advance(10)
            await until(lambda: has_status(app, "j-1", "suspended"))
            (name,) = [worker.name for worker in await internals_of(app).engine.store.workers()]
            made = await instance.attempts()
            assert [(one.position, one.number, one.worker, one.error) for one in made] == [
                (3, number, name, f"ConnectionError: refused {number}") for number in (1, 2, 3)
            ]
            times = [((one.began or begun) - begun, one.ended - begun) for one in made]
            assert times == [(timedelta(seconds=a), timedelta(seconds=b)) for a, b in ((0, 1), (11, 13), (23, 26))]
            assert [one.duration for one in made] == [timedelta(seconds=n) for n in (1, 2, 3)]

    run(main)


async def _has_attempts(app: Mainspring, count: int) -> bool:
    return len(await app.instance(Job, "j-1").attempts()) == count


def test_what_goes_well_writes_no_attempt(make_app: MakeApp) -> None:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await (await app.send(Start("j-1", 3))).result()
            assert await app.instance(Job, "j-1").attempts() == []

    run(main)
