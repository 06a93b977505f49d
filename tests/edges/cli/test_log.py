"""The entries that an operator looks for in a log of errors, each beside its line of `mainspring log`."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from examples.document_approval.workflow import (
    ApproveDocument,
    ArchiveDocument,
    DocumentApproval,
    DocumentArchived,
    SubmitDocument,
)
from mainspring import Mainspring, Retry
from tests.edges.cli.conftest import Run
from tests.support.waiting import until

APP = """\
from examples.document_approval.workflow import ArchiveDocument, DocumentApproval
from mainspring import Mainspring
app = Mainspring('sqlite:///documents.db')
app.add(DocumentApproval())
app.external(ArchiveDocument)
"""
TWICE = Retry(max_attempts=2, first=timedelta(milliseconds=1))
ERROR = "OSError: the archive is closed"
# What happened, and its line: what, about, actor, attempt, state.
EXPECTED = {
    "the first activity is entered": ("Started", "SubmitDocument", "ann", None, "InReview"),
    "a person completes an activity": ("Stepped", "ApproveDocument", "bob", None, "Archiving"),
    "an external call fails, first attempt": ("Attempted", ERROR, "a worker", 1, None),
    "an external call fails, last attempt": ("Attempted", ERROR, "a worker", 2, None),
    "the fault suspends the instance": ("Faulted", f"ArchiveDocument failed for good: {ERROR}", None, None, None),
    "an operator resumes it": ("Resumed", "", "cho", None, None),
    "an operator suspends it": ("Suspended", "while we look", "cho", None, None),
    "another operator resumes it": ("Resumed", "", "dan", None, None),
    "the external call succeeds": ("Stepped", "DocumentArchived", None, 1, "Archived"),
    "the instance is completed": ("Completed", "DocumentApproved", None, None, None),
}


@pytest.fixture
def archived(folder: Path) -> None:
    """A document whose archive was closed at first, and whose way an operator has held up for a while."""
    is_closed = True

    async def archive(command: ArchiveDocument) -> DocumentArchived:
        if is_closed:
            raise OSError("the archive is closed")
        return DocumentArchived(command.document_id, "archive-1")

    async def main() -> None:
        nonlocal is_closed
        app = Mainspring(f"sqlite:///{folder / 'documents.db'}")
        app.add(DocumentApproval())
        app.handler(retry=TWICE)(archive)
        async with app:
            document = app.instance(DocumentApproval, "d-1")
            await app.send(SubmitDocument("d-1", "prices.pdf"), actor="ann")
            (task,) = await app.tasks.list()
            await app.tasks.complete(task.id, ApproveDocument("d-1"), actor="bob", roles=["checker"])

            async def suspended() -> bool:
                return (await document.row()).status == "suspended"

            await until(suspended)
            await document.resume(actor="cho")
            await document.suspend("while we look", actor="cho")
            await document.resume(actor="dan")
            is_closed = False
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id, actor="cho")
            await document.result()

    asyncio.run(main())
    (folder / "documents.py").write_text(APP)


@pytest.mark.usefixtures("archived")
def test_every_entry_of_an_error_log_has_its_line(run: Run) -> None:
    lines = run("log", "d-1", "--app", "documents:app", "--json").documents

    told = [
        (
            line["what"],
            line["about"],
            "a worker" if line["what"] == "Attempted" else line["actor"],
            line["attempt"],
            line["state"],
        )
        for line in lines
    ]
    assert dict(zip(EXPECTED, told, strict=True)) == EXPECTED
    assert all(line["time"] for line in lines)
    assert [line["what"] for line in lines if line["duration_seconds"] is not None] == [
        "Attempted",
        "Attempted",
        "Stepped",
    ]


@pytest.mark.usefixtures("archived")
def test_people_read_the_same_lines(run: Run) -> None:
    shown = run("log", "d-1", "--app", "documents:app").out.splitlines()[1:]

    assert len(shown) == len(EXPECTED)
    for line, (what, about, *_) in zip(shown, EXPECTED.values(), strict=True):
        assert what in line
        assert about in line
