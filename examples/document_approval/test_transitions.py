"""What holds before and after each transition: the state, the open task and its time, the timers, what is owed, the
last line of the log, and the position.

A transition whose precondition does not hold leaves all of it as it was.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from examples.document_approval import handlers
from examples.document_approval.workflow import (
    ApproveDocument,
    Archived,
    ArchiveDocument,
    Archiving,
    DocumentApproval,
    DocumentArchived,
    GivenUp,
    InReview,
    InRevision,
    New,
    RejectDocument,
    ReviewTimedOut,
    ReviseDocument,
    State,
    SubmitDocument,
)
from mainspring import Mainspring
from mainspring.errors import NoSuchInstanceError, PositionConflictError, TaskRefusedError
from mainspring.testing import simulate

CHECKER: dict[str, Any] = {"actor": "bob", "roles": ["checker"]}
SUBMIT = SubmitDocument("d-1", "prices.pdf")
REVIEW = (("review", timedelta(days=5)),)
REVISION = (("revision", timedelta(days=14)),)


class Seen(NamedTuple):
    """An instance from outside."""

    state: State
    tasks: tuple[tuple[str, timedelta | None], ...]
    timers: tuple[str, ...]
    owed: tuple[str, ...]
    last: tuple[str, str, str | None]
    position: int


async def look(app: Mainspring) -> Seen:
    document = app.instance(DocumentApproval, "d-1")
    last, tasks = (await document.log())[-1], await app.tasks.list()
    return Seen(
        await document.state(),
        tuple((task.key, None if task.due_at is None else task.due_at - task.opened_at) for task in tasks),
        tuple(str(timer.type) for timer in await document.outputs(timers=True)),
        tuple(str(output.type) for output in await document.outputs()),
        (last.what, last.about, last.actor),
        (await document.row()).position,
    )


async def open_task(app: Mainspring) -> str:
    (task,) = await app.tasks.list()
    return task.id


def wired(archive: Callable[[ArchiveDocument], Awaitable[DocumentArchived]] = handlers.archive_document) -> Mainspring:
    app = Mainspring("memory://")
    app.add(DocumentApproval())
    app.handler(archive)
    return app


def test_each_transition_leaves_what_the_next_one_needs() -> None:
    called, go_on = asyncio.Event(), asyncio.Event()

    async def archive_slowly(command: ArchiveDocument) -> DocumentArchived:
        called.set()
        await go_on.wait()
        return DocumentArchived(command.document_id, "archive-d-1")

    async def main() -> None:
        async with asyncio.timeout(20), wired(archive_slowly) as app:
            document = app.instance(DocumentApproval, "d-1")
            with pytest.raises(NoSuchInstanceError):
                await look(app)

            await app.send(SUBMIT, actor="ann")
            handed_in = ("Started", "SubmitDocument", "ann")
            assert await look(app) == (
                InReview(1, "prices.pdf", "ann"),
                REVIEW,
                ("ReviewTimedOut",),
                (),
                handed_in,
                4,
            )

            first = await open_task(app)
            await app.tasks.reject(first, "a typo", **CHECKER)
            sent_back = ("Stepped", "RejectDocument", "bob")
            assert await look(app) == (InRevision(1, "ann"), REVISION, ("RevisionTimedOut",), (), sent_back, 8)
            consumed = await app.tasks.get(first)
            assert (consumed.status, consumed.answer, consumed.answered_by) == ("answered", "RejectDocument", "bob")

            await app.tasks.complete(await open_task(app), ReviseDocument("d-1", "prices-2.pdf"), actor="ann")
            revised = ("Stepped", "ReviseDocument", "ann")
            assert await look(app) == (
                InReview(2, "prices-2.pdf", "ann"),
                REVIEW,
                ("ReviewTimedOut",),
                (),
                revised,
                12,
            )

            await app.tasks.complete(await open_task(app), ApproveDocument("d-1"), **CHECKER)
            await called.wait()
            # What is to be done outside is recorded before it is done, and nothing waits for a person any more.
            approved = ("Stepped", "ApproveDocument", "bob")
            assert await look(app) == (Archiving("ann", "bob"), (), (), ("ArchiveDocument",), approved, 15)

            go_on.set()
            await document.result()
            ended = ("Completed", "DocumentApproved", None)
            assert await look(app) == (Archived("ann", "bob", "archive-d-1"), (), (), (), ended, 17)
            assert (await document.row()).status == "completed"

    asyncio.run(main())


def test_a_transition_whose_precondition_does_not_hold_changes_nothing() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), wired() as app:
            seen = (await (await app.send(SUBMIT, actor="ann")).row()).position
            task = await open_task(app)
            before = await look(app)
            answer = ApproveDocument("d-1")
            for who, roles, reason in (("ann", ["checker"], "excluded"), ("dan", ["clerk"], "not asked")):
                with pytest.raises(TaskRefusedError) as refused:
                    await app.tasks.complete(task, answer, actor=who, roles=roles)
                assert refused.value.reason == reason
            with pytest.raises(TaskRefusedError):
                await app.tasks.complete(task, ReviseDocument("d-1", "mine.pdf"), **CHECKER)
            with pytest.raises(PositionConflictError):
                await app.send(SUBMIT, actor="ann", expected_position=seen - 1)
            assert await look(app) == before

            await app.tasks.reject(task, "a typo", **CHECKER)
            before = await look(app)
            again = await app.tasks.complete(task, answer, actor="cho", roles=["checker"])
            assert (again.first, again.message) == (False, RejectDocument("d-1", "a typo"))
            assert await look(app) == before

    asyncio.run(main())


def test_a_timer_that_is_due_consumes_the_task_like_an_answer() -> None:
    async def main() -> None:
        app = wired()
        async with asyncio.timeout(20), simulate(app) as world:
            await world.send(SUBMIT, actor="ann")
            task = await open_task(app)
            await world.advance(timedelta(days=5) - timedelta(seconds=1))
            assert (await look(app)).state == InReview(1, "prices.pdf", "ann")
            await world.advance(seconds=1)
            gone = GivenUp("ann", "nobody checked it")
            assert await look(app) == (gone, (), (), (), ("Completed", "", None), 7)
            assert (await app.tasks.get(task)).status == "closed"
            log = await world.instance(DocumentApproval, "d-1").log()
            assert [(line.what, line.about) for line in log[:-1]] == [
                ("Started", "SubmitDocument"),
                ("Stepped", ReviewTimedOut.__name__),
            ]
            with pytest.raises(TaskRefusedError):
                await app.tasks.complete(task, ApproveDocument("d-1"), **CHECKER)

    asyncio.run(main())


def test_a_revision_that_is_overdue_consumes_its_task_too() -> None:
    async def main() -> None:
        app = wired()
        async with asyncio.timeout(20), simulate(app) as world:
            await world.send(SUBMIT, actor="ann")
            await app.tasks.reject(await open_task(app), "a typo", **CHECKER)
            task = await open_task(app)
            before = await look(app)
            await world.advance(timedelta(days=14) - timedelta(seconds=1))
            assert await look(app) == before
            await world.advance(seconds=1)
            gone = GivenUp("ann", "nobody revised it")
            assert await look(app) == (gone, (), (), (), ("Completed", "", None), 11)
            assert (await app.tasks.get(task)).status == "closed"

    asyncio.run(main())


def test_the_third_rejection_is_the_last() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), wired() as app:
            await app.send(SUBMIT, actor="ann")
            for _ in range(2):
                await app.tasks.reject(await open_task(app), "a typo", **CHECKER)
                await app.tasks.complete(await open_task(app), ReviseDocument("d-1", "prices.pdf"), actor="ann")
            assert (await look(app))[:3] == (InReview(3, "prices.pdf", "ann"), REVIEW, ("ReviewTimedOut",))

            await app.tasks.reject(await open_task(app), "still a typo", **CHECKER)
            await (document := app.instance(DocumentApproval, "d-1")).result()
            gone = GivenUp("ann", "rejected 3 times, at last for still a typo")
            assert (await look(app))[:5] == (gone, (), (), (), ("Completed", "", None))
            assert (await document.log())[-2].about == "RejectDocument"

    asyncio.run(main())


def test_a_document_of_nobody_asks_nobody() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), wired() as app:
            await app.send(SUBMIT)
            why = "a document needs a maker: sign in first"
            assert await look(app) == (New(), (), (), (), ("Failed", why, None), 3)

    asyncio.run(main())


def test_an_approval_without_a_draft_leaves_all_as_it_was_but_for_its_record() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), wired() as app:
            await app.send(SubmitDocument("d-1", ""), actor="ann")
            before = await look(app)
            with pytest.raises(TaskRefusedError) as refused:
                await app.tasks.complete(await open_task(app), ApproveDocument("d-1"), **CHECKER)
            assert refused.value.reason == "guard"
            after = await look(app)
            assert (after[:4], after.position) == (before[:4], before.position + 1)
            assert after.last == ("Refused", refused.value.detail, "bob")

    asyncio.run(main())
