"""Arrivals: a message from another service, in its envelope, becomes inputs of instances here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from mainspring.app.internals import internals_of
from mainspring.app.outside import inputs_of
from mainspring.codec.wire import WireEnvelope
from mainspring.core.messages import Kind, MessageType, type_of
from mainspring.core.route import check_id
from mainspring.engine.inputs.outside_rule import check_outside
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.publication import PUBLICATION
from mainspring.engine.inputs.senders import checked_message_id
from mainspring.engine.recording.stored_values import instance_id
from mainspring.engine.registry import WorkflowEntry, is_internal
from mainspring.errors import WiringError, shown
from mainspring.port.records import Context
from mainspring.telemetry.w3c import trace_of

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring

# An answer to what an instance asked: taken, or kept, even when it has ended or does not listen for it.
_ANSWERS = {"reply": Kind.REPLY, "result": Kind.REPLY}


class Arrival(Struct, frozen=True):
    """A message that came, as the inputs that it becomes: none, if every route skips it."""

    inputs: tuple[Pending, ...]
    id: str


class Arrivals:
    """What may come in from outside, read with the app's own types.

    `types` are the names of those that may; None stands for all that workflows take or functions subscribed to. Made
    when the app runs: what it knows does not change any more.
    """

    def __init__(self, app: Mainspring, types: frozenset[str] | None = None) -> None:
        self._app = app
        self._known: dict[str, MessageType] = inputs_of(app)
        for handlers in internals_of(app).registry.subscribers.values():
            declared = type_of(handlers[0].message_type)
            self._known.update(dict.fromkeys((declared.name, *declared.aliases), declared))
        self._types = types

    def arrival(
        self, envelope: WireEnvelope, id: str, *, reply_to: str | None = None, patient: bool = False
    ) -> Arrival:
        """Return a message as inputs, or raise why it cannot be one. What is `patient` waits for a store in trouble."""
        message = self.message(envelope)
        checked_message_id(id)
        correlation_id = checked_message_id(envelope.correlation_id or id, "Correlation id")
        made = self._inputs(message, envelope, id)
        for pending in made:
            # The sender is an instance of another service, which cannot be replied to as to one of ours.
            trace = pending.context.trace
            pending.context = Context(correlation_id, envelope.causation_id, None, reply_to, trace, outside=True)
            if pending.answer is not None:
                pending.answer.patient = patient
        return Arrival(tuple(made), id)

    def corrected(self, envelope: WireEnvelope, message: Any, actor: str | None) -> WireEnvelope:
        """Return an envelope with another message in it."""
        encoded = internals_of(self._app).registry.codec.encode(message)
        return replace(envelope, type=encoded.name, type_version=encoded.version, data=encoded.body, actor=actor)

    def message(self, envelope: WireEnvelope) -> Any:
        """Return the message in an envelope."""
        declared = self._known.get(envelope.type)
        if declared is None or (self._types is not None and declared.name not in self._types):
            known = sorted(self._known if self._types is None else self._types)
            raise WiringError(f"Nothing takes {envelope.type} here", f"There are: {', '.join(known) or 'none'}.")
        version = envelope.type_version or declared.version
        return internals_of(self._app).registry.codec.decode_outside(declared.name, version, envelope.data)

    def _inputs(self, message: Any, envelope: WireEnvelope, id: str) -> list[Pending]:
        if envelope.instance is not None:
            return [self._to_instance(message, envelope, id)]
        engine, registry = internals_of(self._app).engine, internals_of(self._app).registry
        subscribed = registry.has_subscribers(message)
        takers = registry.takers(message)
        check_outside(takers, message)
        if envelope.kind == "command" or (envelope.kind in _ANSWERS and len(takers) == 1):
            taker = engine.intake.taker(message)
            made = engine.intake.envelop(message, taker, id=id, actor=envelope.actor, trace=_trace(envelope))
            if made is None:
                raise WiringError(f"{envelope.type} was skipped: route returned None", "Send it elsewhere.")
            return [made]
        if subscribed:
            publication = registry.workflows[PUBLICATION]
            return self._published(message, [publication], envelope, id, instance=check_id(id))
        return self._published(message, takers, envelope, id)

    def _published(
        self, message: Any, takers: list[WorkflowEntry], envelope: WireEnvelope, id: str, instance: str | None = None
    ) -> list[Pending]:
        intake, actor, trace = internals_of(self._app).engine.intake, envelope.actor, _trace(envelope)
        made = [
            intake.envelop(message, taker, id=id, kind=Kind.EVENT, actor=actor, instance=instance, trace=trace)
            for taker in takers
        ]
        return [pending for pending in made if pending is not None]

    def _to_instance(self, message: Any, envelope: WireEnvelope, id: str) -> Pending:
        """Bring a message to the instance that it names, past route: the answer to what that one asked."""
        named = instance_id(envelope.instance or "")
        workflows = internals_of(self._app).registry.workflows
        entry = workflows.get(named.workflow)
        if entry is None or is_internal(named.workflow):
            known = ", ".join(name for name in workflows if not is_internal(name)) or "none"
            raise WiringError(f"There is no workflow {named.workflow} here", f"This app has: {known}.")
        if not any(type(message) in version.definition.inputs for version in entry.versions):
            raise WiringError(f"{entry.name} does not take {envelope.type}", "Add it to the workflow's inputs.")
        check_outside((entry,), message)
        kind = _ANSWERS.get(envelope.kind or "reply") or Kind(envelope.kind or "reply")
        id_there, trace = check_id(named.id), _trace(envelope)
        if any(type(message) in version.definition.begins for version in entry.versions):
            # It is no answer, whatever its envelope calls it: where there is an instance, `again` has the word.
            kind = Kind.EVENT if kind is Kind.EVENT else Kind.COMMAND
            if (own := entry.route(message)) != id_there:
                raise WiringError(
                    f"{envelope.type} begins {shown(own, 100)} by its route, and was sent to {shown(id_there, 100)}",
                    "Name no instance, or that one.",
                )
        made = internals_of(self._app).engine.intake.envelop(
            message, entry, id=id, kind=kind, actor=envelope.actor, instance=id_there, trace=trace
        )
        assert made is not None  # noqa: S101  with its instance given, no route can skip it
        return made


def _trace(envelope: WireEnvelope) -> str | None:
    return trace_of({"traceparent": envelope.traceparent or "", "tracestate": envelope.tracestate or ""})
