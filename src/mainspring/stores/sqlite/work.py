"""Claiming work, and restoring dead letters, in transactions."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from mainspring.errors import DamagedRecordError
from mainspring.port.records import Claims, InputRow, Leaves, OutputClaim
from mainspring.stores.commit.facts import Spot
from mainspring.stores.commit.rows import output_checksum, read_input
from mainspring.stores.sql.dialect import packed
from mainspring.stores.sql.work import NO_WORKER, log_aside
from mainspring.stores.sqlite.outputs import checked_output, spot_of
from mainspring.stores.sqlite.statements import change, rows, scalar
from mainspring.stores.sqlite.transaction import Transaction


def claim(
    transaction: Transaction,
    worker: int,
    destinations: Sequence[str],
    workflows: Sequence[str],
    limit: int,
    leaves: Leaves,
) -> Claims:
    """Claim due outputs and waiting inputs for a worker, if it is still registered."""
    connection = transaction.connection
    if not rows(connection, "hold_worker", worker):
        return Claims([], [], None)
    wanted = packed(destinations)
    outputs = _claim_outputs(transaction, worker, wanted, limit) if destinations else []
    inputs = _claim_inputs(connection, worker, packed(workflows), limit, leaves) if workflows else []
    next_due_us: int | None = scalar(connection, "next_due", wanted) if destinations else None
    return Claims(outputs, inputs, next_due_us)


def _claim_outputs(transaction: Transaction, worker: int, destinations: str, limit: int) -> list[OutputClaim]:
    connection = transaction.connection
    spots = rows(connection, "claimable_outputs", destinations, transaction.now_us, limit)
    if not spots:
        return []
    claims: list[OutputClaim] = []
    damaged: list[Spot] = []
    for row in rows(connection, "outputs", packed(spots)):
        try:
            claims.append(checked_output(row))
        except DamagedRecordError as error:
            log_aside(error)
            damaged.append(spot_of(row))
    change(connection, "own_outputs", packed([spot for spot in spots if spot not in damaged]), worker)
    if damaged:
        change(connection, "own_outputs", packed(damaged), NO_WORKER)
    return claims


def _claim_inputs(
    connection: apsw.Connection, worker: int, workflows: str, limit: int, leaves: Leaves
) -> list[InputRow]:
    types = packed(leaves.types) if leaves.types else None
    instances = packed([(ref.workflow, ref.id) for ref in leaves.instances]) if leaves.instances else None
    inputs: list[InputRow] = []
    damaged: dict[tuple[str, str], int] = {}
    for row in rows(connection, "claimable_inputs", workflows, worker, limit, types, instances):
        name = (row[1], row[2])
        if name in damaged:
            continue  # what stands behind a damaged input waits for it
        try:
            inputs.append(read_input(row))
        except DamagedRecordError as error:
            log_aside(error)
            damaged[name] = row[0]
    if inputs:
        change(connection, "own_inputs", packed([row.position for row in inputs]), worker)
    if damaged:
        change(connection, "own_inputs", packed(list(damaged.values())), NO_WORKER)
    return inputs


def restore_output(transaction: Transaction, dead_letter: int, expected_version: int | None) -> bool:
    """Make a dead letter the output again that it was."""
    connection = transaction.connection
    found = rows(connection, "dead_output", dead_letter, expected_version)
    if not found:
        return False
    instance, version, kind, destination, priority, key = found[0]
    checksum = output_checksum(instance, version, kind, destination, transaction.now_us, priority, key, 0)
    values = (instance, version, kind, destination, transaction.now_us, priority, key, None, 0, None, checksum)
    change(connection, "insert_outputs", *values)
    change(connection, "delete_dead_letters", packed([dead_letter]))
    transaction.news = True
    return True
