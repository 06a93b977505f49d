"""Claiming work, and restoring dead letters."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.errors import DamagedRecordError
from mainspring.port.records import Claims, InputRow, Leaves, OutputClaim
from mainspring.stores.commit.rows import read_input, read_output
from mainspring.stores.postgres.session import Row
from mainspring.stores.postgres.statements import name_of
from mainspring.stores.postgres.transaction import Transaction
from mainspring.stores.sql.work import NO_WORKER, log_aside


async def claim(
    transaction: Transaction,
    worker: int,
    destinations: Sequence[str],
    workflows: Sequence[str],
    limit: int,
    now_us: int,
    leaves: Leaves,
) -> Claims:
    """Claim due outputs and waiting inputs for a worker, if it is still registered."""
    if await transaction.value("hold_worker", worker) is None:
        return Claims([], [], None)
    outputs = await _claim_outputs(transaction, worker, destinations, limit, now_us) if destinations else []
    inputs = await _claim_inputs(transaction, worker, workflows, limit, leaves) if workflows else []
    ((next_due_us, *_, posted, transaction.xid),) = await transaction.rows("next_due", destinations, (), worker)
    return Claims(outputs, inputs, next_due_us, posted)


async def _claim_outputs(
    transaction: Transaction, worker: int, destinations: Sequence[str], limit: int, now_us: int
) -> list[OutputClaim]:
    claims: list[OutputClaim] = []
    damaged: list[Row] = []
    for row in await transaction.rows("claim_outputs", worker, destinations, now_us, limit):
        try:
            claims.append(read_output(row))
        except DamagedRecordError as error:
            log_aside(error)
            damaged.append(row)
    if damaged:
        await transaction.rows("set_outputs_aside", [row[0] for row in damaged], [row[1] for row in damaged])
    return claims


async def _claim_inputs(
    transaction: Transaction, worker: int, workflows: Sequence[str], limit: int, leaves: Leaves
) -> list[InputRow]:
    types = [type for type, _ in leaves.types] or None
    versions = [version for _, version in leaves.types] or None
    names = [name_of(ref.workflow, ref.id) for ref in leaves.instances] or None
    inputs: list[InputRow] = []
    damaged: set[bytes] = set()
    aside: list[tuple[bytes, int, int | None]] = []
    wanted = list(dict.fromkeys(workflows))
    for row in await transaction.rows("claim_inputs", worker, wanted, limit, types, versions, names):
        name: bytes = row[-1]
        if name in damaged:
            aside.append((name, row[0], None))  # what stands behind a damaged input waits for it
            continue
        try:
            inputs.append(read_input(row[:-1]))
        except DamagedRecordError as error:
            log_aside(error)
            damaged.add(name)
            aside.append((name, row[0], NO_WORKER))
    if aside:
        await transaction.rows("set_inputs_aside", *zip(*aside, strict=True))
    return inputs


async def restore_output(
    transaction: Transaction, dead_letter: int, expected_version: int | None, now_us: int | None
) -> bool:
    """Make a dead letter the output again that it was."""
    if expected_version is not None:
        held = await transaction.rows("hold_instance", dead_letter)
        if not held or held[0][0] != expected_version:
            return False
    found = await transaction.rows("dead_output", dead_letter)
    if not found:
        return False
    transaction.xid = await transaction.value("restore_output", *found[0], now_us)
    await transaction.rows("delete_dead_letters", [dead_letter])
    return True
