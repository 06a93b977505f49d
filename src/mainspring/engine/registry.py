"""What this process knows: workflows, handlers, subscribers, and where a message goes."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar, cast

from mainspring.codec import Codec
from mainspring.core.definition import Definition, definition_of
from mainspring.core.failures import ChildCompleted, ChildFailed, DeadlinePassed, Undone
from mainspring.core.messages import type_of
from mainspring.core.route import route
from mainspring.core.workflow import STEPS_PER_HOUR, Workflow
from mainspring.engine.handlers.handler import Handler, HandlerOptions
from mainspring.engine.handlers.policies.retry import Retry
from mainspring.engine.inputs.budget import Budget, checked_steps
from mainspring.engine.inputs.publication import PUBLICATION, publication_of
from mainspring.engine.operations.pauses import PAUSES, Pauses
from mainspring.engine.outputs.fan_out import fan_out_of
from mainspring.engine.projections.projection import Projection
from mainspring.engine.recording.destinations import places_of
from mainspring.engine.recording.fan_out_parts import PartDone, Parts
from mainspring.engine.recording.fingerprint import fingerprint_of
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.schedules.recurring import RECURRING
from mainspring.engine.watching.code_watch import Code, CodeWatch
from mainspring.errors import DecodeError, LeftError, RouteError, WiringError
from mainspring.port.attributes import AttributeRow, rows_of
from mainspring.port.records import FAN_OUT

F = TypeVar("F", bound=Callable[..., Any])

_INTERNAL: Final = (PUBLICATION, FAN_OUT, RECURRING, PAUSES)
_OF_SUBSCRIBERS: Final = frozenset({"retry", "timeout", "name"})


def is_internal(workflow: str) -> bool:
    """Return True if a workflow is one of the engine's own: no user sends to it or looks for it.

    >>> is_internal("mainspring.FanOut"), is_internal("Orders")
    (True, False)
    """
    return workflow.startswith(_INTERNAL)


class WorkflowEntry:
    """A workflow with its definition, its recorder, its budget, and the fingerprint of the code that makes its states.

    `newest` is the entry of the newest version that this process knows, under which new instances begin; `versions` are
    all of them, oldest first.
    """

    __slots__ = (
        "_code_of_route",
        "asked",
        "budget",
        "definition",
        "fingerprint",
        "name",
        "newest",
        "recorder",
        "refusals",
        "searchable",
        "versions",
        "watch",
        "workflow",
    )

    def __init__(
        self,
        workflow: Workflow[Any, Any, Any],
        codec: Codec,
        steps_per_hour: int | None = None,
        watch: CodeWatch | None = None,
    ) -> None:
        codec.register_workflow(type(workflow))
        self.workflow = workflow
        # Everything of the author's that runs in the event loop is called through it.
        self.watch = watch or CodeWatch()
        self.definition: Definition = definition_of(type(workflow))
        occurrences = self.definition.wants_occurrences
        self.recorder = Recorder(codec, codec.states(type(workflow)), occurrences=occurrences)
        self.name = self.definition.name
        self._code_of_route = Code(f"{self.name}.route")
        self.budget = Budget(None if is_internal(self.name) else self.definition.steps_per_hour or steps_per_hour)
        own: object = type(workflow).attributes
        self.searchable = own is not cast("type[Workflow[Any, Any, Any]]", Workflow).attributes
        self.fingerprint = fingerprint_of(type(workflow), self.definition)
        # The names of what answers the tasks that were asked here: reading the code may not find them all.
        self.asked: set[str] = set()
        # Why types are not taken from outside, as far as one was sent: see `outside`.
        self.refusals: dict[type[Any], str | None] = {}
        self.newest = self
        self.versions: tuple[WorkflowEntry, ...] = (self,)

    @property
    def version(self) -> int:
        """The version of the definition."""
        return self.definition.version

    def at(self, version: int) -> WorkflowEntry | None:
        """Return the entry under which an instance of a version runs: that one, else the nearest newer one, if any."""
        if version == self.definition.version:
            return self
        return next((entry for entry in self.versions if entry.version >= version), None)

    def known(self) -> str:
        """Return the versions that this process knows, to be read by people."""
        return ", ".join(str(entry.version) for entry in self.versions)

    def route(self, message: object) -> str | None:
        """Return the instance that a message belongs to, or None when it is not for this workflow."""
        try:
            return self.watch.call(self._code_of_route, route, self.workflow, message)
        except TimeoutError as error:
            raise RouteError(type(self.workflow).__name__, message, error) from error

    def attributes(self, state: Any) -> tuple[AttributeRow, ...]:
        """Return what an instance in a state can be searched by, if the workflow says anything of it."""
        if not self.searchable:
            return ()
        return self.watch.call(Code(f"{self.name}.attributes"), self._attributes, state)

    def _attributes(self, state: Any) -> tuple[AttributeRow, ...]:
        try:
            return rows_of(self.workflow.attributes(state))
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise LeftError(self.name, "attributes", error, message=None, state=state) from error

    def join(self, others: tuple[WorkflowEntry, ...]) -> None:
        """Be one of several versions of a workflow, and let all of them know each other."""
        versions = tuple(sorted((*others, self), key=lambda entry: entry.version))
        for entry in versions:
            entry.versions, entry.newest = versions, versions[-1]
            entry.refusals.clear()

    def know_answers(self, names: Iterable[str]) -> None:
        """Note that messages of these names answer tasks."""
        if not self.asked.issuperset(names):
            self.asked.update(names)
            for entry in self.versions:
                entry.refusals.clear()


class Registry:
    """The wiring of an app."""

    def __init__(self, steps_per_hour: int | None = STEPS_PER_HOUR) -> None:
        self._steps_per_hour = checked_steps(steps_per_hour)
        self.watch = CodeWatch()
        self.codec = Codec(older=self._read_older)
        self.codec.register(ChildCompleted, ChildFailed, DeadlinePassed, Parts, PartDone, Undone)
        self.workflows: dict[str, WorkflowEntry] = {}
        self.handlers: dict[str, Handler] = {}
        # How commands of a workflow are retried, by its name; of the others it is as their handlers say.
        self._retries: dict[str, Retry] = {}
        self.subscribers: dict[str, list[Handler]] = {}
        self.projections: dict[str, Projection] = {}
        self.external: set[str] = set()
        # What brings replies to services elsewhere, by the names of their endpoints.
        self.reply_handlers: dict[str, Handler] = {}
        self._takers: dict[type[Any], list[WorkflowEntry]] = {}
        self._queues: dict[str, tuple[str, ...]] = {}
        self._queue_at: dict[str, str] = {}
        self._adding = threading.Lock()

    def _read_older(self, decode: Callable[[Any, bytes], Any], name: str, version: Any, body: bytes) -> Any:
        """Read a body through its type's upcasters."""
        try:
            return self.watch.call(Code(f"the upcasters of {name}"), decode, version, body)
        except TimeoutError as error:
            raise DecodeError(
                name, f"is stored at version {version}, and {error}", "Let them end for every body."
            ) from error

    def add_workflow(self, workflow: Workflow[Any, Any, Any], retry: Retry | None = None) -> None:
        """Register a workflow and all its types. `retry` holds for all commands that its instances send."""
        if not isinstance(retry, Retry | None):
            raise WiringError(f"app.add got retry={retry!r}", "Use a Retry, such as Retry(max_attempts=5), or None.")
        self._queues = {}
        if not isinstance(workflow, Workflow):
            raise WiringError(
                f"{workflow!r} is not a workflow", "Add an instance of it, as in app.add(OrderFulfilment())."
            )
        entry = WorkflowEntry(workflow, self.codec, self._steps_per_hour, self.watch)
        known = self.workflows.get(entry.name)
        if known is not None:
            if any(other.version == entry.version for other in known.versions):
                raise WiringError(
                    f"Two workflows are named {entry.name!r} and have version {entry.version}",
                    "Give one of them another `name`, which is part of every id that they make; "
                    "or another `version`, if it is the same workflow, changed.",
                )
            entry.join(known.versions)
        self.workflows[entry.name] = entry.newest
        if retry is not None:
            self._retries[entry.name] = retry
        if is_internal(entry.name):
            return  # nothing is sent or published to them: each gets what is its own past route
        for input in entry.definition.inputs:
            self._take(input, entry)

    def _take(self, input: type[Any], entry: WorkflowEntry) -> None:
        """Let a workflow take inputs of a type: the newest of its versions that knows it routes them."""
        takers = self._takers.setdefault(input, [])
        for place, other in enumerate(takers):
            if other.name == entry.name:
                takers[place] = max(other, entry, key=lambda either: either.version)
                return
        takers.append(entry)

    def entries(self) -> Iterator[WorkflowEntry]:
        """Return all versions of all workflows."""
        for newest in self.workflows.values():
            yield from newest.versions

    def retry_of(self, handler: Handler, workflow: str) -> Retry:
        """Return how a handler's command is retried that an instance of a workflow has sent."""
        return self._retries.get(workflow, handler.options.retry)

    def add_handler(self, handler: Handler) -> None:
        """Register the one handler of a message type."""
        self._queues = {}
        name = type_of(handler.message_type).name
        other = self.handlers.get(name)
        if other is not None:
            raise WiringError(
                f"Two handlers take {name}: {other.name} and {handler.name}",
                "A sent message goes to exactly one: remove one, or publish the message and subscribe both.",
            )
        self.codec.register(handler.message_type, *handler.result_types)
        self.handlers[name] = handler

    def add_subscriber(self, handler: Handler) -> None:
        """Register one more function that is called with a published message."""
        if handler.options.transaction is not None:
            raise WiringError(
                f"{handler.name} subscribes and asks for its result's transaction, but it has no result",
                "Send the message to a handler instead.",
            )
        if handler.in_process:
            raise WiringError(
                f"{handler.name} subscribes and would run in a process",
                'Send a message to a handler with executor="process" instead.',
            )
        if unheeded := _unheeded(handler.options):
            raise WiringError(
                f"{handler.name} subscribes, and {', '.join(unheeded)} is for handlers alone",
                "Leave it out, or send a message to a handler instead.",
            )
        self._queues = {}
        name = type_of(handler.message_type).name
        known = self.subscribers.setdefault(name, [])
        if any(other.name == handler.name for other in known):
            raise WiringError(
                f"Two subscribers of {name} are named {handler.name}", 'Name one: @app.subscribe(name="…").'
            )
        self.codec.register(handler.message_type)
        known.append(handler)

    def replace_functions(self, handlers: dict[str, Handler], subscribers: dict[str, list[Handler]]) -> None:
        """Let other functions carry messages out: how a simulation puts its own in front of them."""
        self.handlers, self.subscribers = handlers, subscribers
        self._queues = {}

    def add_projection(self, projection: Projection) -> None:
        """Register a read model."""
        if projection.name in self.projections:
            raise WiringError(
                f"Two projections are named {projection.name!r}", 'Name one otherwise: @app.projections.add(name="…").'
            )
        self.projections[projection.name] = projection

    def add_publication(self) -> None:
        """Be able to publish from outside to the functions that subscribed."""
        # Requests may post in many threads, and the first of them adds it.
        with self._adding:
            subscribed = [known[0].message_type for known in self.subscribers.values()]
            if subscribed and PUBLICATION not in self.workflows:
                self.add_workflow(publication_of(subscribed))

    def add_fan_out(self) -> None:
        """Be able to fan out whatever the workflows send."""
        outputs = {cls: None for entry in self.entries() for cls in entry.definition.outputs}
        if outputs and FAN_OUT not in self.workflows:
            self.add_workflow(fan_out_of(outputs, self.codec, lambda cls: cls in self._takers))

    def add_pauses(self) -> None:
        """Be able to remember what is paused."""
        if PAUSES not in self.workflows:
            self.add_workflow(Pauses())

    def has_subscribers(self, message: object) -> bool:
        """Return True if functions subscribed to messages of this one's type."""
        return type_of(type(message)).name in self.subscribers

    def add_external(self, *types: type[Any]) -> None:
        """Note that messages of these types are carried out elsewhere."""
        self.codec.register(*types)
        self.external.update(type_of(cls).name for cls in types)

    def takers(self, message: object) -> list[WorkflowEntry]:
        """Return the workflows that take messages of this one's type."""
        return self._takers.get(type(message), [])

    def takers_of(self, cls: type[Any]) -> list[WorkflowEntry]:
        """Return the workflows that take messages of a type."""
        return self._takers.get(cls, [])

    def queues(self) -> dict[str, tuple[str, ...]]:
        """Return all that this process can carry out: its queues, sorted, each with the destinations it can read."""
        if not self._queues:
            queues = self._all_queues()
            self._queue_at = {place: queue for queue, places in queues.items() for place in places}
            for queue, places in queues.items():
                if other := next((at for place in places if (at := self._queue_at[place]) != queue), None):
                    fix = 'Give one another name with @message(name="…"): no name may look like a version of another.'
                    raise WiringError(f"What is sent to {queue} and to {other} could not be told apart", fix)
            self._queues = queues
        return self._queues

    def _all_queues(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}

        def add(queue: str, types: Iterable[type[Any]], prefix: str = "") -> None:
            places = (f"{prefix}{place}" for cls in types for place in places_of(type_of(cls)))
            found.setdefault(queue, {queue: None}).update(dict.fromkeys(places))

        for name, handler in self.handlers.items():
            add(name, [handler.message_type])
        for cls in self._takers:
            add(type_of(cls).name, [cls])
        for name, known in self.subscribers.items():
            add(f"publish:{name}", [known[0].message_type], "publish:")
        if FAN_OUT in self.workflows:
            add(type_of(Parts).name, [Parts])
        for entry in self.entries():
            # A deadline comes also where the code has none any more: it is recorded, and nothing follows.
            add(f"timer:{entry.name}", (*entry.definition.inputs, DeadlinePassed), f"timer:{entry.name}:")
            add(f"reply:{entry.name}", ())
            for cls, name in entry.definition.outputs.items():
                add(f"publish:{name}", [cls], "publish:")
        return {queue: tuple(found[queue]) for queue in sorted(found)}

    def queue_of(self, destination: str) -> str:
        """Return the queue that a destination is part of; an empty text if nothing for it can be carried out here."""
        self.queues()
        return self._queue_at.get(destination, "")

    def knows(self, destination: str) -> bool:
        """Return True if an output for this destination can be carried out here."""
        return self.queue_of(destination) != ""


def registering(add: Callable[[Handler], None], function: F | None, options: dict[str, Any]) -> F | Callable[[F], F]:
    """Add a function as a handler with options, at once or where it is decorated."""

    def register(function: F) -> F:
        check_function(function)
        add(Handler(function, HandlerOptions(**options)))
        return function

    return register if function is None else register(function)


def check_function(function: Callable[..., Any]) -> None:
    """Refuse what cannot be called with a message, or with a message and a context.

    >>> check_function(lambda command, context: None)
    """
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if not inspect.isroutine(inspect.unwrap(function)):
        raise WiringError(
            f"{name} is not a function: what it takes cannot be seen",
            "Register a function or a bound method whose first parameter is annotated, as in app.handler(bank.charge).",
        )
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    extra = [p.name for p in required if p.kind is p.KEYWORD_ONLY]
    extra += [p.name for p in required if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][2:]
    if extra:
        raise WiringError(
            f"{name} has parameters that nothing fills: {', '.join(extra)}",
            "It is called with the message, and with a Context if it has a second parameter; "
            "find the rest in context.resources.",
        )


def _unheeded(options: HandlerOptions) -> list[str]:
    """Return which options were given that a subscriber would not heed."""
    default = HandlerOptions()
    names = (name for name in options.__struct_fields__ if name not in _OF_SUBSCRIBERS)
    return [name for name in names if getattr(options, name) != getattr(default, name)]
