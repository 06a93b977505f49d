"""The entries that an operator looks for in a log of errors, each beside its line of `mainspring log`."""

import asyncio
import re
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from examples.document_approval.workflow import (
    ApproveDocument,
    ArchiveDocument,
    DocumentApproval,
    DocumentArchived,
    SubmitDocument,
)
from mainspring import Mainspring, Retry
from mainspring.core.story import duration
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
FAULT = "KeyError: 'checkers'"
# What happened, and its line: what, about, actor, attempt, state.
EXPECTED = {
    "the first activity is entered": ("Started", "SubmitDocument", "ann", None, "InReview"),
    "a fault in decide suspends the instance": ("Faulted", FAULT, None, None, None),
    "an operator resumes it when the code is mended": ("Resumed", "", "eve", None, None),
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
def archived(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document whose approval met a mistake in the code, whose archive was closed at first, and which was held up."""
    is_closed = is_broken = True
    decide = DocumentApproval.decide

    @wraps(decide)
    def decides(self: DocumentApproval, envelope: Any, state: Any) -> Any:
        if is_broken and isinstance(envelope.message, ApproveDocument):
            raise KeyError("checkers")
        return decide(self, envelope, state)

    monkeypatch.setattr(DocumentApproval, "decide", decides)

    async def archive(command: ArchiveDocument) -> DocumentArchived:
        if is_closed:
            raise OSError("the archive is closed")
        return DocumentArchived(command.document_id, "archive-1")

    async def main() -> None:
        nonlocal is_closed, is_broken
        app = Mainspring(f"sqlite:///{folder / 'documents.db'}")
        app.add(DocumentApproval())
        app.handler(retry=TWICE)(archive)
        async with app:
            document = app.instance(DocumentApproval, "d-1")
            await app.send(SubmitDocument("d-1", "prices.pdf"), actor="ann")
            (task,) = await app.tasks.list()
            await app.tasks.complete(task.id, ApproveDocument("d-1"), actor="bob", roles=["checker"])

            is_broken = False
            await document.resume(actor="eve")

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
def test_people_read_the_same_lines_cell_by_cell(run: Run) -> None:
    lines = run("log", "d-1", "--app", "documents:app", "--json").documents
    head, *shown = run("log", "d-1", "--app", "documents:app").out.splitlines()
    names = re.split(r" {2,}", head)
    begins = [head.index(name) for name in names]

    told = [
        {name: line[a:b].strip() for name, a, b in zip(names, begins, [*begins[1:], None], strict=True)}
        for line in shown
    ]

    assert told == [
        {
            "position": str(line["position"]),
            "time (UTC)": f"{datetime.fromisoformat(line['time']):%Y-%m-%d %H:%M:%S.%f}"[:-3],
            "what": line["what"],
            "about": ": ".join(part for part in (line["command"], line["about"]) if part),
            "state": line["state"] or "",
            "actor": line["actor"] or "",
            "attempt": str(line["attempt"] or ""),
            "took": spelt(line["duration_seconds"]),
            "answered after": spelt(line["answered_after_seconds"]),
            "waited": spelt(line["waited_seconds"]),
        }
        for line in lines
    ]


def spelt(seconds: float | None) -> str:
    return "" if seconds is None else duration(timedelta(seconds=seconds))
