"""The judge of one crash: the invariants' checks, and whether the end is that of a run without a crash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from msgspec import json

from tests.proof.crash.checker import Checker
from tests.proof.crash.evidence import INPUTS, Evidence, Recorded, read
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.tables import tables
from tests.proof.crash_points.scenario import Found, Scenario


@dataclass(frozen=True)
class Ending:
    """What a run came to, without what may differ: times, attempts, and how often a handler was called."""

    streams: dict[str, list[Any]]
    instances: dict[str, tuple[int, str, str | None]]
    dead_letters: list[Any]
    effects: list[str]
    found: Found


def judged(scenario: Scenario, place: Place, reference: Ending | None = None) -> tuple[Ending, list[str]]:
    """Return what a run came to, and what is wrong with it."""
    evidence = _with_archive(read(place, pays=bool(scenario.workload.paying)), place)
    with tables(place) as found:
        if found is None:
            raise LookupError(f"there are no tables in {place.url}")
        ending = _ending(evidence, scenario.found(found, place))
    faults = [
        f"invariant {fault.invariant}: {fault.ref or ''} {fault.what}"
        for verdict in Checker(evidence, scenario.workload).verdicts()
        for fault in verdict.faults
    ]
    faults += [f"{what} {value}" for what, value in ending.found.items() if what.endswith("!")]
    return ending, faults + ([] if reference is None else list(_differences(ending, reference)))


def _ending(evidence: Evidence, found: Found) -> Ending:
    letters = [(letter.ref, letter.message_id, letter.type, letter.body) for letter in evidence.dead_letters]
    return Ending(
        {ref: [_event(event) for event in stream] for ref, stream in evidence.streams.items()},
        evidence.instances,
        sorted(letters),
        sorted(line["effect"] for line in evidence.effects if "effect" in line),
        found,
    )


def _event(event: Recorded) -> Any:
    body = None if event.body is None else event.body.decode()
    return (event.event, event.type, body, event.detail, event.kind, event.message_id, event.cause, event.state)


def _differences(ending: Ending, reference: Ending) -> Iterator[str]:
    for name in ("instances", "dead_letters", "effects", "found"):
        if getattr(ending, name) != getattr(reference, name):
            yield f"{name} are {getattr(ending, name)}, and without a crash {getattr(reference, name)}"
    for ref in ending.streams.keys() | reference.streams.keys():
        ours, theirs = ending.streams.get(ref, []), reference.streams.get(ref, [])
        for version in range(max(len(ours), len(theirs))):
            our, their = ours[version : version + 1], theirs[version : version + 1]
            if our != their:
                yield f"{ref} has at version {version + 1} {our}, and without a crash {their}"
                break


def _with_archive(evidence: Evidence, place: Place) -> Evidence:
    """Return the evidence with streams that were purged: what was archived is not lost."""
    lines = [line for line in read_lines(place.folder / "archive.jsonl") if "instance" in line]
    purged: dict[str, dict[int, Recorded]] = {}
    for line in lines:
        ref = f"{line['workflow']}/{line['instance']}"
        if ref not in evidence.streams:
            purged.setdefault(ref, {})[line["version"]] = _archived(ref, line)
    if not purged:
        return evidence
    streams = {ref: [events[version] for version in sorted(events)] for ref, events in purged.items()}
    states = {ref: [event.state for event in stream if event.state] for ref, stream in streams.items()}
    # A tombstone says nothing of the state: what the archive says of it is held against the fold instead.
    ends = {ref: (*evidence.instances[ref][:2], states[ref][-1]) for ref in streams}
    return replace(evidence, streams=evidence.streams | streams, instances=evidence.instances | ends)


def _archived(ref: str, line: dict[str, Any]) -> Recorded:
    body = None if "body" not in line else json.encode(line["body"])
    return Recorded(
        *(ref, line["version"], line["version"], line["event"], line.get("type"), body, line.get("detail") or {}),
        *(
            line.get("kind"),
            line.get("message_id") if line["event"] in INPUTS else None,
            line.get("cause"),
            line.get("context") or {},
            line.get("state"),
        ),
        *(0, line.get("attempt")),
    )
