"""Requests to people and the archive, held in memory. What is requested is keyed by its round, what is archived by its
document, so that a repeated command leaves everything as it was.
"""

from examples.document_approval.workflow import ArchiveDocument, DocumentArchived, RequestReview, RequestRevision

requests: dict[tuple[str, int, str], str] = {}
archive: dict[str, ArchiveDocument] = {}


async def request_review(command: RequestReview) -> None:
    text = f"Please check {command.draft} by {command.maker}"
    requests[command.document_id, command.round, "review"] = text


async def request_revision(command: RequestRevision) -> None:
    text = f"{command.maker}, please revise it: {command.reason} ({command.checker})"
    requests[command.document_id, command.round, "revision"] = text


async def archive_document(command: ArchiveDocument) -> DocumentArchived:
    archive_number = f"archive-{command.document_id}"
    archive[archive_number] = command
    return DocumentArchived(command.document_id, archive_number)
