"""The archive, held in memory. It is keyed by document, so that a repeated command leaves everything as it was."""

from examples.document_approval.workflow import ArchiveDocument, DocumentArchived

archive: dict[str, ArchiveDocument] = {}


async def archive_document(command: ArchiveDocument) -> DocumentArchived:
    archive_number = f"archive-{command.document_id}"
    archive[archive_number] = command
    return DocumentArchived(command.document_id, archive_number)
