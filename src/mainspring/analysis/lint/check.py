"""lint: all rules on all workflows of an app.

The history style: decide has the whole history before it, and no state that rules could speak of. What its code tells
all the same: that it is impure (MS401), and that nothing runs the tasks that it schedules (MS302).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from mainspring.analysis.lint.intended import sift
from mainspring.analysis.lint.messages import check_messages, check_outside
from mainspring.analysis.lint.outputs import check_outputs
from mainspring.analysis.lint.rules import RULES, Finding, Report, finding
from mainspring.analysis.lint.runs import MOST_SITUATIONS, Runs, entry_place
from mainspring.analysis.lint.states import check_cases, check_states
from mainspring.analysis.lint.world import World
from mainspring.analysis.reading.model import Machine, Place
from mainspring.analysis.reading.steps import place_of
from mainspring.app import Mainspring
from mainspring.core.definition import definition_of
from mainspring.core.messages import type_of
from mainspring.core.workflow import Workflow
from mainspring.flows.flow import Flow
from mainspring.purity import check_purity
from mainspring.purity.names import Names
from mainspring.sources import source_of
from mainspring.styles import HistoryWorkflow
from mainspring.styles.history_words import RunTask, ScheduleTask

APPLIED: Final = ("MS302", "MS401", "MS902")
_CODES: Final = {"source": "MS901", "await": "MS402"}
_FIX: Final = "There is nothing to do; tests and histories show what lint cannot see here."


def check_history(workflow: HistoryWorkflow, machine: Machine, world: World) -> Iterator[Finding]:
    """Yield the findings in a workflow of the history style, and which rules were not applied to it."""
    place = place_of(type(workflow).decide)
    others = ", ".join(code for code in RULES if code not in (*APPLIED, "MS901"))
    what = f"{machine.workflow} is in the history style and has no states to distinguish: {others} do not apply"
    yield finding("MS901", machine.workflow, place, what, "history", fix=_FIX)
    name = type_of(RunTask).name
    if world.destination(name).taker == "nothing":
        for line in _scheduling(workflow):
            what = f"{name} is sent for a ScheduleTask, and nothing in the app takes it"
            fix = "Register a handler of RunTask, or name it in app.external(…) if tasks are run elsewhere."
            yield finding("MS302", machine.workflow, Place(place.file, line), what, name, fix=fix)


def check_flow(machine: Machine, world: World) -> Iterator[Finding]:
    """Yield what is wrong with a flow, beside what is impure: its cases are its lines, and each one is handled."""
    told: set[str] = set()
    runs = Runs(machine, world)
    for transition, output in ((each, output) for each in machine.transitions for output in each.outputs):
        names = [output.message] if output.decision in ("Send", "FanOut", "StartChild") else []
        for name in (*names, output.compensate):
            if name is not None and name not in told and world.destination(name).taker == "nothing":
                told.add(name)
                what = f"{name} is sent, and nothing in the app takes it"
                place = output.place or entry_place(transition, machine)
                yield finding("MS302", machine.workflow, place, what, name, witness=runs.witness_of(transition))


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


def lint(app: Mainspring, workflow: str | None = None) -> Report:
    """Return what is wrong, or may be, with the workflows of an app, or with one of them, by its name.

    It is what their code and the app's wiring tell. Nothing is run, and no database is opened.

    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> [(finding.name, finding.about) for finding in lint(app).findings]
    [('waits-without-timeout', ('Counted',))]
    """
    world = World(app)
    found: list[Finding] = []
    files: set[str] = set()
    classes: dict[str, str] = {}
    # All are looked at, whichever is chosen: a comment in their file may speak of any of them.
    for name, entry in world.entries.items():
        own: Workflow[Any, Any, Any] = entry.workflow
        machine = world.machines[name]
        found += check_workflow(own, machine, world)
        files |= _files(type(own), machine)
        data = (*entry.definition.inputs, *entry.definition.states, *entry.definition.outputs)
        classes |= {cls.__name__: name for cls in (*data, *type(own).__mro__)}
    left, intended = sift(once(found), files, classes)
    chosen = [name for name in world.entries if workflow in (None, name)]
    return Report(
        tuple(chosen),
        tuple(sorted(each for each in left if each.workflow in chosen)),
        tuple(each for each in intended if each.finding.workflow in chosen),
    )


def once(found: Iterable[Finding]) -> list[Finding]:
    """Return each finding once, in order, with the fewest inputs that are known to lead to it."""
    kept: dict[Finding, Finding] = {}
    for each in found:
        key = replace(each, witness=None)
        known = kept.get(key)
        if known is None or _fewest(each) < _fewest(known):
            kept[key] = each
    return [kept[key] for key in sorted(kept)]


def _fewest(found: Finding) -> tuple[bool, int]:
    """Order findings by their witness: what has none, or one that is not known, comes behind what has one."""
    return not found.witness, len(found.witness or ())


def check_workflow(workflow: Workflow[Any, Any, Any], machine: Machine, world: World) -> Iterator[Finding]:
    """Yield what all rules find in one workflow."""
    cls = type(workflow)
    impure = check_purity(workflow)
    for each in impure:
        # Of what has no source nothing impure is known.
        code = _CODES.get(each.rule, "MS401")
        place = Place(each.file, each.line)
        yield finding(code, machine.workflow, place, f"{each.where} {each.what}", each.rule, fix=each.fix)
    if any(each.rule == "source" and each.where.endswith((".decide", ".evolve")) for each in impure):
        return  # and so is nothing else
    if isinstance(workflow, HistoryWorkflow):
        yield from check_history(workflow, machine, world)
        return
    if isinstance(workflow, Flow):
        yield from check_flow(machine, world)
        return
    for place, text, reason in dict.fromkeys((each.place, each.text, each.reason) for each in machine.unresolved):
        yield finding("MS901", machine.workflow, place, f"{text}: {reason}")
    if any(not each.source for each in machine.unresolved):
        return  # nothing at all was read
    yield from check_outside(cls, machine, place_of(cls.decide))
    runs = Runs(machine, world)
    if not runs.complete:
        what = f"{machine.workflow} can be in more than {MOST_SITUATIONS:,} situations; not all were looked at"
        yield finding("MS901", machine.workflow, place_of(cls.decide), what)
    yield from check_messages(runs, definition_of(cls), place_of(cls.decide))
    yield from check_states(runs)
    yield from check_outputs(runs)
    yield from check_cases(cls, machine)


def _files(cls: type[Any], machine: Machine) -> set[str]:
    """Return the files in which a comment about a workflow may stand."""
    places = [state.place for state in machine.states]
    places += [output.place for transition in machine.transitions for output in transition.outputs]
    places += [machine.place, place_of(cls.decide), place_of(cls.evolve)]
    return {place.file for place in places if place is not None}
