"""What really happened, as the steps that a machine would have to know: from a stream, without the machine's help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mainspring import Workflow
from mainspring.analysis.reading.model import COMPENSATED, Machine, Output, Transition
from mainspring.core import events
from mainspring.core.decisions import task_timer_key
from mainspring.core.fold import fold
from mainspring.core.messages import type_of

NAMES = {
    events.Sent: "Send",
    events.Published: "Publish",
    events.Replied: "Reply",
    events.Scheduled: "Schedule",
    events.ScheduleCancelled: "CancelSchedule",
    events.Asked: "Ask",
    events.ChildStarted: "StartChild",
    events.FannedOut: "FanOut",
    events.Completed: "Complete",
    events.Failed: "Fail",
    events.Compensating: "Compensate",
}


class Seen(NamedTuple):
    """One step as it happened."""

    source: str
    message: str
    target: str
    ends: str | None
    outputs: tuple[tuple[str, str | None], ...]


def observed(workflow: Workflow[Any, Any, Any], stream: Iterable[Any]) -> list[Seen]:
    """Return the steps that a stream tells of."""
    seen: list[Seen] = []
    state: Any = workflow.initial_state
    step: list[Any] = []
    source = state
    for event in [*stream, None]:
        begins_step = event is None or isinstance(event, events.Began | events.Received | events.Compensated)
        if begins_step and not isinstance(step[-1] if step else None, events.Began):
            if step:
                seen.append(_seen(source, step, state))
            step, source = [], state
        if event is None:
            return seen
        step.append(event)
        state = fold(workflow, state, [event])
    return seen


def _seen(source: Any, step: Sequence[Any], target: Any) -> Seen:
    first = next(event for event in step if not isinstance(event, events.Began))
    message = COMPENSATED if isinstance(first, events.Compensated) else type_of(type(first.message)).name
    ends = "completed" if any(isinstance(event, events.Completed) for event in step) else None
    ends = "failed" if any(isinstance(event, events.Failed) for event in step) else ends
    outputs: list[tuple[str, str | None]] = []
    tasks: set[str] = set()
    for event in step:
        name = NAMES.get(type(event))
        if isinstance(event, events.Asked):
            tasks.add(task_timer_key(event.key))
        undoes = isinstance(event, events.Sent) and event.undoes is not None
        of_task = isinstance(event, events.Scheduled) and event.key in tasks
        if name is not None and not undoes and not of_task:
            outputs.append((name, _carried(event)))
    return Seen(_name(source), message, _name(target), ends, tuple(outputs))


def _carried(event: Any) -> str | None:
    match event:
        case events.Asked(key):
            return key
        case events.Completed(result):
            return None if result is None else _name(result)
        case events.Failed() | events.Compensating() | events.ScheduleCancelled() | events.FannedOut():
            return None  # a key may be computed: it is not compared
        case _:
            return _name(event.message)


def _name(value: Any) -> str:
    return type_of(type(value)).name


def is_known(machine: Machine, seen: Seen) -> bool:
    """Tell whether a machine has a transition for a step, with the same decisions in the same order."""
    for transition in machine.transitions:
        for target, ends, outputs in _ends_of(machine, transition):
            same = (transition.source, transition.message, target, ends) == (
                seen.source,
                seen.message,
                seen.target,
                seen.ends,
            )
            if same and _fits(outputs, seen.outputs):
                return True
    lost = any((gap.source, gap.message) == (seen.source, seen.message) for gap in machine.gaps)
    return lost and seen.target == seen.source and not seen.outputs and seen.ends is None


def _ends_of(machine: Machine, transition: Transition) -> list[tuple[str, str | None, tuple[Output, ...]]]:
    """Return where a transition leads. A saga that has nothing to undo fails in the step that decides it."""
    found: list[tuple[str, str | None, tuple[Output, ...]]] = [
        (transition.target, transition.ends, transition.outputs if transition.message != COMPENSATED else ())
    ]
    if any(output.decision == "Compensate" for output in transition.outputs):
        found += [
            (undone.target, undone.ends, (*transition.outputs, Output("Fail")))
            for undone in machine.leaving(transition.target)
            if undone.message == COMPENSATED
        ]
    if transition.message == COMPENSATED and transition.ends == "failed":
        found.append((transition.target, transition.ends, (Output("Fail"),)))
    return found


def _fits(expected: Sequence[Output], outputs: Sequence[tuple[str, str | None]]) -> bool:
    """Tell whether decisions are those that were read, a repeated one as often as it likes."""
    if not expected:
        return not outputs
    first, rest = expected[0], expected[1:]
    if first.repeated and _fits(rest, outputs):
        return True
    if not outputs or outputs[0][0] != first.decision:
        return False
    carried = outputs[0][1]
    if carried is not None and carried != first.message:
        return False
    return _fits(expected if first.repeated else rest, outputs[1:])
