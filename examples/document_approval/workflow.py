"""Maker and checker: who acted matters as much as what was done.

A message can claim anything about its sender, so the workflow asks for the envelope, whose actor is whoever was really
signed in. Each task says who may answer it, and the engine checks that in the transaction that takes the answer. evolve
sees no envelopes, only what was recorded; so each decision names the people it was made for, and the state follows from
the decisions.
"""

from dataclasses import dataclass
from datetime import timedelta

from mainspring import (
    Ask,
    Asked,
    Complete,
    Decisions,
    Envelope,
    Event,
    Fail,
    Publish,
    Published,
    Received,
    RefuseAnswer,
    Schedule,
    Send,
    Sent,
    Workflow,
)

ROUNDS = 3
TIME_TO_REVIEW = timedelta(days=5)
TIME_TO_REVISE = timedelta(days=14)


@dataclass(frozen=True)
class SubmitDocument:
    document_id: str
    draft: str


@dataclass(frozen=True)
class ApproveDocument:
    document_id: str


@dataclass(frozen=True)
class RejectDocument:
    document_id: str
    reason: str


@dataclass(frozen=True)
class ReviseDocument:
    document_id: str
    draft: str


@dataclass(frozen=True)
class ReviewTimedOut:
    document_id: str


@dataclass(frozen=True)
class RevisionTimedOut:
    document_id: str


@dataclass(frozen=True)
class DocumentArchived:
    document_id: str
    archive_number: str


Input = (
    SubmitDocument
    | ApproveDocument
    | RejectDocument
    | ReviseDocument
    | ReviewTimedOut
    | RevisionTimedOut
    | DocumentArchived
)


@dataclass(frozen=True)
class ArchiveDocument:
    document_id: str
    draft: str
    maker: str
    checker: str


@dataclass(frozen=True)
class DocumentApproved:
    document_id: str
    maker: str
    checker: str


@dataclass(frozen=True)
class DocumentGivenUp:
    document_id: str
    maker: str
    reason: str


Output = ArchiveDocument | DocumentApproved | DocumentGivenUp


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class InReview:
    round: int
    draft: str
    maker: str


@dataclass(frozen=True)
class InRevision:
    round: int
    maker: str


@dataclass(frozen=True)
class Archiving:
    maker: str
    checker: str


@dataclass(frozen=True)
class Archived:
    maker: str
    checker: str
    archive_number: str


@dataclass(frozen=True)
class GivenUp:
    maker: str
    reason: str


State = New | InReview | InRevision | Archiving | Archived | GivenUp


class DocumentApproval(Workflow[Input, State, Output]):
    """One document, from the maker's first draft to the archive or the bin."""

    begins = SubmitDocument
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.document_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New() | InRevision(), Asked(data={"round": int(round), "draft": str(draft), "maker": str(maker)}):
                return InReview(round, draft, maker)
            case InReview(round, _, maker), Asked():
                return InRevision(round, maker)
            case InReview(), Sent(ArchiveDocument(_, _, maker, checker)):
                return Archiving(maker, checker)
            case InReview() | InRevision(), Published(DocumentGivenUp(_, maker, reason)):
                return GivenUp(maker, reason)
            case Archiving(maker, checker), Received(DocumentArchived(_, archive_number)):
                return Archived(maker, checker, archive_number)

    def decide(self, envelope: Envelope[Input], state: State) -> Decisions[Input, Output] | None:
        # Whoever the task list let answer. A message that came past it may claim anybody as its actor.
        person = envelope.actor if envelope.task else None
        match envelope.message, state:
            case SubmitDocument(document_id, draft), New():
                if envelope.actor is None:
                    return [Fail("a document needs a maker: sign in first")]
                return [ask_review(document_id, 1, draft, maker=envelope.actor)]
            case ApproveDocument(), InReview(_, "", _) if person:
                return [RefuseAnswer("there is no draft to archive: reject it, and its maker can add one")]
            case ApproveDocument(document_id), InReview(_, draft, maker) if person:
                return [Send(ArchiveDocument(document_id, draft, maker, checker=person))]
            case RejectDocument(document_id, reason), InReview(round, draft, maker) if person:
                if round < ROUNDS:
                    return [ask_revision(document_id, draft, maker, checker=person, reason=reason)]
                reason = f"rejected {ROUNDS} times, at last for {reason}"
                return [Publish(DocumentGivenUp(document_id, maker, reason)), Complete()]
            case ReviseDocument(document_id, draft), InRevision(round, maker) if person:
                return [ask_review(document_id, round + 1, draft, maker)]
            case ApproveDocument() | RejectDocument() | ReviseDocument(), _:
                return []
            case ReviewTimedOut(document_id), InReview(_, _, maker):
                return [Publish(DocumentGivenUp(document_id, maker, "nobody checked it")), Complete()]
            case RevisionTimedOut(document_id), InRevision(_, maker):
                return [Publish(DocumentGivenUp(document_id, maker, "nobody revised it")), Complete()]
            case DocumentArchived(document_id), Archiving(maker, checker):
                return [Complete(DocumentApproved(document_id, maker, checker))]
            case SubmitDocument(), InReview() | InRevision() | Archiving():
                return []


def ask_review(document_id: str, round: int, draft: str, maker: str) -> Ask[Input]:
    """Ask for a second pair of eyes: any checker's, but not the maker's."""
    return Ask(
        f"Check {draft} by {maker}",
        ApproveDocument | RejectDocument,
        role="checker",
        excludes=(maker,),
        key="review",
        reject=RejectDocument,
        due=TIME_TO_REVIEW,
        escalate=Schedule(ReviewTimedOut(document_id), after=TIME_TO_REVIEW),
        data={"document_id": document_id, "round": round, "draft": draft, "maker": maker},
    )


def ask_revision(document_id: str, draft: str, maker: str, checker: str, reason: str) -> Ask[Input]:
    """Ask the maker, and nobody else, for a better draft."""
    return Ask(
        f"Revise {draft}: {reason} ({checker})",
        ReviseDocument,
        person=maker,
        key="revision",
        due=TIME_TO_REVISE,
        escalate=Schedule(RevisionTimedOut(document_id), after=TIME_TO_REVISE),
        data={"document_id": document_id},
    )
