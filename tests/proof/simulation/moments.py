"""Checks of single moments: what the database saw when something was committed or taken, and what clients were told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from mainspring.port.records import OutputKey
from tests.proof.crash.checker import Fault
from tests.proof.crash.evidence import INPUTS
from tests.proof.simulation.checks import Case

SUBSCRIBERS: Final = {"PaperDone": ("file_paper", "frame_paper")}


def held(case: Case) -> Iterable[Fault]:
    """Who settles an output, or gives it back, holds it at that moment: a stale lease commits nothing."""
    for commit in case.world.database.commits:
        ref = f"{commit.unit.workflow}/{commit.unit.instance}"
        for key in (*commit.unit.settles, *(retry.output for retry in commit.unit.retries)):
            case.saw()
            holder = commit.before.holders.get(key)
            if holder != commit.worker:
                text = f"worker {commit.worker} settled version {key.version}, which {holder} held"
                yield Fault(7, text, ref, commit.at_us)


def in_turn(case: Case) -> Iterable[Fault]:
    """Nothing is decided past inputs that wait."""
    for commit in case.world.database.commits:
        unit, waiting = commit.unit, commit.before.waiting
        if not waiting or not any(event.event in INPUTS for event in unit.events):
            continue
        case.saw()
        if unit.consumes != min(waiting):
            ref, which = f"{unit.workflow}/{unit.instance}", unit.consumes or "none of them"
            yield Fault(8, f"of the inputs at {waiting}, {which} was decided", ref, commit.at_us)


def timers_taken(case: Case) -> Iterable[Fault]:
    """Nobody gets a timer into his hands before it is due, not by a tick."""
    due: dict[OutputKey, tuple[str, int]] = {}
    for commit in case.world.database.commits:
        for output in commit.unit.outputs:
            if output.kind == "timer":
                at_us = commit.at_us + output.after_us if output.at_us is None else output.at_us
                ref = f"{commit.unit.workflow}/{commit.unit.instance}"
                due[OutputKey(commit.outcome.key, output.version)] = (ref, at_us)
    for taken_us, key in case.world.database.timers_taken:
        case.saw()
        ref, due_us = due[key]
        if taken_us < due_us:
            yield Fault(9, f"the timer of version {key.version} was taken {due_us - taken_us} us early", ref, taken_us)


def one_body(case: Case) -> Iterable[Fault]:
    """Of several bodies under one id, one at most is acknowledged; the others are refused."""
    bodies: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for asked in case.world.clients.asked:
        case.saw()
        if asked.answer == "ok":
            bodies[asked.to, asked.id].add(asked.body)
    for (to, id), told in bodies.items():
        if len(told) > 1:
            yield Fault(4, f"{id} was acknowledged with {len(told)} bodies: {', '.join(sorted(told))}", to)


def subscribers(case: Case) -> Iterable[Fault]:
    """What was published came to each subscriber, or is a dead letter."""
    made = {(key.rpartition("/")[0], key.rpartition(".")[2]) for key in case.world.outside.made}
    for ref, stream in case.streams.items():
        for at_us, event in stream:
            if event.event != "Published" or case.letters[event.output_id]:
                continue
            for name in SUBSCRIBERS.get(event.type or "", ()):
                case.saw()
                if (event.output_id, name) not in made:
                    yield Fault(3, f"{event.type} at version {event.version} did not come to {name}", ref, at_us)
