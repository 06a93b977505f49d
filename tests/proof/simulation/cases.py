"""Checks of what only some workflows do: replies, tasks, sagas, children, and states without history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from msgspec import json

from mainspring.port.records import ENDED
from tests.proof.crash.checker import Fault
from tests.proof.crash.evidence import Recorded
from tests.proof.simulation.checks import ENDS, Case
from tests.proof.simulation.clients import Outcome
from tests.proof.simulation.workflows import Reading, StartProject, Total


def replies(case: Case) -> Iterable[Fault]:
    """The same request gets the same reply, and it is the recorded one; or none, of an instance that has ended."""
    told: defaultdict[str, list[object]] = defaultdict(list)
    for id, reply in case.world.clients.replies:
        told[id].append(reply)
    recorded = {
        (row.cause, ref): json.decode(row.body or b"", type=Total)
        for ref, stream in case.of("Gauge")
        for row in stream
        if row.event == "Replied"
    }
    taken = {row.message_id: (row.version, ref) for ref, stream in case.of("Gauge") for row in stream if row.message_id}
    for id, answers in told.items():
        case.saw()
        expected = recorded.get(taken.get(id, (0, "")))
        if any(answer != expected for answer in answers):
            yield Fault(4, f"{id} was answered with {answers}, recorded is {expected}")
    kept = {each.key for commit in case.world.database.commits for each in commit.unit.remembers}
    for id, ref in case.world.clients.unreplied:
        case.saw()
        if id in told or f"reply:{id}" in kept:
            yield Fault(4, f"of {id} it was told that no reply comes, and there is one", ref)
        if case.rows[ref].status not in ENDED:
            yield Fault(10, f"of {id} it was told that no reply comes, and its instance never ended", ref)


def tasks(case: Case) -> Iterable[Fault]:
    """Of many answers to a task one wins; the others get its outcome."""
    by_task: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in case.world.clients.outcomes:
        # A doubt is skipped, and its task takes another answer.
        if not outcome.answer.startswith("Doubt"):
            by_task[outcome.task].append(outcome)
    answers = {
        row.message_id: row
        for workflow in ("Approval", "Petition")
        for _, stream in case.of(workflow)
        for row in stream
        if row.kind == "answer" and row.event not in ("Kept", "Skipped")
    }
    gone = {str(purge.ref) for purge in case.world.database.purges}
    for task, told in by_task.items():
        case.saw()
        # Of a message that was purged only its type is told.
        short = [replace(outcome, answer=outcome.answer.partition(" ")[0]) for outcome in told]
        outcomes = short if task.rpartition("/")[0] in gone else told
        if len({(outcome.by, outcome.answer) for outcome in outcomes}) > 1 or sum(o.first for o in outcomes) > 1:
            yield Fault(14, f"its answers were told {outcomes}", task)
        row = answers.get(f"{task}/answer")
        if row is not None and any(outcome.answer.partition(" ")[0] != row.type for outcome in outcomes):
            yield Fault(14, f"{row.type} is recorded, and {outcomes} were told", task)


def sagas(case: Case) -> Iterable[Fault]:
    """What was done is undone in reverse, each once; or a dead letter shows that it could not be."""
    for ref, stream in case.of("Holiday"):
        case.saw()
        holiday = ref.partition("/")[2]
        begun = next((row.version for row in stream if row.event == "Compensating"), None)
        undone = [row.detail["undoes"] for row in stream if row.event == "Sent" and "undoes" in row.detail]
        yield from _in_reverse(ref, stream, undone, begun)
        held = sorted(step for (id, step) in case.world.outside.reserved if id == holiday)
        terminated = any(row.event == "Terminated" for row in stream)
        letters = any(
            case.letters[f"{ref}/{row.version}"] for row in stream if row.event == "Sent" and "undoes" in row.detail
        )
        if begun is not None and held and not terminated and not letters:
            yield Fault(15, f"it was compensated, and {held} are still reserved", ref)
        if begun is None and any(row.event == "Completed" for row in stream):
            steps = next(json.decode(row.body or b"")["steps"] for row in stream if row.event == "InitiatedBy")
            if held != list(range(1, steps + 1)):
                yield Fault(15, f"it completed {steps} steps, and {held} are reserved", ref)


def _in_reverse(ref: str, stream: list[Recorded], undone: list[int], begun: int | None) -> Iterable[Fault]:
    if len(set(undone)) != len(undone):
        yield Fault(15, f"versions {undone} were undone, one of them twice", ref)
    if undone != sorted(undone, reverse=True):
        yield Fault(15, f"versions were undone in the order {undone}", ref)
    if begun is None:
        if undone:
            yield Fault(15, f"{undone} were undone, and nobody asked for it", ref)
        return
    armed = {
        row.version for row in stream if row.event == "Sent" and "compensate" in row.detail and row.version < begun
    }
    failed = [row for row in stream if row.type == "SendFailed" and json.decode(row.body or b"").get("definite")]
    known, learnt = {row.cause for row in failed if row.version < begun}, {row.cause for row in failed}
    ended = any(row.event in ENDS and row.event != "Terminated" for row in stream)
    # What is known to have failed only while it is undone may be undone or not.
    if ended and not armed - learnt <= set(undone) <= armed - known:
        yield Fault(15, f"{sorted(armed - known)} were to be undone, and {undone} were", ref)


def projects(case: Case) -> Iterable[Fault]:
    """A parent hears of each child and each fan-out once, and what it hears is right."""
    touched = case.world.clients.operated
    for ref, stream in case.of("Project"):
        done = next((row for row in stream if row.event == "Completed"), None)
        start = json.decode(stream[1].body or b"", type=StartProject)
        if done is None or any(known.startswith(f"Errand/{start.project}.") for known in touched):
            continue
        case.saw()
        grams = sum(range(1, start.parts + 1))
        failed = int(start.spoiled and start.errands > 0)
        expected = {"project": start.project, "grams": grams, "failed": failed}
        if json.decode(done.body or b"") != expected:
            yield Fault(11, f"it completed with {done.body!r} instead of {expected}", ref)
        for row in stream:
            answers = sum(1 for e in stream if e.cause == row.version and e.kind == "result")
            if row.event in ("ChildStarted", "FannedOut") and answers != 1:
                yield Fault(11, f"{row.event} at version {row.version} has {answers} answers", ref)


def gauges(case: Case) -> Iterable[Fault]:
    """A state without history is what its inputs make of it, each counted once."""
    for ref, stream in case.of("Gauge"):
        fold = case.folded[ref]
        state = list(fold.states.values())[-1]
        if isinstance(state, Reading):
            case.saw()
            units = sum(
                fold.message(row).units
                for row in stream
                if row.event == "Received" and row.detail.get("unkept") == "Read"
            )
            if state.total != units:
                yield Fault(6, f"{units} units were read, its state has {state.total}", ref)


def scores(case: Case) -> Iterable[Fault]:
    """Whichever code has stepped it, a score closes with what its stream says."""
    for ref, stream in case.of("Score"):
        done = next((row for row in stream if row.event == "Completed"), None)
        if done is None:
            continue
        case.saw()
        numbers = [json.decode(row.body or b"")["number"] for row in stream if row.type == "Point"]
        expected = {"count": len(numbers), "largest": max(numbers)}
        if json.decode(done.body or b"") != expected:
            yield Fault(6, f"it closed with {done.body!r} instead of {expected}", ref)
