"""Counterfactual: how an instance's story would have gone with another input, under today's code.

Up to the input that is changed, everything is as it was recorded. From there on the instance takes what comes, at the
time at which it would come:

    from outside    what came from outside, when it came
    answers         to a command, child, task or request that was also made in the recorded story, the same answers, the
                    same time after it; to any other nothing, and it is listed as unanswered
    timers          when they were due, or as late as they were, unless they are cancelled
    compensations   as they were answered, or else as if they had been carried out

What operators did later is left out. Nothing is carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import NoneType
from typing import Any, Final

from msgspec import Struct

from mainspring.analysis.reading.records import return_hint
from mainspring.analysis.replay.retelling import Edit, Recollection, Retelling, Untaken
from mainspring.app.commands import command
from mainspring.core.changes import same
from mainspring.core.events import AnswerRefused, Kept
from mainspring.core.fold import fold
from mainspring.core.story import Entry
from mainspring.engine.recording.walk import INPUTS
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.errors import MainspringError, OperationError, told
from mainspring.port.records import EventRow, Ref

VERSIONS_NAMED: Final = 20
EVENTS_MOST: Final = 100_000
"""Longer streams are refused."""
DAYS_AHEAD: Final = 36_500
DAY_US: Final = 86_400_000_000


class Counterfactual(Struct, frozen=True):
    """The recorded story and the other one, both from the change on.

    `differs_at` is the first version of the other story, beside the changed input itself, that is not as recorded; None
    if all of it is. `unanswered` are outputs without a known answer; `waiting` timers that are not due yet;
    `left_out` what operators did. `error` says why the other story stops: its instance would be suspended.
    """

    edit: Edit
    recorded: tuple[Entry, ...]
    told: tuple[Entry, ...]
    differs_at: int | None
    recorded_state: Any
    state: Any
    unanswered: tuple[Entry, ...] = ()
    untaken: tuple[Untaken, ...] = ()
    waiting: tuple[Entry, ...] = ()
    left_out: tuple[Entry, ...] = ()
    assumed: tuple[Entry, ...] = ()
    error: str | None = None


def counterfactual(
    entry: WorkflowEntry, ref: Ref, rows: Sequence[EventRow], edit: Edit, until_us: int, silent: Collection[str] = ()
) -> Counterfactual:
    """Return how the story of a stream would have gone with an edit, up to a time.

    `rows` are those that count, of the whole stream. `silent` are the names of commands whose handlers answer nothing.
    """
    check_edit(ref, rows, edit)
    memory = Recollection(entry.recorder, ref, rows)
    memory.forget_before(edit.position)
    story = Retelling(entry, ref, memory, until_us, silent)
    try:
        for row in rows:
            if row.version < edit.position:
                story.recall(entry.recorder.entry(ref, row))
        recorded_state = fold(entry.workflow, entry.workflow.initial_state, entry.recorder.folded(ref, rows))
    except MainspringError:
        raise
    except Exception as error:
        # An author's evolve may raise anything.
        problem = f"cannot be folded by today's code ({told(error)})"
        raise OperationError(str(ref), problem, f"{command('replay', ref)} shows where.") from error
    story.begin(edit)
    story.run()
    return _compared(entry, ref, rows, edit, story, recorded_state)


def check_edit(ref: Ref, rows: Sequence[EventRow], edit: Edit) -> None:
    """Raise an OperationError unless the edit is of an input that counts, and between two steps."""
    inputs = [row.version for row in rows if row.event in INPUTS]
    last = rows[-1].version if rows else 0
    if edit.position in inputs or (edit.what == "insert" and edit.position == last + 1 > 1):
        return
    possible = [*inputs, last + 1] if edit.what == "insert" and inputs else inputs
    raise OperationError(
        str(ref),
        f"has no input at position {edit.position} that counts",
        f"Choose one of {', '.join(map(str, possible[-VERSIONS_NAMED:]))}." if possible else "It has taken none.",
    )


def _compared(
    entry: WorkflowEntry, ref: Ref, rows: Sequence[EventRow], edit: Edit, story: Retelling, recorded_state: Any
) -> Counterfactual:
    later = [entry.recorder.entry(ref, row) for row in rows if row.version >= edit.position]
    recorded = tuple(one for one in later if one.event.folded or isinstance(one.event, AnswerRefused))
    anew = tuple(one for one in story.entries if one.position >= edit.position)
    return Counterfactual(
        edit,
        recorded,
        anew,
        _differs_at(edit, recorded, anew),
        recorded_state,
        story.state,
        tuple(story.unanswered),
        tuple(story.untaken),
        tuple(story.waiting()),
        tuple(one for one in later if not one.event.folded and not isinstance(one.event, AnswerRefused | Kept)),
        tuple(story.assumed),
        story.error,
    )


def _differs_at(edit: Edit, recorded: Sequence[Entry], told: Sequence[Entry]) -> int | None:
    """Return the first version of a story that is not as recorded, the changed input itself left aside."""
    was = [one for one in recorded if edit.what == "insert" or one.position != edit.position]
    now = [one for one in told if edit.what == "drop" or one.position != edit.position]
    for one, other in zip(was, now, strict=False):
        if not same(one.event, other.event):
            return other.position
    if len(was) == len(now):
        return None
    return now[len(was)].position if len(now) > len(was) else edit.position + len(told)


def silent_commands(registry: Registry) -> frozenset[str]:
    """Return the names of the messages whose handlers are annotated to return None."""
    return frozenset(name for name, handler in registry.handlers.items() if return_hint(handler.function) is NoneType)
