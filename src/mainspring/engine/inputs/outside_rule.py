"""What a workflow takes from outside the app, and what only people, timers and the engine itself may send it.

A task knows who may answer it. If its answer could be sent as a plain message, any sender could answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from mainspring.core.failures import OF_THE_ENGINE
from mainspring.core.messages import type_of
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import NotFromOutsideError
from mainspring.flows.flow import flow_of

# What became of a command or a child, and when its time is over, only the engine knows.


def check_outside(entries: Iterable[WorkflowEntry], message: object) -> None:
    """Refuse a message that comes from outside, if one of the workflows that take it does not take it from there.

    >>> from mainspring.codec import Codec
    >>> from mainspring.testing.samples import Leave, LeaveRequests, RequestLeave
    >>> entry = WorkflowEntry(LeaveRequests(), Codec())
    >>> check_outside([entry], RequestLeave("l-1"))
    >>> check_outside([entry], Leave("l-1", granted=True))
    Traceback (most recent call last):
    mainspring.errors.running.NotFromOutsideError: LeaveRequests does not take Leave from outside: it answers a task, \
which knows who may. Answer the task; or name Leave in the workflow's `from_outside`, if all who may send may decide.
    """
    cls = type(message)
    for entry in entries:
        if cls not in entry.refusals:
            entry.refusals[cls] = _reason(entry, cls)
        reason = entry.refusals[cls]
        if reason is not None:
            raise NotFromOutsideError(entry.name, type_of(cls).name, reason)


def _reason(entry: WorkflowEntry, cls: type[Any]) -> str | None:
    """Return why a workflow does not take a type from outside; the newest version that knows the type has the word."""
    own = _word(entry, cls)
    if own.definition.from_outside is not None:
        if cls in own.definition.from_outside:
            return None
        flow = flow_of(own.workflow)
        return "answer" if flow is not None and cls in type(flow).asks else "undeclared"
    if cls in OF_THE_ENGINE:
        return "engine"
    from mainspring.purity.task_answers import answers_in  # noqa: PLC0415  an app without such messages needs no reader

    read = [answers_in(type(version.workflow)) for version in entry.versions]
    name = type_of(cls).name
    if any(cls in (answers or ()) for answers in read) or any(name in version.asked for version in entry.versions):
        return "answer"
    # It may be an answer, and that cannot be known: what begins an instance is none, or would be refused for no reason.
    return "unread" if None in read and cls not in own.definition.begins else None


def names_barred(entry: WorkflowEntry, pending: Pending) -> tuple[str, ...]:
    """Return the names under which an input may answer no open task: none unless it came from outside.

    Where it came from, the engine knows; which tasks are open is known where the step is committed. A task that was
    asked before a type was renamed has its former name.
    """
    cls = cast("type[Any]", type(pending.message))
    if not pending.context.outside:
        return ()
    allowed = _word(entry, cls).definition.from_outside
    if allowed is not None and cls in allowed:
        return ()
    declared = type_of(cls)
    return (declared.name, *declared.aliases)


def _word(entry: WorkflowEntry, cls: type[Any]) -> WorkflowEntry:
    """Return the version of a workflow that says what comes from outside: the newest that knows the type."""
    return next((version for version in reversed(entry.versions) if cls in version.definition.inputs), entry)
