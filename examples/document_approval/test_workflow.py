import asyncio

import pytest

from examples.document_approval import handlers
from examples.document_approval.workflow import (
    TIME_TO_REVIEW,
    TIME_TO_REVISE,
    ActionRefused,
    ApproveDocument,
    Archived,
    ArchiveDocument,
    Archiving,
    DocumentApproval,
    DocumentApproved,
    DocumentArchived,
    DocumentGivenUp,
    DocumentReturned,
    GivenUp,
    Input,
    InReview,
    InRevision,
    New,
    RejectDocument,
    RequestReview,
    RequestRevision,
    ReviewTimedOut,
    ReviseDocument,
    RevisionTimedOut,
    SubmitDocument,
)
from mainspring import CancelSchedule, Complete, Envelope, Kind, Publish, Reply, Schedule, Send
from mainspring.errors import CannotBeginError, InstanceEndedError, UnknownTransitionError
from mainspring.testing import envelope, given

SUBMITTED = envelope(SubmitDocument("d-1", "prices.pdf"), actor="ann")
RETURNED = envelope(RejectDocument("d-1", 1, "a typo"), actor="bob")
REVISED = envelope(ReviseDocument("d-1", "prices-2.pdf"), actor="ann")
APPROVED = envelope(ApproveDocument("d-1", 1), actor="bob")
LAST_ROUND = (
    SUBMITTED,
    RETURNED,
    REVISED,
    envelope(RejectDocument("d-1", 2, "a gap"), actor="bob"),
    envelope(ReviseDocument("d-1", "prices-3.pdf"), actor="ann"),
)


def test_whoever_hands_a_document_in_is_its_maker() -> None:
    (
        given(DocumentApproval())
        .when(SubmitDocument("d-1", "prices.pdf"), actor="ann")
        .then(
            Send(RequestReview("d-1", 1, "prices.pdf", maker="ann")),
            Schedule(ReviewTimedOut("d-1"), after=TIME_TO_REVIEW),
        )
        .then_state(InReview(1, "prices.pdf", maker="ann"))
    )


def test_a_document_that_nobody_signed_is_not_taken() -> None:
    (
        given(DocumentApproval())
        .when(SubmitDocument("d-1", "prices.pdf"))
        .then(Reply(ActionRefused("d-1", "a document needs a maker: sign in first")))
        .then_state(New())
    )


def test_a_document_that_nobody_signed_can_be_handed_in_again() -> None:
    given(DocumentApproval(), SubmitDocument("d-1", "prices.pdf")).when(
        SubmitDocument("d-1", "prices.pdf"), actor="ann"
    ).then_state(InReview(1, "prices.pdf", maker="ann"))


@pytest.mark.parametrize(
    "action", [ApproveDocument("d-1", 1), RejectDocument("d-1", 1, "a typo"), ReviseDocument("d-1", "prices-2.pdf")]
)
def test_nothing_can_be_done_to_a_document_before_it_is_handed_in(action: Input) -> None:
    (
        given(DocumentApproval(), SubmitDocument("d-1", "prices.pdf"))
        .when(action, actor="bob")
        .then(Reply(ActionRefused("d-1", "it has not been handed in")))
        .then_state(New())
    )


def test_somebody_else_may_approve() -> None:
    (
        given(DocumentApproval(), SUBMITTED)
        .when(ApproveDocument("d-1", 1), actor="bob")
        .then(
            CancelSchedule(ReviewTimedOut),
            Reply(DocumentApproved("d-1", maker="ann", checker="bob")),
            Send(ArchiveDocument("d-1", "prices.pdf", maker="ann", checker="bob")),
        )
        .then_state(Archiving(maker="ann", checker="bob"))
    )


@pytest.mark.parametrize("actor", ["ann", None])
@pytest.mark.parametrize("verdict", [ApproveDocument("d-1", 1), RejectDocument("d-1", 1, "a typo")])
def test_neither_the_maker_nor_a_nobody_may_check(verdict: Input, actor: str | None) -> None:
    (
        given(DocumentApproval(), SUBMITTED)
        .when(verdict, actor=actor)
        .then(Reply(ActionRefused("d-1", "somebody other than ann must check it")))
        .then_state(InReview(1, "prices.pdf", maker="ann"))
    )


def test_the_maker_may_not_approve_a_later_draft_either() -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED, REVISED)
        .when(ApproveDocument("d-1", 2), actor="ann")
        .then(Reply(ActionRefused("d-1", "somebody other than ann must check it")))
        .then_state(InReview(2, "prices-2.pdf", maker="ann"))
    )


def test_a_rejected_document_goes_back_to_its_maker() -> None:
    (
        given(DocumentApproval(), SUBMITTED)
        .when(RejectDocument("d-1", 1, "a typo"), actor="bob")
        .then(
            CancelSchedule(ReviewTimedOut),
            Reply(DocumentReturned("d-1", "bob", "a typo")),
            Send(RequestRevision("d-1", 1, maker="ann", checker="bob", reason="a typo")),
            Schedule(RevisionTimedOut("d-1"), after=TIME_TO_REVISE),
        )
        .then_state(InRevision(1, maker="ann", checker="bob", reason="a typo"))
    )


def test_a_revised_document_is_checked_again() -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED)
        .when(ReviseDocument("d-1", "prices-2.pdf"), actor="ann")
        .then(
            CancelSchedule(RevisionTimedOut),
            Send(RequestReview("d-1", 2, "prices-2.pdf", maker="ann")),
            Schedule(ReviewTimedOut("d-1"), after=TIME_TO_REVIEW),
        )
        .then_state(InReview(2, "prices-2.pdf", maker="ann"))
    )


@pytest.mark.parametrize("actor", ["bob", None])
def test_only_the_maker_may_revise(actor: str | None) -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED)
        .when(ReviseDocument("d-1", "prices-2.pdf"), actor=actor)
        .then(Reply(ActionRefused("d-1", "only ann may revise it")))
        .then_state(InRevision(1, maker="ann", checker="bob", reason="a typo"))
    )


def test_the_last_round_may_still_end_well() -> None:
    given(DocumentApproval(), *LAST_ROUND).when(ApproveDocument("d-1", 3), actor="bob").then_state(
        Archiving(maker="ann", checker="bob")
    )


def test_a_document_that_fails_its_last_round_is_given_up() -> None:
    given_up = DocumentGivenUp("d-1", "ann", "rejected 3 times, at last for a wrong date")
    (
        given(DocumentApproval(), *LAST_ROUND)
        .when(RejectDocument("d-1", 3, "a wrong date"), actor="bob")
        .then(Reply(given_up), Publish(given_up), Complete())
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


@pytest.mark.parametrize(
    "second",
    [ApproveDocument("d-1", 1), RejectDocument("d-1", 1, "too late"), ReviseDocument("d-1", "prices-2.pdf")],
)
def test_a_second_click_after_an_approval_gets_the_first_clicks_outcome(second: Input) -> None:
    (
        given(DocumentApproval(), SUBMITTED, APPROVED)
        .when(second, actor="cho")
        .then(Reply(DocumentApproved("d-1", maker="ann", checker="bob")))
        .then_state(Archiving(maker="ann", checker="bob"))
    )


@pytest.mark.parametrize("second", [ApproveDocument("d-1", 1), RejectDocument("d-1", 1, "a gap")])
def test_a_second_click_after_a_rejection_gets_the_first_clicks_outcome(second: Input) -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED)
        .when(second, actor="cho")
        .then(Reply(DocumentReturned("d-1", "bob", "a typo")))
        .then_state(InRevision(1, maker="ann", checker="bob", reason="a typo"))
    )


@pytest.mark.parametrize("verdict", [ApproveDocument("d-1", 1), RejectDocument("d-1", 1, "a typo")])
def test_a_click_meant_for_an_older_draft_does_not_judge_the_new_one(verdict: Input) -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED, REVISED)
        .when(verdict, actor="bob")
        .then(Reply(ActionRefused("d-1", "round 1 is over, round 2 is in review")))
        .then_state(InReview(2, "prices-2.pdf", maker="ann"))
    )


@pytest.mark.parametrize("past", [(SUBMITTED,), (SUBMITTED, RETURNED), (SUBMITTED, APPROVED)])
def test_handing_the_same_document_in_again_asks_nobody_again(past: tuple[Envelope[Input], ...]) -> None:
    given(DocumentApproval(), *past).when(SubmitDocument("d-1", "prices.pdf"), actor="ann").then()


def test_handing_a_revision_in_twice_opens_one_round() -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED, REVISED)
        .when(ReviseDocument("d-1", "prices-2.pdf"), actor="ann")
        .then(Reply(ActionRefused("d-1", "round 2 is in review")))
        .then_state(InReview(2, "prices-2.pdf", maker="ann"))
    )


def test_a_review_timeout_that_the_approval_overtook_is_ignored() -> None:
    (
        given(DocumentApproval(), SUBMITTED, APPROVED)
        .when(ReviewTimedOut("d-1"))
        .then()
        .then_state(Archiving(maker="ann", checker="bob"))
    )


def test_a_review_timeout_that_the_rejection_overtook_is_ignored() -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED)
        .when(ReviewTimedOut("d-1"))
        .then()
        .then_state(InRevision(1, maker="ann", checker="bob", reason="a typo"))
    )


def test_a_revision_timeout_that_the_revision_overtook_is_ignored() -> None:
    (
        given(DocumentApproval(), SUBMITTED, RETURNED, REVISED)
        .when(RevisionTimedOut("d-1"))
        .then()
        .then_state(InReview(2, "prices-2.pdf", maker="ann"))
    )


def test_an_archive_number_that_nobody_asked_for_is_an_unknown_transition() -> None:
    given(DocumentApproval(), SUBMITTED).when(DocumentArchived("d-1", "archive-d-1"), kind=Kind.RESULT).then_raises(
        UnknownTransitionError, match="DocumentArchived in state InReview"
    )


def test_an_approval_cannot_begin_a_document() -> None:
    given(DocumentApproval()).when(ApproveDocument("d-1", 1), actor="bob").then_raises(
        CannotBeginError, match="SubmitDocument"
    )


def test_nothing_is_decided_after_the_end() -> None:
    archived = DocumentArchived("d-1", "archive-d-1")
    given(DocumentApproval(), SUBMITTED, APPROVED, archived).when(APPROVED).then_raises(InstanceEndedError)


def test_a_document_is_archived_once_and_the_workflow_takes_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "archive", {})
    command = ArchiveDocument("d-1", "prices.pdf", maker="ann", checker="bob")
    result = asyncio.run(handlers.archive_document(command))
    assert asyncio.run(handlers.archive_document(command)) == result
    assert handlers.archive == {"archive-d-1": command}
    given(DocumentApproval(), SUBMITTED, APPROVED).when(result, kind=Kind.RESULT).then_state(
        Archived(maker="ann", checker="bob", archive_number="archive-d-1")
    )


def test_people_are_asked_once_in_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "requests", {})

    async def deliver_twice() -> None:
        for _ in range(2):
            await handlers.request_review(RequestReview("d-1", 1, "prices.pdf", maker="ann"))
            await handlers.request_revision(RequestRevision("d-1", 1, maker="ann", checker="bob", reason="a typo"))

    asyncio.run(deliver_twice())
    assert handlers.requests == {
        ("d-1", 1, "review"): "Please check prices.pdf by ann",
        ("d-1", 1, "revision"): "ann, please revise it: a typo (bob)",
    }
