"""Rules about states: MS201 unreachable-state, MS202 dead-end, MS203 waits-without-timeout, MS305 timer-left.

The rule about cases of decide and evolve that can never match: MS204 dead-case.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from mainspring.analysis.lint.rules import Finding, finding
from mainspring.analysis.lint.runs import Runs, Situation, entry_place
from mainspring.analysis.reading.model import Machine, Place
from mainspring.sources import source_of, text_at


def check_states(runs: Runs) -> Iterator[Finding]:
    """Yield what is wrong with the states."""
    yield from _unreachable(runs)
    dead = set(_dead_ends(runs))
    for state in sorted(dead):
        by = next(transition for situation, transition in runs.entered.items() if situation.state == state)
        what = f"{by.message} leads into {state}, which nothing leads out of, and which is no end"
        place = entry_place(by, runs.machine)
        yield finding("MS202", runs.machine.workflow, place, what, state, witness=runs.witness_in(state))
    yield from _without_timeout(runs, dead)
    yield from _timers_left(runs, dead)


def _unreachable(runs: Runs) -> Iterator[Finding]:
    machine = runs.machine
    for state in machine.states:
        if not state.reachable:
            what = f"nothing leads to the state {state.name}"
            yield finding("MS201", machine.workflow, state.place or machine.place or Place("", 0), what, state.name)


def _dead_ends(runs: Runs) -> Iterator[str]:
    """Yield the states in which an instance can be that nothing leads out of, and in which nothing happens."""
    machine = runs.machine
    unclear = {source for source, _ in runs.unclear}
    for state in {situation.state for situation in runs.entered}:
        leaving = [transition for transition in machine.leaving(state) if not transition.begins]
        if all(transition.ignored for transition in leaving) and state not in unclear and "" not in unclear:
            yield state


def _without_timeout(runs: Runs, dead: set[str]) -> Iterator[Finding]:
    """Yield the ways into states where nothing is on its way that would come for sure."""
    machine = runs.machine
    if not any(transition.ends for transition in machine.transitions):
        return  # what never ends waits by its nature
    told: set[tuple[Place, str]] = set()
    for situation, by in runs.entered.items():
        place = entry_place(by, machine)
        if situation.state in dead or not situation.clear or (place, situation.state) in told:
            continue
        if not _goes_on(runs, situation):
            told.add((place, situation.state))
            what = f"in {situation.state}, after {by.message}, an instance waits for {_awaited(runs, situation)}"
            witness = runs.witness(situation)
            yield finding(
                "MS203", machine.workflow, place, f"{what} without a timeout", situation.state, witness=witness
            )


def _goes_on(runs: Runs, situation: Situation) -> bool:
    """Return True if something is on its way for sure that has a case here."""
    here = {each.message for each in runs.machine.leaving(situation.state) if not each.ignored and not each.begins}
    return any(coming.sure and coming.messages & here for coming in situation.coming)


def _awaited(runs: Runs, situation: Situation) -> str:
    moving = [each.message for each in runs.machine.leaving(situation.state) if each.moves and not each.begins]
    names = list(dict.fromkeys(moving))
    return " or ".join(names[:3]) + (" or others" if len(names) > 3 else "") or "a message"


def _timers_left(runs: Runs, dead: set[str]) -> Iterator[Finding]:
    machine = runs.machine
    told: set[tuple[str, str]] = set()
    for situation, by in runs.entered.items():
        for coming in situation.coming:
            for message in coming.messages if coming.kind == "timer" else ():
                pair = (message, situation.state)
                gaps = runs.gaps.get((situation.state, message), [])
                if pair in told or situation.state in dead or not any(not gap.guard for gap in gaps):
                    continue
                told.add(pair)
                what = f"the timer {message} is still set in {situation.state}, which has no case for it"
                fix = f"Decide CancelSchedule({message}) on the way in."
                witness, place = runs.witness(situation), entry_place(by, machine)
                yield finding("MS305", machine.workflow, place, what, *pair, fix=fix, witness=witness)


def check_cases(cls: type[Any], machine: Machine) -> Iterator[Finding]:
    """Yield the cases that no message in any state comes to. A last `case _` is no mistake: it is there for safety."""
    if machine.unresolved:
        return
    for name in ("decide", "evolve"):
        function = inspect.unwrap(getattr(cls, name))
        source = source_of(function)
        tree, offset = source if source is not None else (ast.Pass(), 0)
        for node in ast.walk(tree):
            if not isinstance(node, ast.match_case) or _takes_anything(node):
                continue
            place = Place(function.__code__.co_filename, node.pattern.lineno + offset)
            if place not in machine.cases:
                text = text_at(place.file, node.pattern, offset)
                what = f"`case {text}` of {name} can never match"
                yield finding("MS204", machine.workflow, place, what, name)


def _takes_anything(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
