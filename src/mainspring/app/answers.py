"""Answers from elsewhere: the result of a command that another service carried out, when it comes later, and by itself.

It names the command by `causationid` and the instance that sent it by `instance`. Its id follows from the command's, so
that it counts once however often it comes. Whether it came already as the answer to the call itself is looked up on
both ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mainspring.app.arrivals import Arrivals
from mainspring.app.internals import internals_of
from mainspring.codec.wire import WireEnvelope
from mainspring.core.messages import Kind
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.pending import ReceiptStatus
from mainspring.engine.recording.answered_commands import is_version
from mainspring.engine.recording.event_rows import answer_id
from mainspring.engine.recording.stored_values import instance_id, read_context
from mainspring.engine.registry import is_internal
from mainspring.errors import OperationError, shown
from mainspring.port.records import FAN_OUT, EventRow, InputRow, Ref
from mainspring.port.store import Store

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring

EVENTS_LOOKED_AT: Final = 1_000
INPUTS_LOOKED_AT: Final = 1_000


async def take_envelope(
    app: Mainspring, arrivals: Arrivals, envelope: WireEnvelope
) -> list[tuple[str, ReceiptStatus, str]]:
    """Take a message of another service, durably. Return to which instances it went, what became of it, and its id."""
    id = envelope.message_id
    if envelope.kind == Kind.RESULT and envelope.instance is not None:
        command = command_of(envelope)
        id = answer_id(*command, Kind.RESULT)
        if await is_answered(internals_of(app).engine.store, *command):
            return [(envelope.instance, "duplicate", id)]
    arrival = arrivals.arrival(envelope, id)
    outcomes = await internals_of(app).engine.intake.each_answered(arrival.inputs)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return [
        (str(pending.ref), outcome, id)
        for pending, outcome in zip(arrival.inputs, outcomes, strict=True)
        if not isinstance(outcome, Exception)
    ]


def command_of(envelope: WireEnvelope) -> tuple[Ref, int]:
    """Return the command that a result answers: the instance that sent it, and the version at which it did.

    >>> result = {"id": "7", "type": "CardCharged", "data": b"{}", "kind": "result", "instance": "Orders/o-1"}
    >>> command_of(WireEnvelope(**result, causation_id="Orders/o-1/3"))
    (Ref(workflow='Orders', id='o-1'), 3)
    """
    instance, (_, slash, version) = envelope.instance or "", (envelope.causation_id or "").rpartition("/")
    if not slash or not is_version(version) or envelope.causation_id != f"{instance}/{version}":
        raise OperationError(
            "A result",
            f"answers {shown(envelope.causation_id, 200)}, which is no command of {shown(instance, 200)}",
            "Give the command's id as causationid, and its sender as instance.",
        )
    named = instance_id(instance)
    return Ref(named.workflow, named.id), int(version)


def id_of_arrival(envelope: WireEnvelope, own: str) -> str:
    """Return the id under which a message is taken that came with an id of its `own`.

    The result of a command has one that follows from the command's: however its sender names it, it counts once.

    >>> from msgspec.structs import replace
    >>> result = WireEnvelope(id="7", type="Paid", data=b"{}", kind="result", instance="Orders/o-1")
    >>> id_of_arrival(result, "/bank#7"), id_of_arrival(replace(result, causation_id="Orders/o-1/3"), "/bank#7")
    ('/bank#7', 'Orders/o-1/3/1')
    """
    if envelope.kind != Kind.RESULT or envelope.instance is None:
        return own
    try:
        return answer_id(*command_of(envelope), Kind.RESULT)
    except OperationError:
        return own  # it answers nothing that is known here, as in a fan-out


async def is_answered(store: Store, ref: Ref, version: int) -> bool:
    """Return True if the command that an instance sent at a version has its result, in the stream or waiting for it.

    An answer that a reset left behind is none any more.
    """
    waiting = await store.inbox(ref, INPUTS_LOOKED_AT)
    rows = live(await store.stream(ref, version, EVENTS_LOOKED_AT))
    return any(_answers(row, ref, version) for row in (*waiting, *rows))


def sender_of(instance: str) -> str | None:
    """Return the instance that others may answer to; None where there is none, as of what an app itself publishes.

    >>> sender_of("Orders/o-1"), sender_of("mainspring.FanOut/Orders/o-1/3"), sender_of("mainspring.Publication/e-1")
    ('Orders/o-1', 'Orders/o-1', None)
    """
    if instance.startswith(f"{FAN_OUT}/"):
        return instance.removeprefix(f"{FAN_OUT}/").rpartition("/")[0]
    return None if is_internal(instance) else instance


def _answers(row: EventRow | InputRow, ref: Ref, version: int) -> bool:
    """Return True if a row is the result of a command: of the call itself, or one that came later, by whatever way."""
    if row.kind == Kind.RESULT:
        return row.cause == version
    return (
        row.kind == Kind.REPLY
        and row.context is not None
        and read_context(row.context).causation_id == f"{ref}/{version}"
    )
