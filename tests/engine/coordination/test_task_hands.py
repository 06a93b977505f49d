"""Who may take, give away and answer a task."""

import asyncio

import pytest

from mainspring.errors import DecodeError, OperationError, TaskRefusedError
from mainspring.testing.clock import VirtualClock
from tests.engine.coordination.expenses import (
    MANAGER,
    Approve,
    Expenses,
    Reject,
    Remind,
    Submit,
    app_of,
    events,
    opened,
    refusal,
)
from tests.support.apps import MakeApp
from tests.support.running import run


def test_who_may_answer_is_checked_in_the_transaction_and_a_refusal_changes_nothing(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            (listed,) = await app.tasks.list(role="manager", person="bob")
            assert listed == task
            before = await events(app)
            answer = Approve("e-1")
            # The role was withdrawn between the list and the click.
            assert await refusal(app.tasks.complete(task.id, answer, actor="bob", roles=["clerk"])) == "not asked"
            # The maker may not check, whatever her roles.
            assert await refusal(app.tasks.complete(task.id, answer, actor="ann", roles=["manager"])) == "excluded"
            assert await refusal(app.tasks.claim(task.id, actor="ann", roles=["manager"])) == "excluded"
            assert await app.tasks.list(role="manager", person="ann") == []
            # Somebody else was quicker.
            await app.tasks.claim(task.id, actor="cho", roles=["manager"])
            assert await refusal(app.tasks.complete(task.id, answer, **MANAGER)) == "held"
            assert await app.tasks.list(role="manager", person="bob") == []
            assert await refusal(app.tasks.complete(task.id, Remind("e-1"), **MANAGER)) == "answer"
            assert await events(app) == before
            assert (await app.tasks.get(task.id)).status == "open"

    run(main)


def test_an_answer_without_a_field_that_it_must_have_is_refused_by_name_and_the_task_stays_open(
    make_app: MakeApp,
) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            before = await events(app)
            with pytest.raises(DecodeError, match="reason"):
                await app.tasks.complete(task.id, "Reject", {}, **MANAGER)
            assert await events(app) == before
            assert await app.tasks.get(task.id) == task
            assert (await app.tasks.complete(task.id, "Reject", {"reason": "no receipt"}, **MANAGER)).first

    run(main)


def test_an_answer_that_names_another_instance_is_refused_and_one_that_names_none_is_not(make_app: MakeApp) -> None:
    class Unrouted(Expenses):
        def route(self, message: object) -> str | None:
            match message:
                case Approve():
                    return None
                case Reject():
                    raise LookupError("answers are not routed")
                case _:
                    return super().route(message)  # pyright: ignore[reportArgumentType]  an input

    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            await opened(app, "e-2")
            with pytest.raises(TaskRefusedError, match=r"asked by 'e-1', and this answer names 'e-2'") as refused:
                await app.tasks.complete(task.id, Approve("e-2"), **MANAGER)
            assert refused.value.reason == "instance"
            fields = {"id": "e-2", "reason": "no receipt"}
            assert await refusal(app.tasks.complete(task.id, "Reject", fields, **MANAGER)) == "instance"
            assert [one.instance for one in await app.tasks.list(role="manager")] == ["e-1", "e-2"]
        async with app_of(make_app, workflow=Unrouted) as app:
            for id, answer in (("e-3", Approve("e-9")), ("e-4", Reject("e-9", "no receipt"))):
                assert (await app.tasks.complete((await opened(app, id)).id, answer, **MANAGER)).first

    run(main)


def test_an_answer_is_judged_by_the_route_of_the_version_that_its_instance_runs_under(make_app: MakeApp) -> None:
    class Unrouted(Expenses):
        name = "Expenses"
        version = 2

        def route(self, message: object) -> str | None:
            return message.id if isinstance(message, Submit) else None

    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
        both = app_of(make_app)
        both.add(Unrouted())
        async with both as app:
            assert await refusal(app.tasks.complete(task.id, Approve("e-2"), **MANAGER)) == "instance"
            newer = await opened(app, "e-3")
            assert (await app.tasks.complete(newer.id, Approve("e-9"), **MANAGER)).first

    run(main)


def test_a_task_is_claimed_given_back_and_delegated(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            held = await app.tasks.claim(task.id, **MANAGER)
            assert (held.claimed_by, held.claimed_at is not None) == ("bob", True)
            assert await app.tasks.claim(task.id, **MANAGER) == held
            assert await refusal(app.tasks.release(task.id, actor="cho")) == "not asked"
            assert (await app.tasks.release(task.id, actor="bob")).claimed_by is None
            assert await refusal(app.tasks.delegate(task.id, "ann")) == "excluded"
            await app.tasks.delegate(task.id, "dan", **MANAGER)
            assert [one.claimed_by for one in await app.tasks.list(person="dan")] == ["dan"]
            assert await refusal(app.tasks.complete(task.id, Approve("e-1"), **MANAGER)) == "held"
            outcome = await app.tasks.complete(task.id, Approve("e-1"), actor="dan")
            assert outcome.answered_by == "dan"

    run(main)


def test_ten_people_who_pick_at_once_never_get_the_same_task(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app, app_of(make_app) as other:
            await app.send_many([Submit(f"e-{n}") for n in range(25)], actor="ann")
            people = [f"person-{n}" for n in range(10)]
            hands = await asyncio.gather(
                *((app, other)[n % 2].tasks.pick("manager", 3, actor=who) for n, who in enumerate(people))
            )
            picked = [task.id for hand in hands for task in hand]
            assert len(set(picked)) == len(picked)
            rest = [task for _ in range(10) for task in await app.tasks.pick("manager", 3, actor="last")]
            assert len(picked) + len(rest) == 25
            assert {task.claimed_by for task in rest} == {"last"} - ({"last"} if not rest else set())
            assert await app.tasks.pick("manager", actor="ann") == []

    run(main)


def test_the_next_due_is_picked_first_and_nobody_picks_what_excludes_them(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with app_of(make_app, clock) as app:
            for id, maker in (("e-1", "ann"), ("e-2", "bob"), ("e-3", "ann")):
                await opened(app, id, maker)
                clock.advance(60)
            assert [task.instance for task in await app.tasks.pick("manager", 5, actor="bob")] == ["e-1", "e-3"]
            assert [task.instance for task in await app.tasks.pick("manager", 5, actor="ann")] == ["e-2"]
            with pytest.raises(OperationError, match="Use 1 to"):
                await app.tasks.pick("manager", 0, actor="bob")

    run(main)
