from pathlib import Path

import pytest

from tests.edges.cli.conftest import Run

APP = """
from mainspring import Mainspring
from mainspring.testing.samples import LeaveRequests
from tests.engine.coordination.expenses import Expenses

app = Mainspring("sqlite:///leave.db")
app.add(LeaveRequests(), Expenses())
"""
DOCUMENTS = """
from examples.document_approval.workflow import ArchiveDocument, DocumentApproval
from mainspring import Mainspring

app = Mainspring("sqlite:///documents.db")
app.add(DocumentApproval())
app.external(ArchiveDocument)
"""
TASK = "LeaveRequests/l-1/3"


@pytest.fixture
def leave(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (folder / "leave.py").write_text(APP)
    monkeypatch.setenv("MAINSPRING_APP", "leave:app")
    run("send", "RequestLeave", '{"leave_id": "l-1"}', "--actor", "dan")
    return run


def test_tasks_are_listed_and_shown(leave: Run) -> None:
    assert leave("tasks", "list", "--role", "manager").out == (
        "id                   title           asked    due (UTC)  held by\n"
        "LeaveRequests/l-1/3  Leave for dan?  manager\n"
    )
    assert leave("tasks", "list", "--role", "manager", "--person", "dan").err == "There are no such tasks.\n"
    assert "form:        Leave(leave_id, granted)" in leave("tasks", "show", TASK).out
    assert leave("tasks", "show", TASK, "--json").document["forms"][0]["fields"][0]["value"] == "l-1"
    assert leave("tasks", "show", "LeaveRequests/l-9/3").code == 3


def test_a_task_is_not_answered_by_a_plain_message(leave: Run) -> None:
    refused = leave("send", "Leave", '{"leave_id": "l-1", "granted": true}', "--actor", "dan")

    assert refused.code == 1
    assert refused.err.startswith("Error: LeaveRequests does not take Leave from outside: it answers a task")
    assert TASK in leave("tasks", "list").out


def test_tasks_change_hands(leave: Run) -> None:
    assert leave("tasks", "claim", TASK).code == 1
    assert leave("tasks", "claim", TASK, "--role", "manager").out == f"task {TASK}: held by ann\n"
    assert leave("tasks", "pick", "manager").err == "There are no such tasks.\n"
    assert leave("tasks", "release", TASK).out == f"task {TASK}: free\n"
    assert leave("tasks", "pick", "manager", "--json").document["claimed_by"] == "ann"
    assert leave("tasks", "delegate", TASK, "cho").out == f"task {TASK}: held by cho\n"
    assert (
        "held by another person"
        in leave("tasks", "complete", TASK, "Leave", '{"granted": true}', "--role", "manager").err
    )


def test_a_task_is_answered_once_and_a_second_answer_is_told_the_first(leave: Run) -> None:
    answer = ("tasks", "complete", TASK, "Leave", '{"granted": true}', "--role", "manager")
    assert leave(*answer).out == f"task {TASK}: answered by ann with Leave\n"
    again = leave(*answer, "--actor", "bob", "--json").document
    assert (again["first"], again["answered_by"], again["message"]["granted"]) == (False, "ann", True)
    for fields in ("[]", '{"granted": "\udcff"}'):
        assert leave("tasks", "complete", TASK, "Leave", fields).code == 2


def test_an_answer_that_the_workflow_refuses_is_told_with_its_reason_and_is_in_the_log(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "documents.py").write_text(DOCUMENTS)
    monkeypatch.setenv("MAINSPRING_APP", "documents:app")
    run("send", "SubmitDocument", '{"document_id": "d-1", "draft": ""}', "--actor", "dan")
    task = "DocumentApproval/d-1/3"
    refused = run("tasks", "complete", task, "ApproveDocument", "--role", "checker")

    assert refused.code == 1
    assert refused.err.startswith(f"Error: Task {task} is open still: the answer was refused: there is no draft")
    assert task in run("tasks", "list").out
    (line,) = (line for line in run("log", "d-1", "--json").documents if line["what"] == "Refused")
    assert (line["command"], line["actor"], line["kind"]) == ("ApproveDocument", "ann", "answer")
    assert line["about"].startswith("there is no draft")
    assert "ApproveDocument: there is no draft" in run("log", "d-1").out


def test_a_task_is_rejected_with_a_reason(leave: Run) -> None:
    leave("send", "Submit", '{"id": "e-1"}', "--actor", "dan")
    no = ("tasks", "reject", "Expenses/e-1/3", "no receipt", "--role", "manager")
    assert "dan" in leave(*no, "--actor", "dan").err
    assert leave(*no).out == "task Expenses/e-1/3: answered by ann with Reject\n"
    again = leave(*no, "--actor", "bob", "--json").document
    assert (again["first"], again["message"]) == (False, {"id": "e-1", "reason": "no receipt"})
    refused = leave("tasks", "reject", TASK, "no", "--role", "manager")
    assert (refused.code, "no answer that means no" in refused.err) == (1, True)
