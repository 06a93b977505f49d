"""Delivered outputs: what an instance asked for, as the input that it becomes, of another instance or its own."""

from __future__ import annotations

from typing import Any

from mainspring.codec import Codec, Encoded
from mainspring.core.failures import ChildCompleted, ChildFailed
from mainspring.core.messages import Kind
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.publication import PUBLICATION
from mainspring.engine.recording.children import Parent, parent_at
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.event_rows import answer_id
from mainspring.engine.recording.fan_out_parts import PartDone, stored
from mainspring.engine.recording.stored_values import read_context
from mainspring.port.ids import MARK
from mainspring.port.records import FAN_OUT, Context, OutputClaim, OutputKey, Ref


def input_of(claim: OutputClaim, message: Any, ref: Ref, kind: Kind, time_us: int) -> Pending:
    """Return an output of one instance as the input of another; its step settles it."""
    own = f"{claim.workflow}/{claim.instance}"
    context = read_context(claim.context)
    # What an author's workflow sends is its own word; a publication only hands on what came.
    outside = context.outside and claim.workflow == PUBLICATION
    return Pending(
        ref=ref,
        message=message,
        type=claim.type,
        type_version=claim.type_version,
        body=claim.body,
        id=f"{own}/{claim.output.version}",
        kind=kind,
        context=Context(context.correlation_id, context.causation_id, own, None, context.trace, outside=outside),
        time_us=time_us,
        mark=MARK,
        settles=claim.output,
    )


def fired(claim: OutputClaim, message: Any, now_us: int) -> Pending:
    """Return a timer that is due as the input that it becomes."""
    ref, context = Ref(claim.workflow, claim.instance), read_context(claim.context)
    return Pending(
        ref=ref,
        message=message,
        type=claim.type,
        type_version=claim.type_version,
        body=claim.body,
        id=answer_id(ref, claim.output.version, Kind.TIMER),
        kind=Kind.TIMER,
        # It has no sender, so a Reply to it goes to the sender that began the instance.
        context=Context(context.correlation_id, context.causation_id, None, None, context.trace),
        time_us=now_us,
        mark=MARK,
        cause=claim.output.version,
        settles=claim.output,
        timer_key=read_detail(claim.detail).key,
    )


def child_end(
    codec: Codec,
    parent: str,
    said: ChildCompleted | ChildFailed | Encoded,
    context: Context,
    time_us: int,
    settles: OutputKey | None = None,
) -> Pending:
    """Return how a child ended as an input of its parent: its own result, or what happened to it."""
    to = parent_at(parent)
    message, encoded = _as_message(codec, to, said)
    return Pending(
        ref=to.ref,
        message=message,
        type=encoded.name,
        type_version=encoded.version,
        body=encoded.body,
        id=answer_id(to.ref, to.version, Kind.RESULT),
        kind=Kind.RESULT,
        # It has no sender to reply to: a Reply to it goes to the sender that began the parent.
        context=Context(context.correlation_id, context.causation_id, None, None, context.trace),
        time_us=time_us,
        mark=MARK,
        cause=to.version,
        settles=settles,
    )


def _as_message(codec: Codec, to: Parent, said: ChildCompleted | ChildFailed | Encoded) -> tuple[object, Encoded]:
    if to.ref.workflow == FAN_OUT:
        part = PartDone(
            (stored(said),) if isinstance(said, Encoded) else (), said if isinstance(said, ChildFailed) else None
        )
        return part, codec.encode(part)
    if isinstance(said, Encoded):
        return codec.decode(said.name, said.version, said.body), said
    return said, codec.encode(said)
