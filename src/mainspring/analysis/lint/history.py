"""The history style: decide has the whole history before it, and no state that rules could speak of.

What its code tells all the same: that it is impure (MS401), and that nobody runs the tasks that it schedules (MS302).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Final

from mainspring.analysis.lint.rules import RULES, Finding, finding
from mainspring.analysis.lint.world import World
from mainspring.analysis.reading.model import Machine, Place
from mainspring.analysis.reading.steps import place_of
from mainspring.core.messages import type_of
from mainspring.purity.names import Names
from mainspring.sources import source_of
from mainspring.styles import HistoryWorkflow
from mainspring.styles.history_words import RunTask, ScheduleTask

APPLIED: Final = ("MS302", "MS401", "MS902")
_FIX: Final = "Nothing is to be done about it; tests and histories show what lint cannot see here."


def check_history(workflow: HistoryWorkflow, machine: Machine, world: World) -> Iterator[Finding]:
    """Yield what is wrong with a workflow in the history style, and which rules were not applied to it."""
    place = place_of(type(workflow).decide)
    others = ", ".join(code for code in RULES if code not in (*APPLIED, "MS901"))
    what = f"{machine.workflow} is in the history style and has no states to tell apart: {others} do not apply"
    yield finding("MS901", machine.workflow, place, what, "history", fix=_FIX)
    name = type_of(RunTask).name
    if world.destination(name).taker == "nobody":
        for line in _scheduling(workflow):
            what = f"{name} is sent for a ScheduleTask, and nobody in the app takes it"
            fix = "Register a handler of RunTask, or name it in app.external(…) if tasks are run elsewhere."
            yield finding("MS302", machine.workflow, Place(place.file, line), what, name, fix=fix)


def _scheduling(workflow: HistoryWorkflow) -> Iterator[int]:
    """Yield the lines of decide that schedule a task."""
    decide = inspect.unwrap(type(workflow).decide)
    source = source_of(decide)
    if source is None:
        return
    tree, offset = source
    names = Names(decide, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and names.value(node.func) is ScheduleTask:
            yield node.lineno + offset
