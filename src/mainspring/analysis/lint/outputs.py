"""Rules about what is given: MS301 result-not-taken, MS302 output-not-handled, MS303 unused-output, MS304 no-reply."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mainspring.analysis.lint.rules import Finding, finding
from mainspring.analysis.lint.runs import Runs, entry_place
from mainspring.analysis.reading.decisions import UNREAD
from mainspring.analysis.reading.model import Output, Place, Transition


def check_outputs(runs: Runs) -> Iterator[Finding]:
    """Yield what is wrong with what a workflow gives."""
    for transition in _live(runs):
        for output in transition.outputs:
            for found in _of_output(runs, transition, output):
                yield replace(found, witness=runs.witness_of(transition))
    yield from _unused(runs)
    yield from _unanswered(runs)


def _live(runs: Runs) -> list[Transition]:
    """Return the transitions of states that can be reached."""
    reachable = {state.name for state in runs.machine.states if state.reachable}
    return [transition for transition in runs.machine.transitions if transition.source in reachable]


def _of_output(runs: Runs, transition: Transition, output: Output) -> Iterator[Finding]:
    place = output.place or entry_place(transition, runs.machine)
    workflow = runs.machine.workflow
    if output.decision in ("Send", "FanOut"):
        for name in (output.message or "").split(" | "):
            yield from _sent(runs, transition, place, name, joined=output.decision == "FanOut")
        if output.compensate is not None and runs.world.destination(output.compensate).taker == "nothing":
            what = f"{output.compensate}, which undoes {output.message}, is taken by nothing"
            yield finding("MS302", workflow, place, what, output.compensate)
    elif output.decision == "StartChild" and output.message not in (None, UNREAD):
        results = runs.world.children(output.message)
        if results is None:
            what = f"{output.message} is to begin a child, and no workflow of the app takes it"
            yield finding("MS302", workflow, place, what, output.message, fix="Add the child's workflow to the app.")
        elif transition.ends is None:
            yield from _untaken(runs, place, output.message, "its child completes with", results)


def _sent(runs: Runs, transition: Transition, place: Place, name: str, *, joined: bool) -> Iterator[Finding]:
    if name in ("", UNREAD):
        return
    destination = runs.world.destination(name)
    if destination.taker == "nothing":
        what = f"{name} is sent, and nothing in the app takes it"
        yield finding("MS302", runs.machine.workflow, place, what, name)
    elif transition.ends is None and not joined:
        verb = "returns" if destination.taker == "handler" else "replies"
        yield from _untaken(runs, place, name, f"{destination.name} {verb}", destination.results or ())


def _untaken(runs: Runs, place: Place, name: str, who: str, results: tuple[str, ...]) -> Iterator[Finding]:
    for result in results:
        if result not in runs.inputs:
            what = f"{who} {result} to {name}, and that is no input of {runs.machine.workflow}"
            yield finding("MS301", runs.machine.workflow, place, what, name, result)


def _unused(runs: Runs) -> Iterator[Finding]:
    machine = runs.machine
    if machine.unresolved:
        return
    outputs = [output for transition in machine.transitions for output in transition.outputs]
    given = {name for output in outputs for name in (output.message or "").split(" | ")}
    given |= {output.compensate for output in outputs if output.compensate is not None}
    for message in machine.outputs:
        if message.name not in given:
            what = f"no decision of {machine.workflow} carries its output {message.name}"
            yield finding("MS303", machine.workflow, machine.place or Place("", 0), what, message.name)


def _unanswered(runs: Runs) -> Iterator[Finding]:
    """Yield the ways on which a request gets no reply, though it gets one on others."""
    machine = runs.machine
    replying = [each for each in _live(runs) if any(output.decision == "Reply" for output in each.outputs)]
    requests = {each.message for each in replying if runs.outside(each.message)}
    later = any(not runs.outside(each.message) for each in replying)
    for transition in _live(runs):
        silent = transition not in replying and transition.message in requests
        if silent and not (transition.begins and transition.ends is None and later):
            where = f"in {transition.source}{f' when {transition.guard}' if transition.guard else ''}"
            what = f"{transition.message} gets no reply {where}, and does on other ways"
            place, witness = entry_place(transition, machine), runs.witness_of(transition)
            yield finding(
                "MS304", machine.workflow, place, what, transition.message, transition.source, witness=witness
            )
    if later:
        for transition, situation in runs.ended:
            if situation.owes_reply and transition.message not in requests:
                ends = f"{transition.message} ends the instance in {transition.source}"
                what = f"{ends}, and the request that began it got no reply"
                place, about = entry_place(transition, machine), (transition.message, transition.source)
                yield finding("MS304", machine.workflow, place, what, *about, witness=runs.witness_of(transition))
