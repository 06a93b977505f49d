"""Pauses: a handler or a workflow of which nothing more is begun, in all workers, until it is resumed."""

from __future__ import annotations

from typing import Any, Final, cast

from mainspring.app.given import checked_reason, checked_text
from mainspring.app.internals import Internals
from mainspring.core.definition import definition_of
from mainspring.core.messages import type_of
from mainspring.core.workflow import Workflow
from mainspring.engine.inputs.senders import checked_actor
from mainspring.engine.operations.known_pauses import pauses_of
from mainspring.engine.operations.pauses import Pausable, Pause, PauseWork, ResumeWork
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import is_internal
from mainspring.errors import NoSuchNameError, OperationError
from mainspring.port.store import Store
from mainspring.views import PauseInfo

BY_AN_OPERATOR: Final = "by an operator"
COMMANDS_COUNTED: Final = 1_000
"""How many waiting commands are searched for those of paused handlers."""


class Pauses:
    """What is paused for all workers: handlers, by their messages, and workflows.

    >>> import asyncio
    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> async def main() -> None:
    ...     async with app:
    ...         await app.pauses.pause(Counter, "we count anew", actor="ann")
    ...         print((await app.send(Count("c-1"))).status)
    ...         await app.pauses.resume(Counter)
    >>> asyncio.run(main())
    accepted
    """

    def __init__(self, internals: Internals) -> None:
        self._internals = internals

    async def pause(self, what: type[Any] | str, reason: str = BY_AN_OPERATOR, *, actor: str | None = None) -> None:
        """Pause a handler or a workflow in all workers. What comes waits, and nothing is lost.

        `what` is the type that the handler takes, or the workflow's class; or a name, as `Charge` or `handler:Charge`.
        This process knows at once, every other one within two seconds. What runs already is finished. It returns when
        it is recorded, whether or not a worker runs, and raises an error where it cannot be.
        """
        kind, name = self._known(what)
        reason = checked_reason(reason).strip() or BY_AN_OPERATOR
        now = moment(self._internals.engine.store.now_us())
        await self._tell(PauseWork(Pause(kind, name, reason, checked_actor(actor), now)), actor)

    async def resume(self, what: type[Any] | str, *, actor: str | None = None) -> bool:
        """Resume it, also what only another release knows. False: it was not paused, and nothing was recorded."""
        names = self._names(what)
        paused = [pause for pause in await pauses_of(self._internals.engine.store) if names & {pause.name, pause.what}]
        kind, name = (paused[0].kind, paused[0].name) if len(paused) == 1 else self._known(what)
        return await self._tell(ResumeWork(kind, name), actor)

    def pausable(self) -> list[tuple[Pausable, str]]:
        """Return the handlers and workflows of this app, sorted, by their names."""
        registry = self._internals.registry
        workflows = (name for name in registry.workflows if not is_internal(name))
        found: list[tuple[Pausable, str]] = [("handler", name) for name in sorted(registry.handlers)]
        return found + [("workflow", name) for name in sorted(workflows)]

    # Below `pausable`: behind it, `list` in an annotation means this method.
    async def list(self) -> list[PauseInfo]:
        """Return what is paused, in the order in which it was."""
        store = self._internals.engine.store
        return await with_waiting(store, await pauses_of(store))

    def _names(self, what: type[Any] | str) -> set[str]:
        """Return the names under which something may be paused: a message that was renamed has former ones too."""
        named, handlers = _named(what) if isinstance(what, type) else what, self._internals.registry.handlers
        types = [(name, type_of(handlers[name].message_type)) for name in handlers]
        former = {alias for name, own in types if named in (name, f"handler:{name}") for alias in own.aliases}
        return {named, *(f"handler:{alias}" for alias in former)}

    def _known(self, what: type[Any] | str) -> tuple[Pausable, str]:
        """Return which handler or workflow is meant, or say which there are."""
        named, pausable = _named(what) if isinstance(what, type) else checked_text("what", what), self.pausable()
        found = [each for each in pausable if named in (each[1], f"{each[0]}:{each[1]}")]
        if len(found) == 1:
            return found[0]
        if found:
            raise OperationError(named, "is a handler and a workflow", f"Say handler:{named} or workflow:{named}.")
        known = ", ".join(f"{kind}:{name}" for kind, name in pausable) or "none"
        raise NoSuchNameError(named, "is no handler or workflow that can be paused", f"This app has {known}.")

    async def _tell(self, order: PauseWork | ResumeWork, actor: str | None) -> bool:
        told = await self._internals.engine.orders.give(order, checked_actor(actor))
        await self._internals.engine.look_at_pauses()
        return told


async def with_waiting(store: Store, pauses: tuple[Pause, ...]) -> list[PauseInfo]:
    """Return pauses with how many messages wait for what is paused."""
    if not pauses:
        return []
    outputs = await store.outputs(None, timers=False, limit=COMMANDS_COUNTED)
    inputs = await store.waiting(store.now_us() + 1)
    found: list[PauseInfo] = []
    for pause in pauses:
        if pause.kind == "handler":
            count, more = sum(claim.type == pause.name for claim in outputs), len(outputs) == COMMANDS_COUNTED
        else:
            count, more = sum(one.count for one in inputs if one.workflow == pause.name), False
        found.append(PauseInfo(pause.what, pause.kind, pause.name, pause.reason, pause.actor, pause.since, count, more))
    return found


def _named(cls: type[Any]) -> str:
    if issubclass(cls, Workflow):
        return f"workflow:{definition_of(cast('type[Workflow[Any, Any, Any]]', cls)).name}"
    return f"handler:{type_of(cls).name}"
