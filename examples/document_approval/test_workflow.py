import asyncio
from datetime import timedelta

import pytest

from examples.document_approval import handlers
from examples.document_approval.workflow import (
    ApproveDocument,
    Archived,
    ArchiveDocument,
    Archiving,
    DocumentApproval,
    DocumentApproved,
    DocumentArchived,
    DocumentGivenUp,
    GivenUp,
    Input,
    InReview,
    InRevision,
    RejectDocument,
    ReviewTimedOut,
    ReviseDocument,
    RevisionTimedOut,
    SubmitDocument,
)
from mainspring import Ask, Complete, Envelope, Fail, Kind, Mainspring, Publish, RefuseAnswer, Schedule, Send
from mainspring.errors import CannotBeginError, InstanceEndedError, TaskRefusedError, UnknownTransitionError
from mainspring.testing import envelope, given


def answer(message: Input, actor: str) -> Envelope[Input]:
    """What somebody answered when they were asked."""
    return envelope(message, kind=Kind.ANSWER, actor=actor)


SUBMITTED = envelope(SubmitDocument("d-1", "prices.pdf"), actor="ann")
RETURNED = answer(RejectDocument("d-1", "a typo"), "bob")
REVISED = answer(ReviseDocument("d-1", "prices-2.pdf"), "ann")
APPROVED = answer(ApproveDocument("d-1"), "bob")
LAST_ROUND = (SUBMITTED, RETURNED, REVISED, RETURNED, answer(ReviseDocument("d-1", "prices-3.pdf"), "ann"))


def review(round: int, draft: str) -> Ask[Input]:
    """What the checkers are asked about ann's draft."""
    return Ask(
        f"Check {draft} by ann",
        ApproveDocument | RejectDocument,
        role="checker",
        excludes=("ann",),
        key="review",
        reject=RejectDocument,
        due=timedelta(days=5),
        escalate=Schedule(ReviewTimedOut("d-1"), after=timedelta(days=5)),
        data={"document_id": "d-1", "round": round, "draft": draft, "maker": "ann"},
    )


def test_whoever_hands_a_document_in_is_its_maker_and_may_not_check_it() -> None:
    (
        given(DocumentApproval())
        .when(SubmitDocument("d-1", "prices.pdf"), actor="ann")
        .then(review(1, "prices.pdf"))
        .then_state(InReview(1, "prices.pdf", maker="ann"))
    )


def test_a_document_that_nobody_signed_is_not_taken() -> None:
    given(DocumentApproval()).when(SubmitDocument("d-1", "prices.pdf")).then(
        Fail("a document needs a maker: sign in first")
    )


def test_somebody_else_may_approve() -> None:
    (
        given(DocumentApproval(), SUBMITTED)
        .when(ApproveDocument("d-1"), actor="bob")
        .then(Send(ArchiveDocument("d-1", "prices.pdf", maker="ann", checker="bob")))
        .then_state(Archiving(maker="ann", checker="bob"))
    )


def test_a_document_without_a_draft_is_not_approved_until_its_maker_has_added_one() -> None:
    empty = envelope(SubmitDocument("d-1", ""), actor="ann")
    refused = given(DocumentApproval(), empty).when(ApproveDocument("d-1"), actor="bob")
    refused.then(RefuseAnswer("there is no draft to archive: reject it, and its maker can add one"))
    refused.then_state(InReview(1, "", maker="ann"))
    (
        given(DocumentApproval(), empty, APPROVED, RETURNED, REVISED)
        .when(ApproveDocument("d-1"), actor="bob")
        .then(Send(ArchiveDocument("d-1", "prices-2.pdf", maker="ann", checker="bob")))
    )


def test_a_rejected_document_goes_back_to_its_maker() -> None:
    (
        given(DocumentApproval(), SUBMITTED)
        .when(RejectDocument("d-1", "a typo"), actor="bob")
        .then(
            Ask(
                "Revise prices.pdf: a typo (bob)",
                ReviseDocument,
                person="ann",
                key="revision",
                due=timedelta(days=14),
                escalate=Schedule(RevisionTimedOut("d-1"), after=timedelta(days=14)),
                data={"document_id": "d-1"},
            )
        )
        .then_state(InRevision(1, maker="ann"))
    )


def test_the_maker_may_not_approve_a_later_draft_either() -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED)
        .when(ReviseDocument("d-1", "prices-2.pdf"), actor="ann")
        .then(review(2, "prices-2.pdf"))
        .then_state(InReview(2, "prices-2.pdf", maker="ann"))
    )


def test_the_last_round_may_still_end_well() -> None:
    given(DocumentApproval(), *LAST_ROUND).when(ApproveDocument("d-1"), actor="bob").then_state(
        Archiving(maker="ann", checker="bob")
    )


def test_a_document_that_fails_its_last_round_is_given_up() -> None:
    (
        given(DocumentApproval(), *LAST_ROUND)
        .when(RejectDocument("d-1", "a wrong date"), actor="bob")
        .then(Publish(DocumentGivenUp("d-1", "ann", "rejected 3 times, at last for a wrong date")), Complete())
        .then_state(GivenUp("ann", "rejected 3 times, at last for a wrong date"))
    )


def test_a_document_that_nobody_checks_is_given_up() -> None:
    (
        given(DocumentApproval(), SUBMITTED)
        .when(ReviewTimedOut("d-1"))
        .then(Publish(DocumentGivenUp("d-1", "ann", "nobody checked it")), Complete())
        .then_state(GivenUp("ann", "nobody checked it"))
    )


def test_a_document_that_nobody_revises_is_given_up() -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED)
        .when(RevisionTimedOut("d-1"))
        .then(Publish(DocumentGivenUp("d-1", "ann", "nobody revised it")), Complete())
        .then_state(GivenUp("ann", "nobody revised it"))
    )


def test_an_archived_document_completes_with_both_names() -> None:
    (
        given(DocumentApproval(), SUBMITTED, APPROVED)
        .when(DocumentArchived("d-1", "archive-d-1"), kind=Kind.RESULT)
        .then(Complete(DocumentApproved("d-1", maker="ann", checker="bob")))
        .then_state(Archived(maker="ann", checker="bob", archive_number="archive-d-1"))
    )


@pytest.mark.parametrize("actor", ["ann", "bob", None])
@pytest.mark.parametrize(
    "message", [ApproveDocument("d-1"), RejectDocument("d-1", "a typo"), ReviseDocument("d-1", "prices-2.pdf")]
)
@pytest.mark.parametrize("past", [(SUBMITTED,), (SUBMITTED, RETURNED), (SUBMITTED, APPROVED)])
def test_what_came_past_the_task_list_counts_for_nothing(
    past: tuple[Envelope[Input], ...], message: Input, actor: str | None
) -> None:
    given(DocumentApproval(), *past).when(message, kind=Kind.COMMAND, actor=actor).then()


@pytest.mark.parametrize("past", [(SUBMITTED,), (SUBMITTED, RETURNED), (SUBMITTED, APPROVED)])
def test_handing_the_same_document_in_again_asks_nobody_again(past: tuple[Envelope[Input], ...]) -> None:
    given(DocumentApproval(), *past).when(SubmitDocument("d-1", "prices.pdf"), actor="ann").then()


@pytest.mark.parametrize(
    ("past", "late"),
    [
        ((SUBMITTED, APPROVED), ReviewTimedOut("d-1")),
        ((SUBMITTED, RETURNED), ReviewTimedOut("d-1")),
        ((SUBMITTED, RETURNED, REVISED), RevisionTimedOut("d-1")),
    ],
)
def test_a_timer_that_an_answer_overtook_is_ignored(past: tuple[Envelope[Input], ...], late: Input) -> None:
    given(DocumentApproval(), *past).when(late).then()


def test_an_archive_number_that_nobody_asked_for_is_an_unknown_transition() -> None:
    given(DocumentApproval(), SUBMITTED).when(DocumentArchived("d-1", "archive-d-1"), kind=Kind.RESULT).then_raises(
        UnknownTransitionError, match="DocumentArchived in state InReview"
    )


def test_an_approval_cannot_begin_a_document() -> None:
    given(DocumentApproval()).when(ApproveDocument("d-1"), actor="bob").then_raises(
        CannotBeginError, match="SubmitDocument"
    )


def test_nothing_is_decided_after_the_end() -> None:
    archived = DocumentArchived("d-1", "archive-d-1")
    given(DocumentApproval(), SUBMITTED, APPROVED, archived).when(APPROVED).then_raises(InstanceEndedError)


def test_neither_the_maker_nor_a_stranger_may_check() -> None:
    async def main() -> None:
        app = Mainspring("memory://")
        app.add(DocumentApproval())
        app.handler(handlers.archive_document)
        async with asyncio.timeout(20), app:
            await app.send(SubmitDocument("d-1", "prices.pdf"), actor="ann")
            (first,) = await app.tasks.list(role="checker", person="bob")
            with pytest.raises(TaskRefusedError) as maker:
                await app.tasks.complete(first.id, ApproveDocument("d-1"), actor="ann", roles=["checker"])
            with pytest.raises(TaskRefusedError) as stranger:
                await app.tasks.complete(first.id, ApproveDocument("d-1"), actor="dan", roles=["clerk"])
            assert (maker.value.reason, stranger.value.reason) == ("excluded", "not asked")
            await app.tasks.reject(first.id, "a typo", actor="bob", roles=["checker"])
            (revision,) = await app.tasks.list(person="ann")
            with pytest.raises(TaskRefusedError):
                await app.tasks.complete(revision.id, ReviseDocument("d-1", "mine.pdf"), actor="bob", roles=["checker"])
            await app.tasks.complete(revision.id, ReviseDocument("d-1", "prices-2.pdf"), actor="ann")
            # A click on yesterday's page does not judge a draft that its checker has not seen.
            late = await app.tasks.complete(first.id, ApproveDocument("d-1"), actor="cho", roles=["checker"])
            assert (late.first, late.message) == (False, RejectDocument("d-1", "a typo"))
            (second,) = await app.tasks.list(role="checker", person="bob")
            await app.tasks.complete(second.id, ApproveDocument("d-1"), actor="bob", roles=["checker"])
            assert await app.instance(DocumentApproval, "d-1").result() == DocumentApproved("d-1", "ann", "bob")

    asyncio.run(main())


def test_a_document_is_archived_once_and_the_workflow_takes_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "archive", {})
    command = ArchiveDocument("d-1", "prices.pdf", maker="ann", checker="bob")
    result = asyncio.run(handlers.archive_document(command))
    assert asyncio.run(handlers.archive_document(command)) == result
    assert handlers.archive == {"archive-d-1": command}
    given(DocumentApproval(), SUBMITTED, APPROVED).when(result, kind=Kind.RESULT).then_state(
        Archived(maker="ann", checker="bob", archive_number="archive-d-1")
    )
