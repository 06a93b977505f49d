"""Tasks as they cross the port, and the rules about who may do what to one: the same for every store.

A task's life: opened by a step, taken by a person perhaps, and in the end answered or closed. Who holds it is kept in
its row only; that it was asked, and the answer, stand in the stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mainspring.port.refs import Ref

TaskStatus: TypeAlias = Literal["open", "answered", "closed"]
RefusalReason: TypeAlias = Literal["answered", "closed", "missing", "not asked", "excluded", "held", "asked"]
HandKind: TypeAlias = Literal["claim", "release", "delegate"]
TaskSpot: TypeAlias = tuple[Ref, int]
"""A task: its instance, and the version at which it was asked."""


class TaskOpening(Struct, frozen=True, gc=False):
    """A task to be opened; `version` is where it was asked in the stream.

    It is due `due_after_us` from the commit by the store's clock, or at `due_at_us`, or never.

    >>> TaskOpening(3, "approval", "Approve e-1", ("Approve",), role="manager").person is None
    True
    """

    version: int
    key: str
    title: str
    answers: tuple[str, ...]
    role: str | None = None
    person: str | None = None
    excludes: tuple[str, ...] = ()
    reject: str | None = None
    data: bytes = b"{}"
    due_after_us: int | None = None
    due_at_us: int | None = None

    def due_us(self, now_us: int) -> int | None:
        """When it is due, if it is opened now."""
        return self.due_at_us if self.due_after_us is None else now_us + self.due_after_us


class TaskAnswer(Struct, frozen=True, gc=False):
    """An answer to the task of a unit's own instance: who gives it, with which roles, and the answer's type."""

    version: int
    actor: str
    roles: tuple[str, ...]
    type: str


class TaskWork(Struct, frozen=True, gc=False):
    """What a unit does to its instance's tasks, in this order: answer one, close some or all, open new ones.

    `closes` are keys. An answer that is not allowed refuses the whole unit; one that the workflow `refuses` is only
    checked, and leaves its task as it is. `reopens` is the version of a task whose
    answer is passed over: it is open again. `bars` are the names of a message that came from outside: where one of them
    answers a task that is open before all this, the unit is refused.
    """

    answer: TaskAnswer | None = None
    closes: tuple[str, ...] = ()
    close_all: bool = False
    opens: tuple[TaskOpening, ...] = ()
    reopens: int | None = None
    bars: tuple[str, ...] = ()
    refuses: bool = False


class TaskRow(Struct, frozen=True, gc=False):
    """A task. `context` is that of the input that began its instance, `ended_us` when it was answered or closed."""

    workflow: str
    instance: str
    version: int
    key: str
    title: str
    answers: tuple[str, ...]
    opened_us: int
    role: str | None = None
    person: str | None = None
    excludes: tuple[str, ...] = ()
    reject: str | None = None
    data: bytes = b"{}"
    due_us: int | None = None
    status: TaskStatus = "open"
    claimed_by: str | None = None
    claimed_us: int | None = None
    answered_by: str | None = None
    answer_type: str | None = None
    ended_us: int | None = None
    context: bytes = b"{}"

    def __str__(self) -> str:
        return f"{self.workflow}/{self.instance}/{self.version}"


class TaskFilter(Struct, frozen=True, gc=False):
    """Which open tasks to list. `roles` and `person` say who looks: what they were asked, and what they may take.

    A person sees neither what excludes them nor what others hold. `due_before_us` narrows to what is overdue by then.

    >>> TaskFilter(roles=("manager",)).person is None
    True
    """

    roles: tuple[str, ...] = ()
    person: str | None = None
    workflow: str | None = None
    due_before_us: int | None = None


class Hand(Struct, frozen=True, gc=False):
    """A change of hands: `actor` claims a task, gives it back, or gives it `to` another. None acts for all.

    >>> Hand("claim", "ann", ("manager",)).to is None
    True
    """

    kind: HandKind
    actor: str | None
    roles: tuple[str, ...] = ()
    to: str | None = None


class Refused(Struct, frozen=True, gc=False):
    """Nothing was changed, because of the task.

    `answered`: it was answered before. `closed`: the workflow moved on, or ended. `missing`: there is no such task.
    `not asked`: neither the person nor one of the roles was asked. `excluded`: this person may not. `held`: another
    person has claimed it. `asked`: it is open, and its answer came from outside, past it.
    """

    reason: RefusalReason


def refusal(task: TaskRow | None, actor: str | None, roles: tuple[str, ...]) -> Refused | None:
    """Return why a person may not answer or claim a task, or None if they may. No actor may do everything.

    >>> task = TaskRow("W", "i", 3, "k", "Approve", ("Approve",), opened_us=0, role="manager", excludes=("ann",))
    >>> refusal(task, "ann", ("manager",)), refusal(task, "bob", ()), refusal(task, "bob", ("manager",))
    (Refused(reason='excluded'), Refused(reason='not asked'), None)
    """
    if task is None:
        return Refused("missing")
    if task.status != "open":
        return Refused(task.status)
    if actor is None:
        return None
    if actor in task.excludes:
        return Refused("excluded")
    if task.person != actor and (task.role is None or task.role not in roles):
        return Refused("not asked")
    return Refused("held") if task.claimed_by not in (None, actor) else None


def barred(tasks: Iterable[TaskRow], work: TaskWork) -> Refused | None:
    """Return why a message from outside is not taken: it would answer one of its instance's tasks past that one.

    >>> task = TaskRow("W", "i", 3, "k", "Approve", ("Approve", "Reject"), opened_us=0)
    >>> barred([task], TaskWork(bars=("Reject",))), barred([task], TaskWork(bars=("Remind",)))
    (Refused(reason='asked'), None)
    """
    asked = {name for task in tasks if task.status == "open" for name in task.answers}
    return None if asked.isdisjoint(work.bars) else Refused("asked")


def handed(task: TaskRow | None, hand: Hand, now_us: int) -> TaskRow | Refused:
    """Return a task as it is after it changed hands, or why it does not.

    >>> task = TaskRow("W", "i", 3, "k", "Approve", ("Approve",), opened_us=0, role="manager")
    >>> handed(task, Hand("claim", "ann", ("manager",)), 7).claimed_by
    'ann'
    """
    # The holder of a task may give it back or away, also when the role that brought it was lost meanwhile.
    holds = task is not None and hand.kind != "claim" and task.claimed_by == hand.actor
    refused = refusal(task, None if holds else hand.actor, hand.roles)
    if task is None or refused is not None:
        return refused or Refused("missing")
    match hand.kind:
        case "claim":
            return task if task.claimed_by == hand.actor else replace(task, claimed_by=hand.actor, claimed_us=now_us)
        case "release":
            return replace(task, claimed_by=None, claimed_us=None)
        case "delegate":
            if hand.to in task.excludes:
                return Refused("excluded")
            return replace(task, person=hand.to, claimed_by=hand.to, claimed_us=now_us)


def opened(task: TaskOpening, workflow: str, instance: str, now_us: int, context: bytes) -> TaskRow:
    """Return the row of a new task.

    >>> str(opened(TaskOpening(3, "approval", "Approve e-1", ("Approve",)), "W", "i", 0, b"{}"))
    'W/i/3'
    """
    return TaskRow(
        workflow=workflow,
        instance=instance,
        version=task.version,
        key=task.key,
        title=task.title,
        answers=task.answers,
        opened_us=now_us,
        role=task.role,
        person=task.person,
        excludes=task.excludes,
        reject=task.reject,
        data=task.data,
        due_us=task.due_us(now_us),
        context=context,
    )


def answered(task: TaskRow, answer: TaskAnswer, now_us: int) -> TaskRow:
    """Return a task as it is after its answer.

    >>> task = TaskRow("W", "i", 3, "k", "Approve", ("Approve",), opened_us=0)
    >>> answered(task, TaskAnswer(3, "ann", (), "Approve"), 7).answered_by
    'ann'
    """
    # Never the same moment twice: it stands in the id of the next answer, should this one be passed over.
    ended_us = now_us if task.ended_us is None else max(now_us, task.ended_us + 1)
    return replace(task, status="answered", answered_by=answer.actor, answer_type=answer.type, ended_us=ended_us)


def reopened(task: TaskRow) -> TaskRow:
    """Return a task as it is after its answer was passed over; one that was not answered stays as it is.

    Its holder keeps it, and `ended_us` says when it was answered in vain.

    >>> task = TaskRow("W", "i", 3, "k", "Approve", ("Approve",), opened_us=0)
    >>> reopened(answered(task, TaskAnswer(3, "ann", (), "Approve"), 7)) == replace(task, ended_us=7)
    True
    """
    if task.status != "answered":
        return task
    return replace(task, status="open", answered_by=None, answer_type=None)
