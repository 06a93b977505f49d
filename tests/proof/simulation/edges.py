"""Checks of what happens at the edges: versions side by side, purging, and brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import json

from mainspring.port.records import ENDED
from tests.proof.crash.checker import Fault
from tests.proof.simulation.checks import Case
from tests.proof.simulation.consignments import REPORTED, SENDER, SERVICE, TAKEN


def contracts(case: Case) -> Iterable[Fault]:
    """An instance is signed under the version that it began with, or migrated to, with all its words."""
    for ref, stream in case.of("Contract"):
        done = next((row for row in stream if row.event == "Completed"), None)
        if done is None:
            continue
        case.saw()
        words = sum(json.decode(row.body or b"")["words"] for row in stream if row.type == "Clause")
        version = case.version(ref)
        expected = {"contract": ref.partition("/")[2], "version": version, "words": words}
        if json.decode(done.body or b"") != expected:
            yield Fault(6, f"it was signed with {done.body!r} instead of {expected}", ref)


def purges(case: Case) -> Iterable[Fault]:
    """What is purged has ended, nothing is owed to it, and nothing happens to it any more."""
    for purge in case.world.database.purges:
        case.saw()
        ref = str(purge.ref)
        if purge.status not in ENDED:
            yield Fault(10, f"it was purged while it was {purge.status}", ref, purge.at_us)
        if purge.owed:
            yield Fault(3, f"it was purged, and {purge.owed} inputs, outputs or letters with it", ref, purge.at_us)
        if any(at_us > purge.at_us for at_us, _ in case.streams[ref]):
            yield Fault(10, "something happened to it after it was purged", ref, purge.at_us)


def taken(case: Case) -> Iterable[Fault]:
    """What a broker brought is taken once, in its order, and acknowledged when it is durable and not before."""
    posted: dict[str, list[Any]] = {}
    for message in case.world.post.logs[TAKEN]:
        body = json.decode(message.body)
        mine = posted.setdefault(f"Consignment/{body['consignment']}", [])
        if "number" in body and body["number"] not in mine:
            mine.append(body["number"])
    for ref, numbers in posted.items():
        case.saw()
        stream = [event for _, event in case.streams.get(ref, [])]
        found = [json.decode(row.body or b"")["number"] for row in stream if row.type == "Scan"]
        if found != numbers:
            yield Fault(1, f"{numbers} were brought by the broker, and {found} were taken", ref)
    kept: dict[str, int] = {}
    for commit in case.world.database.commits:
        unit = commit.unit
        for id in (*(e.message_id for e in unit.events), *(a.message_id for a in unit.accepts)):
            if id is not None:
                kept.setdefault(id, commit.at_us)
    for at_us, address, place in case.world.post.heard:
        case.saw()
        id = f"{SENDER}#{case.world.post.logs[address][place - 1].id}"
        if kept.get(id, at_us + 1) > at_us:
            yield Fault(1, f"{id} was acknowledged to the broker before it was kept", None, at_us)


def reported(case: Case) -> Iterable[Fault]:
    """What is published came to the broker under one id with one body, and nothing else did."""
    told: dict[str, set[bytes]] = {}
    for message in case.world.post.logs[REPORTED]:
        told.setdefault(message.id, set()).add(message.body)
    recorded = {
        f"{SERVICE}#{row.output_id}": row
        for _, stream in case.of("Consignment")
        for row in stream
        if row.event == "Published"
    }
    for id, row in recorded.items():
        case.saw()
        if told.get(id) != {row.body} and not case.letters[row.output_id]:
            yield Fault(3, f"{row.body!r} was published, and the broker has {told.get(id)}", row.ref)
    for id in told.keys() - recorded.keys():
        yield Fault(3, f"the broker has {id}, which is no recorded output")
