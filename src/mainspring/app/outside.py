"""Messages from outside: JSON that is read with the app's own types, and goes its way with a mark."""

from __future__ import annotations

import asyncio
import difflib
from typing import TYPE_CHECKING, Any

from mainspring.app.instance import Receipt
from mainspring.app.internals import Internals, internals_of
from mainspring.core.messages import MessageType, type_of
from mainspring.engine.registry import is_internal
from mainspring.errors import WiringError

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring


def read_message(app: Mainspring, type_name: str, body: bytes) -> Any:
    """Return the message that a type's name and some JSON make, or say what is wrong with either.

    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> read_message(app, "Count", b'{"counter": "c-1"}')
    Count(counter='c-1')
    >>> read_message(app, "Cuont", b"{}")
    Traceback (most recent call last):
    mainspring.errors.running.WiringError: No workflow takes Cuont. Did you mean Count?
    """
    inputs = inputs_of(app)
    declared = inputs.get(type_name)
    if declared is None:
        close = difflib.get_close_matches(type_name, inputs, n=1)
        advice = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(sorted(inputs)) or 'none'}."
        raise WiringError(f"No workflow takes {type_name}", advice)
    return internals_of(app).registry.codec.decode_outside(declared.name, declared.version, body)


async def send_outside(
    internals: Internals,
    message: Any,
    *,
    id: str | None,
    actor: str | None,
    must_exist: bool = False,
    expected_position: int | None = None,
    workflow: str | None = None,
) -> Receipt[Any]:
    """Send what comes from outside, if its workflow takes it from there, and return when it is durable."""
    pending = await internals.engine.intake.send(
        message,
        id=id,
        actor=actor,
        must_exist=must_exist,
        expected_position=expected_position,
        workflow=workflow,
        outside=True,
    )
    return Receipt(internals, pending)


async def publish_outside(
    internals: Internals, message: Any, *, id: str | None, actor: str | None
) -> list[Receipt[Any]]:
    """Publish what comes from outside, if all take it from there, and return when it is durable."""
    intake = internals.engine.intake
    wanted = intake.published(message, id=id, actor=actor, outside=True)
    await asyncio.gather(*(intake.answered(pending) for pending in wanted))
    return [Receipt(internals, pending) for pending in wanted]


def inputs_of(app: Mainspring) -> dict[str, MessageType]:
    """Return what workflows take, by name; a former name will do."""
    found: dict[str, MessageType] = {}
    for entry in internals_of(app).registry.entries():
        for cls in () if is_internal(entry.name) else entry.definition.inputs:
            declared = type_of(cls)
            found.update(dict.fromkeys((declared.name, *declared.aliases), declared))
    return found
