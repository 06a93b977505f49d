"""Claiming work, and bringing dead letters back to life."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.errors import DamagedRecordError
from mainspring.logs import logger
from mainspring.port.leaving import Leaves
from mainspring.port.records import Claims, InputRow, OutputClaim
from mainspring.port.suspects import Alone, Suspect
from mainspring.stores.commit.rows import read_input, read_output
from mainspring.stores.postgres.session import Row
from mainspring.stores.postgres.statements import name_of
from mainspring.stores.postgres.transaction import Transaction

# The owner of what is damaged: it is delivered to nobody, and does not stop others from being claimed.
NOBODY = 0

_log = logger(__name__)


async def claim(
    transaction: Transaction,
    worker: int,
    destinations: Sequence[str],
    workflows: Sequence[str],
    limit: int,
    now_us: int,
    leaves: Leaves,
) -> Claims:
    """Take due outputs and waiting inputs for a worker, if it is still known."""
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
            _log.error("set aside, restore it and free it again: %s", error)
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
            _log.error("set aside, restore it and free it again: %s", error)
            damaged.add(name)
            aside.append((name, row[0], NOBODY))
    if aside:
        await transaction.rows("set_inputs_aside", *zip(*aside, strict=True))
    return inputs


async def claim_alone(transaction: Transaction, worker: int, suspect: Suspect | None) -> Alone | None:
    """Take something that was set aside, if the worker is still known."""
    if await transaction.value("hold_worker", worker) is None:
        return None
    await transaction.rows("try_alone", worker, None)
    if suspect is None:
        return None
    an_input, name = suspect.position is not None, name_of(suspect.workflow, suspect.instance)
    where = ("input_alone", name, suspect.position) if an_input else ("output_alone", name, suspect.version)
    found = await transaction.rows(*where)
    if not found:
        return None
    *spot, lost = found[0]
    own = "own_input" if an_input else "own_output"
    owned = await transaction.rows(own, *spot, worker)
    try:
        if an_input:
            taken = Alone(lost, input=read_input(owned[0]))
        else:
            (row,) = await transaction.rows("outputs", [spot[0]], [spot[1]])
            taken = Alone(lost, output=read_output(row))
    except DamagedRecordError as error:
        _log.error("set aside, restore it and free it again: %s", error)
        await transaction.rows(own, *spot, NOBODY)
        return None
    await transaction.rows("try_alone", worker, str(spot[1]) if an_input else "/".join(map(str, spot)))
    return taken


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
