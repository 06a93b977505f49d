"""What there is to judge in a run: rows of the virtual database, what clients were told, and what handlers did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import json

from mainspring.port.ids import MARK, plain
from mainspring.port.records import EventRow
from tests.proof.crash.evidence import DeadLetter, Evidence, Owed, Recorded, Waiting

if TYPE_CHECKING:
    from collections.abc import Container

    from tests.proof.simulation.world import World


GIVEN: Final = "given:"
"""Before an id that a client has chosen to be that of another message, wherever it is not on its way."""


def known_as(id: str) -> str:
    """Return the id of an input as the judge knows it: a derived one without its mark, and apart from those like it."""
    return plain(id) if id.startswith(MARK) else f"{GIVEN}{id}" if id.startswith("Journey/") else id


def recorded(ref: str, row: EventRow, position: int) -> Recorded:
    """Return an event as the judge reads it."""
    return Recorded(
        ref,
        row.version,
        position,
        row.event,
        row.type,
        row.body,
        json.decode(row.detail) if row.detail else {},
        row.kind,
        None if row.message_id is None else known_as(row.message_id),
        row.cause,
        json.decode(row.context) if row.context else {},
        row.state,
        row.time_us,
        row.attempt,
    )


def committed(world: World) -> dict[str, list[tuple[int, Recorded]]]:
    """Return all that was ever committed to each stream, with the true time of its commit: nothing of it is trimmed."""
    streams: dict[str, list[tuple[int, Recorded]]] = {}
    position = 0
    for commit in world.database.commits:
        ref = f"{commit.unit.workflow}/{commit.unit.instance}"
        for row in commit.unit.events:
            position += 1
            streams.setdefault(ref, []).append((commit.at_us, recorded(ref, row, position)))
    return streams


def evidence_of(world: World, workflows: Container[str]) -> Evidence:
    """Return the evidence about the instances of some workflows."""
    database = world.database
    places = {(ref, row.version): number for number, ref, row in database.fed}
    rows = database.rows
    named = {row.key: ref for ref, row in rows.items()}

    def judged(ref: Any) -> bool:
        return ref.workflow in workflows

    return Evidence(
        streams={
            str(ref): [recorded(str(ref), row, places.get((ref, row.version), 0)) for row in stream]
            for ref, stream in world.database.streams().items()
            if judged(ref)
        },
        instances={str(ref): (row.version, row.status, row.state) for ref, row in rows.items() if judged(ref)},
        dead_letters=[
            DeadLetter(
                f"{letter.workflow}/{letter.instance}",
                known_as(letter.message_id) if letter.output is None else letter.message_id,
                letter.kind,
                letter.type,
                letter.body,
                letter.attempts,
                letter.output.version if letter.output is not None else None,
                letter.reason,
            )
            for letter in database.letters
            if letter.workflow in workflows and not database.forgot(letter)
        ],
        inbox=[
            Waiting(f"{row.workflow}/{row.instance}", known_as(row.message_id), row.position, row.type, row.body)
            for row in database.waiting
            if row.workflow in workflows
        ],
        outbox=[
            Owed(str(named[key.instance]), key.version, output.row.kind, output.due_us, output.attempts)
            for key, output in database.owed
            if judged(output.ref)
        ],
        asked=[asked for asked in world.clients.asked if asked.to.partition("/")[0] in workflows],
        effects=[line for line in world.outside.lines if _workflow_of(line) in workflows],
        samples=[],
        payments=list(database.payments),
    )


def _workflow_of(line: dict[str, Any]) -> str:
    key: str = line.get("call") or line.get("effect") or line["failed"]
    return key.partition("/")[0]
