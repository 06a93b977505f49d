"""Envelopes: a message from outside gets an id, a context and the instance that it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypedDict

from mainspring.core.messages import Kind
from mainspring.engine.inputs.outside_rule import check_outside
from mainspring.engine.inputs.pending import Answer, Pending
from mainspring.engine.inputs.publication import PUBLICATION
from mainspring.engine.inputs.refusals import precondition
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.engine.runtime import Runtime
from mainspring.errors import InvalidIdError, OperationError, WiringError, shown
from mainspring.port.records import Context, Ref

MESSAGE_ID_CHARACTERS: Final = 1_000
ACTOR_CHARACTERS: Final = 1_000
# The ideographic space, and the zero-width joiner and non-joiner.
NAME_JOINERS: Final = "\u3000\u200c\u200d"


class AboutSent(TypedDict, total=False):
    """What may be said of a message that is sent, besides the message."""

    id: str | None
    actor: str | None
    correlation_id: str | None
    must_exist: bool
    expected_position: int | None
    workflow: str | type[Any] | None
    outside: bool


class Envelopes:
    """Makes inputs of messages from outside. It needs no store: a process that only posts has none open."""

    def __init__(self, registry: Registry, runtime: Runtime, now_us: Callable[[], int]) -> None:
        self._registry = registry
        self._runtime = runtime
        self._now_us = now_us
        self._observer = runtime.observer

    def envelop(
        self,
        message: Any,
        entry: WorkflowEntry,
        *,
        id: str | None = None,
        kind: Kind = Kind.COMMAND,
        actor: str | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        instance: str | None = None,
        trace: str | None = None,
        outside: bool = False,
    ) -> Pending | None:
        """Return a message as an input of a workflow's instance; None if its route skips it.

        `trace` is what it carries from where it comes from, as `mainspring.telemetry.w3c` writes it. `outside` says
        that it is not the app's own code that sends it: see `mainspring.engine.inputs.outside_rule`.
        """
        instance = entry.route(message) if instance is None else instance
        if instance is None:
            return None
        checked_actor(actor)
        if correlation_id is not None:
            checked_message_id(correlation_id, "Correlation id")
        encoded = self._registry.codec.encode(message)
        message_id = self._runtime.new_id() if id is None else checked_message_id(id)
        pending = Pending(
            Ref(entry.name, instance),
            message,
            encoded.name,
            encoded.version,
            encoded.body,
            message_id,
            kind,
            Context(correlation_id or message_id, None, None, reply_to, trace, outside=outside),
            self._now_us(),
            actor=actor,
            answer=Answer(),
        )
        if self._observer is not None:
            self._observer.sending(pending)
        return pending

    def handed_over(self, pendings: list[Pending]) -> None:
        """Note that no caller here waits for inputs: they are part of a caller's transaction, and taken in later."""
        if self._observer is not None:
            for pending in pendings:
                self._observer.handed_over(pending)

    def taker(self, message: Any, workflow: str | type[Any] | None = None) -> WorkflowEntry:
        """Return the one workflow that a sent message goes to: the one that is named, where several take it."""
        takers = self._registry.takers(message)
        name = type(message).__name__
        if workflow is not None:
            return _named(takers, name, workflow)
        if not takers:
            known = ", ".join(self._registry.workflows) or "none"
            raise WiringError(
                f"No workflow takes {name}", f"Add a workflow that has it among its inputs; this app knows {known}."
            )
        if len(takers) > 1:
            raise WiringError(
                f"{name} is taken by several workflows: {', '.join(entry.name for entry in takers)}",
                "Name the one that is meant, as in workflow=…; or publish it, so that each of them gets it.",
            )
        return takers[0]

    def sent(
        self,
        message: Any,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        must_exist: bool = False,
        expected_position: int | None = None,
        workflow: str | type[Any] | None = None,
        outside: bool = False,
    ) -> Pending:
        """Return a sent message as the input of the one workflow that takes it, or of the one that is named."""
        taker = self.taker(message, workflow)
        if outside:
            check_outside((taker,), message)
        pending = self.envelop(
            message,
            taker,
            id=id,
            actor=actor,
            correlation_id=correlation_id,
            reply_to=reply_to,
            outside=outside,
        )
        if pending is None:
            raise OperationError(type(message).__name__, "was skipped: route returned None", "Send it elsewhere.")
        if must_exist or expected_position is not None:
            pending.requires = precondition(must_exist=must_exist, expected_position=expected_position)
        return pending

    def published(
        self,
        message: Any,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation_id: str | None = None,
        outside: bool = False,
    ) -> list[Pending]:
        """Return a published message as inputs of all that want it.

        Where functions are among them, it is the one input of the publication that brings it to everybody.
        """
        own = self._runtime.new_id() if id is None else checked_message_id(id)
        registry = self._registry
        if outside:
            check_outside(registry.takers(message), message)
        if registry.has_subscribers(message):
            registry.add_publication()
            takers, instance = [registry.workflows[PUBLICATION]], own
        else:
            takers, instance = registry.takers(message), None
        found = (
            self.envelop(
                message,
                taker,
                id=own,
                kind=Kind.EVENT,
                actor=actor,
                correlation_id=correlation_id,
                instance=instance,
                outside=outside,
            )
            for taker in takers
        )
        return [pending for pending in found if pending is not None]


def _named(takers: list[WorkflowEntry], message: str, workflow: str | type[Any]) -> WorkflowEntry:
    """Return the one of several workflows that has a name, or whose class it is, in whatever version."""
    for entry in takers:
        if workflow == entry.name or any(type(version.workflow) is workflow for version in entry.versions):
            return entry
    name = workflow.__name__ if isinstance(workflow, type) else shown(workflow, 80)
    known = ", ".join(entry.name for entry in takers)
    raise WiringError(
        f"No workflow {name} takes {message}",
        f"It is taken by {known}." if known else "No workflow of this app takes it at all.",
    )


def checked_message_id(id: object, what: str = "Message id") -> str:
    """Return a message's id as it came, if it can be one.

    >>> checked_message_id("order-1")
    'order-1'
    """
    if not isinstance(id, str) or not 0 < len(id) <= MESSAGE_ID_CHARACTERS or not id.isprintable():
        raise InvalidIdError(
            id, "cannot be stored or shown safely", f"Use 1 to {MESSAGE_ID_CHARACTERS:,} visible characters.", what=what
        )
    return id


def is_name(text: object) -> bool:
    r"""Return True if a text can name a person: visible, and with what names of some languages are joined by.

    >>> is_name("山田\u3000太郎"), is_name("a\nb"), is_name("")
    (True, False, False)
    """
    if not isinstance(text, str) or not 0 < len(text) <= ACTOR_CHARACTERS:
        return False
    return text.isprintable() or all(c.isprintable() or c in NAME_JOINERS for c in text)


def checked_actor(actor: object) -> str | None:
    """Return who acts, if that can be recorded; None says that no actor was named.

    >>> checked_actor("ann")
    'ann'
    """
    if actor is None:
        return None
    if not isinstance(actor, str) or not is_name(actor):
        fix = f"Use 1 to {ACTOR_CHARACTERS:,} visible characters, or None."
        raise InvalidIdError(actor, "cannot be recorded", fix, what="Actor")
    return actor
