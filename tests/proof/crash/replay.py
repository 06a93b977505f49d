"""Fold and decide once more, over recorded rows, without the engine's or the core's own fold, step and translate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from mainspring import (
    Ask,
    Asked,
    Began,
    CancelSchedule,
    ChildStarted,
    CloseTask,
    Compensate,
    Compensated,
    Compensating,
    Complete,
    Completed,
    Fail,
    Failed,
    InitiatedBy,
    Publish,
    Published,
    Received,
    Replied,
    Reply,
    Schedule,
    ScheduleCancelled,
    Scheduled,
    Send,
    SendFailed,
    Sent,
    StartChild,
    TaskClosed,
)
from tests.proof.crash.evidence import INPUTS, Recorded
from tests.proof.crash.workload import Workload

Complaint = tuple[int, str]
Shape = tuple[str, Any, Any]

# What operators and attempts left in the stream: no decision, and not seen by evolve.
BESIDE: Final = frozenset({"Kept", "Skipped", "Suspended", "Resumed", "Cancelled", "Terminated", "Retried", "Migrated"})


def replay(workload: Workload, stream: list[Recorded]) -> tuple[list[Complaint], str]:
    """Return what the stream has and the workflow would not have recorded, and the name of the last state."""
    replayed = _Replay(workload, stream[0].ref)
    for row in stream:
        replayed.take(row)
    replayed.end(stream[-1].version + 1)
    return replayed.complaints, type(replayed.state).__name__


class _Replay:
    """One stream, taken row by row: the state, what decide says comes next, and what a saga has to undo."""

    def __init__(self, workload: Workload, ref: str) -> None:
        self._workload = workload
        self._workflow = workload.workflow(ref)
        self.state: Any = self._workflow.initial_state
        self.complaints: list[Complaint] = []
        self._open: list[Shape] = []
        self._claimed: Recorded | None = None
        self._folded: list[Any] = []
        self._armed: dict[int, Any] = {}
        self._undone_for: tuple[str, Any] | None = None
        self._undoing: int | None = None

    def take(self, row: Recorded) -> None:
        message = self._workload.message(row)
        if row.event in INPUTS:
            self.end(row.version)
            self._claimed = row
            self._undone_for = None
            self._open = self._decided(row, message)
            if isinstance(message, SendFailed) and message.definite:
                self._armed.pop(_version_in(message.message_id), None)
        elif row.event == "Migrated":
            self._migrate(row)
        elif row.event == "Compensated":
            self._undo(row, message)
        elif row.event not in BESIDE and row.event != "Began":
            self._meet(row, message)
        if row.event not in BESIDE:
            event = _event(row, message, self._workload)
            self._folded.append(event)
            self._evolve(event)
        self._go_on()

    def end(self, version: int) -> None:
        """Complain of what was decided and is not there, and of a state that was recorded by a wrong name."""
        self.complaints += [(version, f"decide says {shape}, which was not recorded") for shape in self._open]
        self._open = []
        claimed, state = self._claimed, type(self.state).__name__
        if claimed is not None and claimed.state != state:
            text = f"the state after it is recorded as {claimed.state} and is {state}"
            self.complaints.append((claimed.version, text))

    def _decided(self, row: Recorded, message: Any) -> list[Shape]:
        # Who answers a task closes it.
        shapes: list[Shape] = [("TaskClosed", None, row.context["task"])] if row.kind == "answer" else []
        for decision in self._workflow.decide(message, self.state) or ():
            shapes.append(_of_decision(decision))
            if isinstance(decision, Ask):
                shapes += [_of_decision(timer) for timer in decision.timers]
        return shapes

    def _meet(self, row: Recorded, message: Any) -> None:
        expected = self._open.pop(0) if self._open else None
        recorded = _of_row(row, message, self._workload)
        if expected != recorded:
            self.complaints.append((row.version, f"recorded {recorded}, decide says {expected}"))
        if row.event == "Sent" and "compensate" in row.detail:
            self._armed[row.version] = self._workload.packed(row.detail["compensate"])
        if row.event == "Compensating":
            self._undone_for = row.detail["reason"], message

    def _undo(self, row: Recorded, message: Any) -> None:
        undone = None if self._undoing is None else self._armed.pop(self._undoing)
        if undone != message:
            self.complaints.append((row.version, f"{message} is said to be undone, and {undone} was to be"))
        self._undoing = None

    def _go_on(self) -> None:
        """Expect what a saga does next: the youngest armed compensation, or its end."""
        if self._undone_for is None or self._undoing is not None or self._open:
            return
        reason, then = self._undone_for
        if self._armed:
            self._undoing = max(self._armed)
            self._open = [("Sent", self._armed[self._undoing], (None, self._undoing))]
        else:
            self._undone_for = None
            self._open = [("Failed", None, reason)] if then is None else []

    def _migrate(self, row: Recorded) -> None:
        self.end(row.version)
        self._claimed = None
        self._workflow = self._workload.versions[row.ref.partition("/")[0], row.detail["version"]]
        self.state = self._workflow.initial_state
        for event in self._folded:
            self._evolve(event)

    def _evolve(self, event: Any) -> None:
        changed = self._workflow.evolve(self.state, event)
        self.state = self.state if changed is None else changed


def _of_decision(decision: Any) -> Shape:
    match decision:
        case Send(message, compensate):
            return "Sent", message, (compensate, None)
        case Publish(message):
            return "Published", message, None
        case Reply(message):
            return "Replied", message, None
        case Schedule(message, after=after):
            return "Scheduled", message, (decision.cancel_key, after)
        case CancelSchedule():
            return "ScheduleCancelled", None, decision.cancel_key
        case Ask(title, role=role, person=person):
            return "Asked", None, (decision.task_key, title, role, person)
        case CloseTask():
            return "TaskClosed", None, decision.task_key
        case StartChild(message, when_parent_ends):
            return "ChildStarted", message, when_parent_ends
        case Compensate(reason, then):
            return "Compensating", then, reason
        case Complete(result):
            return "Completed", result, None
        case Fail(reason):
            return "Failed", None, reason
        case _:
            return type(decision).__name__, decision, None


def _of_row(row: Recorded, message: Any, workload: Workload) -> Shape:
    detail = row.detail
    match row.event:
        case "Sent":
            return row.event, message, (workload.packed(detail.get("compensate")), detail.get("undoes"))
        case "Scheduled":
            return row.event, message, (detail.get("key"), _after(row))
        case "ScheduleCancelled" | "TaskClosed":
            return row.event, None, detail.get("key")
        case "Asked":
            return row.event, None, (detail["key"], detail["title"], detail.get("role"), detail.get("person"))
        case "ChildStarted":
            return row.event, message, "abandon" if detail.get("abandon") else "cancel"
        case "Compensating" | "Failed":
            return row.event, message, detail.get("reason")
        case _:
            return row.event, message, None


def _after(row: Recorded) -> timedelta:
    return timedelta(microseconds=row.detail["after_us"])


def _version_in(message_id: str) -> int:
    return int(message_id.rpartition("/")[2])


def _event(row: Recorded, message: Any, workload: Workload) -> Any:
    detail = row.detail
    match row.event:
        case "Began":
            return Began()
        case "InitiatedBy":
            return InitiatedBy(message)
        case "Received":
            return Received(message)
        case "Sent":
            return Sent(message, workload.packed(detail.get("compensate")), detail.get("undoes"))
        case "Published":
            return Published(message)
        case "Replied":
            return Replied(message)
        case "Scheduled":
            return Scheduled(message, _after(row), None, detail["key"])
        case "ScheduleCancelled":
            return ScheduleCancelled(detail["key"])
        case "Asked":
            return Asked(detail["key"], detail["title"], tuple(detail["answers"]), detail.get("role"))
        case "TaskClosed":
            return TaskClosed(detail["key"])
        case "ChildStarted":
            return ChildStarted(message, "abandon" if detail.get("abandon") else "cancel")
        case "Compensating":
            return Compensating(detail["reason"], message, detail.get("cancelled", False))
        case "Compensated":
            return Compensated(message, workload.packed(detail.get("result")))
        case "Completed":
            return Completed(message)
        case "Failed":
            return Failed(detail["reason"])
        case _:
            raise AssertionError(f"{row.event} is not expected here")
