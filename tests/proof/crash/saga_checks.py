"""Checks of what only errands do: tasks, sagas, children and joins, retried dead letters, states without history."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import json

from tests.proof.crash.checker import (
    Checker,
    Fault,
    Verdict,
    acknowledged_once,
    ends,
    one_committer,
    prefixes,
    same_id_same_answer,
    versions,
)
from tests.proof.crash.evidence import Evidence, Recorded
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.journey import JOURNEY
from tests.proof.crash.saga_workflows import PARTS, THINGS, Turned
from tests.proof.crash.tables import tables

_STATES = """
SELECT i.workflow || '/' || i.id, s.body FROM snapshots AS s JOIN instances AS i ON i.key = s.instance
WHERE i.workflow = 'Meter'
"""


@dataclass
class Case:
    """What is known of the errands of a run."""

    evidence: Evidence
    people: list[dict[str, Any]]
    documents: list[dict[str, Any]]
    meters: dict[str, Turned]
    seen: int = 0

    def __post_init__(self) -> None:
        self.made = Counter(line["what"] for line in self.evidence.effects if line.get("what"))

    def errands(self) -> Iterator[tuple[str, str, list[Recorded]]]:
        """Return the reference, the name and the stream of each."""
        for ref, stream in self.evidence.streams.items():
            workflow, _, name = ref.partition("/")
            if workflow == "Errand":
                yield ref, name, stream


def read_case(place: Place, evidence: Evidence) -> Case:
    with tables(place) as found:
        rows = [] if found is None else found.rows(_STATES)
    meters = {ref: json.decode(body, type=Turned) for ref, body in rows}
    return Case(evidence, read_lines(place.people), read_lines(place.documents), meters)


def verdicts(case: Case) -> list[Verdict]:
    found: list[Verdict] = []
    for invariant, title, check in CHECKS:
        case.seen = 0
        faults = tuple(check(case))
        found.append(Verdict(invariant, title, case.seen, faults))
    of_all = Checker(case.evidence.of(("Errand", "Delivery")), JOURNEY).verdicts(OF_ALL)
    return [*found, *(replace(verdict, title=f"errands: {verdict.title}") for verdict in of_all)]


def effects(case: Case) -> Iterable[Fault]:
    """What an errand did, by what became of it: all of it once, and nothing else."""
    expected: Counter[str] = Counter()
    for ref, name, stream in case.errands():
        case.seen += 1
        expected += Counter(f"book {name} {thing}" for thing in THINGS)
        status = case.evidence.instances[ref][1]
        if status == "failed":
            expected += Counter(f"unbook {name} {thing}" for thing in THINGS)
        elif status == "completed":
            stubborn = json.decode(stream[1].body or b"")["stubborn"]
            expected += Counter([f"carry {name}", *(f"stamp {name} {part}" for part in range(PARTS))])
            expected += Counter([f"mend {name}"] if stubborn else [])
        else:
            yield Fault(17, f"it is {status}, and nothing happens any more", ref)
    for ref, state in case.meters.items():
        meter = ref.partition("/")[2]
        expected += Counter(f"print {meter} {number}" for number in state.numbers)
    for what in expected.keys() | case.made.keys():
        if case.made[what] != expected[what]:
            yield Fault(3, f"{what!r} was done {case.made[what]} times and should be {expected[what]} times")


def tasks(case: Case) -> Iterable[Fault]:
    """Of many answers one wins; the others get its outcome, and it is the recorded one."""
    told: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in case.people:
        if "task" in line:
            told[line["task"]].append(line)
    recorded: defaultdict[str, list[str | None]] = defaultdict(list)
    for _, _, stream in case.errands():
        for event in stream:
            if event.kind == "answer":
                recorded[event.input_id.removesuffix("/answer")].append(event.type)
    for task in told.keys() | recorded.keys():
        case.seen += len(told[task])
        outcomes = {(line["won"], line["answer"]) for line in told[task]}
        ref = task.rpartition("/")[0]
        if len(outcomes) > 1 or sum(line["first"] for line in told[task]) > 1:
            yield Fault(14, f"its answers were told {told[task]}", ref)
        if len(recorded[task]) != 1 or any(answer != recorded[task][0] for _, answer in outcomes):
            yield Fault(14, f"{recorded[task]} is recorded, and {outcomes} was told", ref)


def sagas(case: Case) -> Iterable[Fault]:
    """What was done is undone in reverse, each once, and only where somebody refused."""
    for ref, _, stream in case.errands():
        armed = [event.version for event in stream if event.event == "Sent" and "compensate" in event.detail]
        undone = [event.detail["undoes"] for event in stream if event.event == "Sent" and "undoes" in event.detail]
        refused = any(event.event == "Compensating" for event in stream)
        case.seen += refused
        if undone != (armed[::-1] if refused else []):
            yield Fault(15, f"{armed} were done, {undone} undone in this order, refused: {refused}", ref)


def joins(case: Case) -> Iterable[Fault]:
    """Each child began once, and each child and each fan-out has one answer, with all parts in their order."""
    for ref, name, stream in case.errands():
        answers = Counter(event.cause for event in stream if event.kind == "result")
        for event in stream:
            if event.event not in ("ChildStarted", "FannedOut"):
                continue
            case.seen += 1
            if answers[event.version] != 1:
                yield Fault(11, f"{event.event} at version {event.version} has {answers[event.version]} answers", ref)
            if event.event == "ChildStarted" and f"Delivery/{name}" not in case.evidence.streams:
                yield Fault(3, f"the child of version {event.version} never began", ref)
        for event in stream:
            if event.type == "AllStamped":
                results = json.decode(event.body or b"")["results"]
                if [result["number"] for result in results] != list(range(PARTS)):
                    yield Fault(11, f"its fan-out was joined with {results}", ref)
    for ref, stream in case.evidence.streams.items():
        began = sum(event.event == "InitiatedBy" for event in stream)
        if ref.startswith("Delivery/") and began != 1:
            yield Fault(1, f"it began {began} times", ref)


def letters(case: Case) -> Iterable[Fault]:
    """A dead letter that was retried is gone, and was carried out under its old id."""
    made = {line["what"]: line["effect"] for line in case.evidence.effects if line.get("what")}
    for ref, name, stream in case.errands():
        for event in stream:
            if event.type == "Mend" and event.event == "Sent":
                case.seen += 1
                if made.get(f"mend {name}") != event.output_id:
                    yield Fault(12, f"{event.output_id} was carried out as {made.get(f'mend {name}')}", ref)
    for letter in case.evidence.dead_letters:
        if letter.type == "Mend":
            yield Fault(12, f"the dead letter {letter.message_id} was not retried", letter.ref)


def meters(case: Case) -> Iterable[Fault]:
    """A state without history has each acknowledged turn once; what a reply said of it is never taken back."""
    asked: defaultdict[str, dict[int, bool]] = defaultdict(dict)
    for turn in case.evidence.asked:
        if turn.type == "Turn":
            number = json.decode(turn.body)["number"]
            asked[turn.to][number] = asked[turn.to].get(number, False) or turn.answer == "ok"
    for ref, turns in asked.items():
        case.seen += len(turns)
        numbers = Counter(case.meters[ref].numbers) if ref in case.meters else Counter[int]()
        lost = {number for number, acknowledged in turns.items() if acknowledged} - numbers.keys()
        if lost or numbers.keys() - turns.keys() or any(count > 1 for count in numbers.values()):
            yield Fault(1, f"{len(lost)} turns were lost; it has {numbers}", ref)
    for line in case.people:
        if "request" in line:
            case.seen += 1
            ref = f"Meter/{line['meter']}"
            turns = len(case.meters[ref].numbers) if ref in case.meters else 0
            if line["turns"] > turns:
                yield Fault(6, f"{line['request']} was told {line['turns']} turns, and there are {turns}", ref)


def projection(case: Case) -> Iterable[Fault]:
    """The read model has every event of every stream once and in order; and the same when it was filled anew."""
    expected = {ref: (len(stream), True) for ref, stream in case.evidence.streams.items() if _projected(ref)}
    for generation in ("live", "rebuilt"):
        found = {
            line["ref"]: (line["events"], line["in_order"])
            for line in case.documents
            if line["generation"] == generation
        }
        case.seen += len(found)
        for ref in expected.keys() | found.keys():
            if found.get(ref) != expected.get(ref):
                text = f"the {generation} read model has {found.get(ref)}, the stream {expected.get(ref)}"
                yield Fault(16, text, ref)


def _projected(ref: str) -> bool:
    return ref.partition("/")[0] in ("Journey", "Errand", "Delivery")


OF_ALL: Final = (acknowledged_once, versions, prefixes, same_id_same_answer, one_committer, ends)
CHECKS: Final = (
    (3, "errands: all that should be done was done once, and nothing else", effects),
    (14, "errands: of many answers to a task one wins", tasks),
    (15, "errands: what was done is undone in reverse, each once", sagas),
    (11, "errands: each child once, each join once", joins),
    (12, "errands: dead letters are retried under their old id", letters),
    (6, "meters: a state without history has each turn once", meters),
    (16, "the read model is the fold of the feed, also when it is filled anew", projection),
)
