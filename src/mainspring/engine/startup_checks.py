"""Wiring errors, found before the first message: a sent type that has no taker, or more than one."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from typing import Any, Final

from mainspring.core.decisions import Complete, Publish, Reply, Send, StartChild
from mainspring.core.messages import type_of
from mainspring.engine.handlers.handler import check_process
from mainspring.engine.inputs.publication import PUBLICATION
from mainspring.engine.operations.pauses import PAUSES
from mainspring.engine.registry import Registry, WorkflowEntry, is_internal
from mainspring.errors import WiringError
from mainspring.flows.flow import flow_of
from mainspring.logs import logger
from mainspring.port.records import FAN_OUT
from mainspring.port.store import Store
from mainspring.sources import class_calls

_UNSENT: Final = (Publish, Reply, Complete)

log = logger("mainspring.engine")


def check_store(registry: Registry, store: Store) -> None:
    """Raise for what this store cannot do."""
    for handler in registry.handlers.values():
        if handler.options.transaction is not None and not store.lends:
            raise WiringError(
                f"{handler.name} asks for its result's transaction, and there is no database in memory",
                "Use a sqlite:/// or postgresql:// URL.",
            )
    for projection in registry.projections.values():
        if not projection.kept and not store.lends:
            raise WiringError(
                f"The projection {projection.name} writes to tables of its own, and there is no database in memory",
                "Use a sqlite:/// or postgresql:// URL, or give it a key: mainspring keeps its documents anywhere.",
            )


def check_wiring(registry: Registry, pools: Iterable[str] | None = None) -> None:
    """Raise a WiringError that names every message which a workflow sends and that has no taker, or more than one.

    A worker that serves some pools only is not asked whether it has a taker: others may have the rest.
    """
    _check_somebody_sends(registry)
    _check_one_takes(registry)
    _check_projections(registry)
    for handler in registry.handlers.values():
        if handler.in_process:
            check_process(handler)
    if pools is not None:
        return
    missing = dict.fromkeys(
        f"{name} (sent by {entry.name})"
        for entry in registry.entries()
        for name in sorted(_sent_by(entry))
        if not registry.knows(name) and name not in registry.external
    )
    if missing:
        raise WiringError(
            f"Nothing takes {', '.join(missing)}",
            "Register a handler with @app.handler, add the workflow that takes it, "
            "or say app.external(…) if another process does.",
        )
    for entry in registry.entries():
        _warn_of_doubtful(registry, entry)


def _check_somebody_sends(registry: Registry) -> None:
    """A handler's answer is taken by the instance that asked, so a worker must know that one's workflow."""
    if registry.handlers and not set(registry.workflows) - {PUBLICATION, FAN_OUT, PAUSES}:
        raise WiringError(
            f"This app has handlers and no workflow: nothing sends {', '.join(sorted(registry.handlers))}",
            "Add the workflow that sends it, with app.add(…): its instances take the handler's answer.",
        )


def _check_projections(registry: Registry) -> None:
    for projection in registry.projections.values():
        if missing := sorted((projection.workflows or frozenset()) - set(registry.workflows)):
            raise WiringError(
                f"The projection {projection.name} follows {', '.join(missing)}, which is no part of this app",
                "Add the workflow with app.add(…), or correct its name.",
            )
        followed = (registry.workflows[name] for name in sorted(projection.workflows or ()))
        if unkept := [entry.name for entry in followed if entry.definition.history == "state"]:
            raise WiringError(
                f"The projection {projection.name} follows {', '.join(unkept)}, whose history is not kept",
                "Search by its attributes instead, publish what others want to know, or keep the history.",
            )


def _check_one_takes(registry: Registry) -> None:
    for entry in registry.entries():
        sent = _sent_by(entry)
        for cls, name in entry.definition.outputs.items():
            takers = [f"the workflow {taker.name}" for taker in registry.takers_of(cls)]
            handler = registry.handlers.get(name)
            if handler is not None:
                # Whatever the source shows: a handler is there for what is sent, so it is meant to be sent.
                takers.append(f"the handler {handler.name}")
            if len(takers) > 1 and (handler is not None or name in sent):
                raise WiringError(
                    f"{name}, which {entry.name} sends, is taken by {' and '.join(takers)}",
                    "A sent message goes to exactly one: remove the others, or publish it, so that each gets it.",
                )


def _warn_of_doubtful(registry: Registry, entry: WorkflowEntry) -> None:
    """Warn of outputs that are perhaps sent, in a way that the source does not show, and that have no taker here."""
    cls, outputs = type(entry.workflow), entry.definition.outputs
    if is_internal(entry.name) or not any(map(_is_read, cls.__mro__)):
        return
    unsent = {name for base in cls.__mro__ for name in _placed(base, outputs, _UNSENT)}
    if flow_of(entry.workflow) is not None:
        unsent |= {outputs[result] for result in entry.definition.results if result in outputs}
    for name in sorted({*outputs.values()} - unsent):
        taken = name in registry.handlers or name in registry.subscribers or registry.knows(name)
        if not taken and name not in registry.external:
            log.info("%s declares the output %s, which nothing here takes: if it is sent, it waits", entry.name, name)


def _sent_by(entry: WorkflowEntry) -> set[str]:
    """Return what the source shows; that of our own workflows shows nothing, and each app has classes of its own."""
    return set() if is_internal(entry.name) else sent_types(type(entry.workflow), entry.definition.outputs)


def sent_types(cls: type[Any], outputs: dict[type[Any], str]) -> set[str]:
    """Return the names of those outputs that a `Send(…)` or `StartChild(…)` holds in the source, as far as can be seen.

    >>> from mainspring.testing.samples import Counter
    >>> sent_types(Counter, {})
    set()
    """
    return _placed(cls, outputs, (Send, StartChild))


def _placed(cls: type[Any], outputs: dict[type[Any], str], decisions: tuple[type[Any], ...]) -> set[str]:
    """Return the names of the outputs that are made inside one of these decisions."""
    module = sys.modules.get(cls.__module__)
    namespace = {} if module is None else vars(module)
    placed: set[str] = set()
    for node in _calls(cls):
        if _resolved(node.func, namespace) not in decisions:
            continue
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            target = _resolved(argument.func, namespace) if isinstance(argument, ast.Call) else None
            if isinstance(target, type) and target in outputs:
                placed.add(type_of(target).name)
    return placed


def _is_read(cls: type[Any]) -> bool:
    return cls.__module__.partition(".")[0] not in ("builtins", "typing") and class_calls(cls) is not None


def _calls(cls: type[Any]) -> list[ast.Call]:
    return (class_calls(cls) or []) if _is_read(cls) else []


def _resolved(node: ast.expr, namespace: dict[str, Any]) -> Any:
    match node:
        case ast.Name(id):
            return namespace.get(id)
        case ast.Attribute(ast.Name(module), attribute):
            return getattr(namespace.get(module), attribute, None)
        case _:
            return None
