"""Tasks: opened, answered and closed with a commit; held by one person at a time."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec.structs import replace

from mainspring.port.records import Committed, Conflict, Duplicate, Unit
from mainspring.port.tasks import Hand, RefusalReason, Refused, TaskAnswer, TaskFilter, TaskOpening, TaskRow, TaskWork
from mainspring.testing.clock import SECOND_US
from mainspring.testing.store_contract.rig import ORDERS, Rig, Suite, accept, behaviour, order, received, step

ALL: Final = TaskFilter()


def asks(*tasks: TaskOpening, on: str = "o-1") -> Unit:
    """Return a step that begins an instance and opens tasks.

    >>> asks(task()).tasks.opens[0].version
    2
    """
    return step("m-1", on=on, tasks=TaskWork(opens=tasks))


def task(version: int = 2, key: str = "approval", **fields: Any) -> TaskOpening:
    """Return a task for managers.

    >>> task().role
    'manager'
    """
    task_fields: dict[str, Any] = {"role": "manager"}
    return TaskOpening(version, key, "Approve", ("Approve",), **(task_fields | fields))


def answers(message: str = "a-1", actor: str = "ann", roles: tuple[str, ...] = ("manager",), **fields: Any) -> Unit:
    """Return a step behind version 2 that answers the task which was asked there.

    >>> answers().tasks.answer.actor
    'ann'
    """
    step_fields: dict[str, Any] = {"tasks": TaskWork(TaskAnswer(2, actor, roles, "Approve"))}
    return step(message, after=2, **(step_fields | fields))


class TaskTests(Suite):
    """What every store must do about tasks."""

    @behaviour
    async def test_a_task_opens_with_its_step_and_is_due_by_the_stores_clock(self, rig: Rig) -> None:
        at_us = rig.clock.now_us() + 5 * SECOND_US
        opening = task(excludes=("ann",), reject="No", data=b'{"n":1}', due_after_us=3 * SECOND_US)
        await rig.done(asks(opening, task(3, "other", role=None, person="bob", due_at_us=at_us)))
        first, other = await rig.store.tasks(ALL, 10)
        assert (str(first), first.key, first.excludes, first.data) == ("Orders/o-1/2", "approval", ("ann",), b'{"n":1}')
        assert (first.due_us, other.due_us) == (rig.clock.now_us() + 3 * SECOND_US, at_us)
        assert (first.status, first.opened_us, first.claimed_by) == ("open", rig.clock.now_us(), None)
        assert await rig.store.task(order(), 2) == first
        assert await rig.store.task(order(), 9) is None

    @behaviour
    async def test_a_refused_step_opens_nothing(self, rig: Rig) -> None:
        assert await rig.commit(step("m-1", after=7, tasks=TaskWork(opens=(task(),)))) == [Conflict("version")]
        assert await rig.store.tasks(ALL, 10) == []

    @behaviour
    async def test_a_task_whose_answer_is_passed_over_is_open_again_and_one_that_is_closed_is_not(
        self, rig: Rig
    ) -> None:
        await rig.done(asks(task(), task(3, "other")))
        before = await rig.store.task(order(), 2)
        assert before is not None
        await rig.done(answers())
        answered_us = rig.clock.now_us()
        rig.clock.advance(1)
        await rig.done(step("m-2", after=3, tasks=TaskWork(closes=("other",), reopens=2)))
        assert await rig.store.task(order(), 2) == replace(before, ended_us=answered_us)
        assert [str(one) for one in await rig.store.tasks(ALL, 10)] == ["Orders/o-1/2"]
        await rig.done(step("m-3", after=4, tasks=TaskWork(reopens=3)))
        closed = await rig.store.task(order(), 3)
        assert closed is not None
        assert closed.status == "closed"

    @behaviour
    async def test_a_task_is_not_open_again_beside_the_one_that_was_asked_anew_under_its_key(self, rig: Rig) -> None:
        await rig.done(asks(task()))
        await rig.done(answers())
        await rig.done(step("m-2", after=3, tasks=TaskWork(opens=(task(4),))))
        await rig.done(step("m-3", after=4, tasks=TaskWork(reopens=2)))
        assert [str(one) for one in await rig.store.tasks(ALL, 10)] == ["Orders/o-1/4"]

    @behaviour
    async def test_an_answer_that_the_workflow_refuses_is_checked_and_leaves_its_task_as_it_is(self, rig: Rig) -> None:
        await rig.done(asks(task(excludes=("eve",))))
        held = await rig.store.hand(order(), 2, Hand("claim", "ann", ("manager",)))

        def refuses(actor: str, after: int) -> Unit:
            event = replace(received(after + 1, "a-1", "AnswerRefused", actor=actor), message_id=None)
            work = TaskWork(TaskAnswer(2, actor, ("manager",), "Approve"), refuses=True)
            return Unit(ORDERS, "o-1", expected_version=after, events=(event,), tasks=work)

        assert await rig.commit(refuses("eve", 2)) == [Refused("excluded")]
        assert await rig.commit(refuses("bob", 2)) == [Refused("held")]
        assert await rig.versions() == [1, 2]
        await rig.done(refuses("ann", 2), refuses("ann", 3))
        assert await rig.store.task(order(), 2) == held
        await rig.done(step("a-1", after=4, tasks=TaskWork(TaskAnswer(2, "ann", ("manager",), "Approve"))))
        assert await rig.commit(refuses("ann", 5)) == [Refused("answered")]

    @behaviour
    async def test_of_two_answers_in_one_batch_the_second_is_refused_with_all_that_it_does(self, rig: Rig) -> None:
        outcomes = await rig.commit(asks(task()), answers("a-1", "ann"), answers("a-2", "bob"), answers("a-3", "bob"))
        assert [type(outcome) for outcome in outcomes[:2]] == [Committed, Committed]
        assert outcomes[2:] == [Refused("answered")] * 2
        found = await rig.store.task(order(), 2)
        assert found is not None
        assert (found.status, found.answered_by, found.answer_type) == ("answered", "ann", "Approve")
        assert await rig.versions() == [1, 2, 3]

    @behaviour
    async def test_answers_of_two_workers_at_once_have_one_winner(self, rig: Rig) -> None:
        await rig.done(asks(task()))
        units = [answers(f"a-{n}", f"person-{n}") for n in range(6)]
        outcomes = await asyncio.gather(
            *(rig.store.commit((rig.worker, rig.other)[n % 2], [unit]) for n, unit in enumerate(units))
        )
        flat = [outcome for (outcome,) in outcomes]
        assert sum(isinstance(outcome, Committed) for outcome in flat) == 1
        assert [outcome for outcome in flat if not isinstance(outcome, Committed)] == [Refused("answered")] * 5

    @behaviour
    async def test_who_may_not_answer_is_refused(self, rig: Rig) -> None:
        await rig.done(asks(task(excludes=("eve",))))
        await rig.store.hand(order(), 2, Hand("claim", "bob", ("manager",)))
        refused: list[tuple[Unit, RefusalReason]] = [
            (answers(actor="ann", roles=("clerk",)), "not asked"),
            (answers(actor="eve"), "excluded"),
            (answers(actor="ann"), "held"),
            (answers(tasks=TaskWork(TaskAnswer(1, "bob", ("manager",), "Approve"))), "missing"),
        ]
        for unit, reason in refused:
            assert await rig.commit(unit) == [Refused(reason)]
        assert await rig.versions() == [1, 2]
        await rig.done(answers(actor="bob"))

    @behaviour
    async def test_what_is_built_on_a_refused_answer_is_void(self, rig: Rig) -> None:
        await rig.done(asks(task()))
        assert await rig.commit(answers(actor="ann", roles=()), step("m-3", after=2)) == [
            Refused("not asked"),
            Conflict("version"),
        ]

    @behaviour
    async def test_what_came_from_outside_answers_no_task_that_is_open(self, rig: Rig) -> None:
        barred = TaskWork(bars=("Grant", "Approve"))
        # The task opens in the very batch.
        outcomes = await rig.commit(asks(task()), step("m-2", after=2, tasks=barred), step("m-3", after=3))
        assert outcomes[1:] == [Refused("asked"), Conflict("version")]
        assert await rig.commit(step("m-2", after=2, tasks=barred)) == [Refused("asked")]
        # What is no answer is taken, however much of it comes at once.
        other = TaskWork(bars=("Remind",))
        await rig.done(step("m-2", after=2, tasks=other), step("m-3", after=3, tasks=other))
        await rig.done(step("m-4", after=4, tasks=TaskWork(closes=("approval",))), step("m-5", after=5, tasks=barred))

    @behaviour
    async def test_whose_turn_it_is_not_is_told_so_before_it_is_refused_as_an_answer(self, rig: Rig) -> None:
        barred = TaskWork(bars=("Approve",))
        await rig.done(asks(task()))
        assert await rig.commit(step("m-2", after=1, tasks=barred)) == [Conflict("version")]
        assert await rig.commit(step("m-1", after=2, tasks=barred)) == [Duplicate(same=True)]

    @behaviour
    async def test_an_answer_counts_when_it_is_accepted_into_the_inbox(self, rig: Rig) -> None:
        await rig.done(asks(task()))
        work = TaskWork(TaskAnswer(2, "ann", ("manager",), "Approve"))
        waiting = Unit(ORDERS, "o-1", accepts=accept("a-1").accepts, tasks=work)
        await rig.done(waiting)
        assert await rig.commit(waiting) == [Refused("answered")]
        assert await rig.waiting() == ["a-1"]

    @behaviour
    async def test_tasks_are_closed_by_key_or_all_and_only_those_of_the_instance(self, rig: Rig) -> None:
        await rig.done(asks(task(), task(3, "other")), asks(task(), on="o-2"))
        await rig.done(step("m-2", after=2, tasks=TaskWork(closes=("approval",))))
        assert [str(one) for one in await rig.store.tasks(ALL, 10)] == ["Orders/o-1/3", "Orders/o-2/2"]
        closed = await rig.store.task(order(), 2)
        assert closed is not None
        assert (closed.status, closed.ended_us) == ("closed", rig.clock.now_us())
        await rig.done(step("m-3", after=3, tasks=TaskWork(close_all=True)))
        assert [str(one) for one in await rig.store.tasks(ALL, 10)] == ["Orders/o-2/2"]

    @behaviour
    async def test_a_task_asked_anew_under_its_key_stays_and_one_closed_in_the_same_batch_does_not(
        self, rig: Rig
    ) -> None:
        await rig.done(
            asks(task()),
            step("m-2", after=2, tasks=TaskWork(closes=("approval",), opens=(task(3),))),
            asks(task(), on="o-2"),
            step("m-2", on="o-2", after=2, tasks=TaskWork(closes=("approval",))),
        )
        assert [str(one) for one in await rig.store.tasks(ALL, 10)] == ["Orders/o-1/3"]
        refused = Unit(ORDERS, "o-2", tasks=TaskWork(TaskAnswer(2, "ann", ("manager",), "Approve")))
        assert await rig.commit(refused) == [Refused("closed")]

    @behaviour
    async def test_people_see_what_they_were_asked_and_may_take(self, rig: Rig) -> None:
        await rig.done(
            asks(task(due_after_us=9 * SECOND_US), on="o-1"),
            asks(task(due_after_us=5 * SECOND_US, excludes=("ann",)), on="o-2"),
            asks(task(role=None, person="ann"), on="o-3"),
            asks(task(role="clerk"), on="o-4"),
        )

        async def seen(*roles: str, person: str | None = None) -> list[str]:
            return [one.instance for one in await rig.store.tasks(TaskFilter(roles, person), 10)]

        assert await seen() == ["o-2", "o-1", "o-3", "o-4"]
        assert await seen("manager") == ["o-2", "o-1"]
        assert await seen("manager", person="ann") == ["o-1", "o-3"]
        assert await seen("manager", "clerk") == ["o-2", "o-1", "o-4"]
        await rig.store.hand(order("o-1"), 2, Hand("claim", "bob", ("manager",)))
        assert await seen("manager", person="ann") == ["o-3"]
        assert await seen(person="bob") == ["o-1"]
        later = TaskFilter(due_before_us=rig.clock.now_us() + 6 * SECOND_US)
        assert [one.instance for one in await rig.store.tasks(later, 10)] == ["o-2"]
        assert [one.instance for one in await rig.store.tasks(ALL, 2, (order("o-2"), 2))] == ["o-1", "o-3"]

    @behaviour
    async def test_a_task_changes_hands_and_refusals_change_nothing(self, rig: Rig) -> None:
        await rig.done(asks(task(excludes=("eve",))))

        async def hand(kind: Any, actor: str | None, *roles: str, to: str | None = None) -> TaskRow | Refused:
            return await rig.store.hand(order(), 2, Hand(kind, actor, roles, to))

        assert await hand("claim", "ann") == Refused("not asked")
        held = await hand("claim", "ann", "manager")
        assert isinstance(held, TaskRow)
        assert (held.claimed_by, held.claimed_us) == ("ann", rig.clock.now_us())
        assert await hand("claim", "bob", "manager") == Refused("held")
        assert await hand("delegate", "ann", to="eve") == Refused("excluded")
        given = await hand("delegate", "ann", to="dan")
        assert isinstance(given, TaskRow)
        assert (given.person, given.claimed_by) == ("dan", "dan")
        assert await rig.store.task(order(), 2) == given
        freed = await hand("release", None)
        assert isinstance(freed, TaskRow)
        assert freed.claimed_by is None
        assert await rig.store.hand(order(), 9, Hand("release", None)) == Refused("missing")

    @behaviour
    async def test_no_two_people_pick_the_same_task(self, rig: Rig) -> None:
        await rig.done(*(asks(task(excludes=("ann",) if n == 0 else ()), on=f"o-{n}") for n in range(10)))
        hands = await asyncio.gather(*(rig.store.pick("manager", f"person-{n}", 2) for n in range(4)))
        picked = [str(one) for hand in hands for one in hand]
        assert len(picked) == len(set(picked)) == 8
        assert {one.claimed_by for one in hands[0]} == {"person-0"}
        rest = [*await rig.store.pick("manager", "ann", 5), *await rig.store.pick("manager", "bob", 5)]
        assert len({*picked, *(str(one) for one in rest)}) == 10
        assert await rig.store.pick("manager", "bob", 5) == await rig.store.pick("clerk", "bob", 5) == []

    @behaviour
    async def test_tasks_are_purged_with_their_instance(self, rig: Rig) -> None:
        await rig.done(asks(task()), asks(task(), on="o-2"))
        await rig.done(step("m-2", after=2, status="completed", tasks=TaskWork(close_all=True)))
        rig.clock.advance(60)
        page = await rig.store.purgeable(ORDERS, rig.clock.now_us(), 10)
        await rig.store.purge(page.found, 100)
        assert await rig.store.task(order(), 2) is None
        assert await rig.store.task(order("o-2"), 2) is not None

    @behaviour
    async def test_tasks_are_there_after_a_reopening(self, rig: Rig) -> None:
        await rig.done(asks(task()))
        await rig.store.hand(order(), 2, Hand("claim", "ann", ("manager",)))
        before = await rig.store.tasks(ALL, 10)
        await rig.reopen()
        assert await rig.store.tasks(ALL, 10) == before
