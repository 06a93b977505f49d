"""Maker and checker: who acted matters as much as what was done.

A message can claim anything about its sender, so the workflow asks for the envelope, whose actor is whoever was really
signed in. evolve sees no envelopes, only what was recorded; so each decision names the people it was made for, and the
state follows from the decisions.
"""

from dataclasses import dataclass
from datetime import timedelta

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Envelope,
    Event,
    Publish,
    Published,
    Received,
    Reply,
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
class ReviseDocument:
    document_id: str
    draft: str


@dataclass(frozen=True)
class ApproveDocument:
    document_id: str
    round: int


@dataclass(frozen=True)
class RejectDocument:
    document_id: str
    round: int
    reason: str


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
    | ReviseDocument
    | ApproveDocument
    | RejectDocument
    | ReviewTimedOut
    | RevisionTimedOut
    | DocumentArchived
)


@dataclass(frozen=True)
class RequestReview:
    document_id: str
    round: int
    draft: str
    maker: str


@dataclass(frozen=True)
class RequestRevision:
    document_id: str
    round: int
    maker: str
    checker: str
    reason: str


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
class DocumentReturned:
    document_id: str
    checker: str
    reason: str


@dataclass(frozen=True)
class DocumentGivenUp:
    document_id: str
    maker: str
    reason: str


@dataclass(frozen=True)
class ActionRefused:
    document_id: str
    reason: str


Output = (
    RequestReview
    | RequestRevision
    | ArchiveDocument
    | DocumentApproved
    | DocumentReturned
    | DocumentGivenUp
    | ActionRefused
)


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
    checker: str
    reason: str


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
            case New() | InRevision(), Sent(RequestReview(_, round, draft, maker)):
                return InReview(round, draft, maker)
            case InReview(), Sent(RequestRevision(_, round, maker, checker, reason)):
                return InRevision(round, maker, checker, reason)
            case InReview(), Sent(ArchiveDocument(_, _, maker, checker)):
                return Archiving(maker, checker)
            case InReview() | InRevision(), Published(DocumentGivenUp(_, maker, reason)):
                return GivenUp(maker, reason)
            case Archiving(maker, checker), Received(DocumentArchived(_, archive_number)):
                return Archived(maker, checker, archive_number)

    def decide(self, envelope: Envelope[Input], state: State) -> Decisions[Input, Output] | None:
        actor = envelope.actor
        match envelope.message, state:
            case SubmitDocument(document_id, draft), New() if actor:
                return [
                    Send(RequestReview(document_id, 1, draft, maker=actor)),
                    Schedule(ReviewTimedOut(document_id), after=TIME_TO_REVIEW),
                ]
            case SubmitDocument(document_id), New():
                return [Reply(ActionRefused(document_id, "a document needs a maker: sign in first"))]
            case ApproveDocument(document_id) | RejectDocument(document_id) | ReviseDocument(document_id), New():
                return [Reply(ActionRefused(document_id, "it has not been handed in"))]
            # A click on a page of yesterday must not judge a draft that its checker has not seen.
            case ApproveDocument(document_id, round) | RejectDocument(document_id, round), InReview(current) if (
                round != current
            ):
                return [Reply(ActionRefused(document_id, f"round {round} is over, round {current} is in review"))]
            case ApproveDocument(document_id), InReview(_, draft, maker) if actor and actor != maker:
                return [
                    CancelSchedule(ReviewTimedOut),
                    Reply(DocumentApproved(document_id, maker, checker=actor)),
                    Send(ArchiveDocument(document_id, draft, maker, checker=actor)),
                ]
            case RejectDocument(document_id, _, reason), InReview(round, _, maker) if actor and actor != maker:
                if round == ROUNDS:
                    given_up = DocumentGivenUp(document_id, maker, f"rejected {ROUNDS} times, at last for {reason}")
                    return [Reply(given_up), Publish(given_up), Complete()]
                return [
                    CancelSchedule(ReviewTimedOut),
                    Reply(DocumentReturned(document_id, actor, reason)),
                    Send(RequestRevision(document_id, round, maker, actor, reason)),
                    Schedule(RevisionTimedOut(document_id), after=TIME_TO_REVISE),
                ]
            case ApproveDocument(document_id) | RejectDocument(document_id), InReview(_, _, maker):
                return [Reply(ActionRefused(document_id, f"somebody other than {maker} must check it"))]
            case ReviseDocument(document_id, draft), InRevision(round, maker) if actor == maker:
                return [
                    CancelSchedule(RevisionTimedOut),
                    Send(RequestReview(document_id, round + 1, draft, maker)),
                    Schedule(ReviewTimedOut(document_id), after=TIME_TO_REVIEW),
                ]
            case ReviseDocument(document_id), InRevision(_, maker):
                return [Reply(ActionRefused(document_id, f"only {maker} may revise it"))]
            case ReviseDocument(document_id), InReview(round):
                return [Reply(ActionRefused(document_id, f"round {round} is in review"))]
            case ReviewTimedOut(document_id), InReview(_, _, maker):
                return [Publish(DocumentGivenUp(document_id, maker, "nobody checked it")), Complete()]
            case RevisionTimedOut(document_id), InRevision(_, maker):
                return [Publish(DocumentGivenUp(document_id, maker, "nobody revised it")), Complete()]
            case DocumentArchived(document_id), Archiving(maker, checker):
                return [Complete(DocumentApproved(document_id, maker, checker))]
            # A second click is answered with the outcome of the first, and has no other effect.
            case ApproveDocument(document_id) | RejectDocument(document_id), InRevision(_, _, checker, reason):
                return [Reply(DocumentReturned(document_id, checker, reason))]
            case (
                ApproveDocument(document_id) | RejectDocument(document_id) | ReviseDocument(document_id),
                Archiving(maker, checker),
            ):
                return [Reply(DocumentApproved(document_id, maker, checker))]
            case SubmitDocument(), InReview() | InRevision() | Archiving():
                return []
