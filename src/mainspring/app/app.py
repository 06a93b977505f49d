"""Mainspring: the app. The only place that wires stores, engine and authors' code together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from mainspring.app import letters, lifecycle
from mainspring.app.blocking import BlockingApp
from mainspring.app.bulk import PER_SECOND, operate
from mainspring.app.flows import FlowDecorator, FlowOptions, StepDecorator, StepOptions, add_flow, add_step
from mainspring.app.given import checked_limit, checked_place, checked_text
from mainspring.app.hooks import Hooks
from mainspring.app.instance import Instance, Receipt
from mainspring.app.internals import Internals
from mainspring.app.lifecycle import DRAIN
from mainspring.app.pauses import Pauses
from mainspring.app.posting import Post
from mainspring.app.projections import Projections
from mainspring.app.purging import Progress, purge
from mainspring.app.requests import AskOptions, kept_reply, request
from mainspring.app.schedules import Schedules
from mainspring.app.scraping import collector
from mainspring.app.search import Search, filter_of, found
from mainspring.app.sending import send_many
from mainspring.app.tasks import Tasks
from mainspring.app.transactions import TRANSACTION, Transaction
from mainspring.app.viewing import decoded, instance_view, letter_view, output_view, stats_view
from mainspring.app.workflow_handle import R, WorkflowHandle
from mainspring.core.messages import In, Message, Out
from mainspring.core.route import check_id
from mainspring.core.workflow import STEPS_PER_HOUR, State, Workflow
from mainspring.engine.handlers.handler import Context
from mainspring.engine.handlers.policies.breaker import Breaker
from mainspring.engine.handlers.policies.limits import RateLimit
from mainspring.engine.handlers.policies.retry import Retry
from mainspring.engine.registry import registering
from mainspring.engine.runtime import Runtime
from mainspring.errors import NoSuchInstanceError, WiringError
from mainspring.flows.calls import Step
from mainspring.flows.flow import Flow
from mainspring.port.records import Ref
from mainspring.port.store import Store
from mainspring.sealing.seals import Seal
from mainspring.telemetry.telemetry import Parts
from mainspring.views import Action, BulkReport, DeadLetter, InstanceInfo, PurgeReport, Stats, WaitingOutput

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

Result = TypeVar("Result")
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Message)

PAGE: Final = 100


class Mainspring:
    """An app: workflows, handlers, and the store that keeps them going.

    >>> import asyncio
    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> async def main() -> None:
    ...     async with app:
    ...         for _ in range(3):
    ...             receipt = await app.send(Count("c-1"))
    ...         print(await receipt.result())
    >>> asyncio.run(main())
    CountedThrice(counter='c-1')
    """

    def __init__(
        self,
        url: str,
        *,
        seal: Seal | Sequence[Seal] | None = None,
        retention: timedelta | None = None,
        processes: int | None = None,
        steps_per_hour: int | None = STEPS_PER_HOUR,
        runtime: Runtime | None = None,
        store: Store | None = None,
    ) -> None:
        self._internals = Internals(url, seal, retention, processes, steps_per_hour, runtime, store)
        self.projections = Projections(self._internals)
        """Read models: `@app.projections.add` declares one, `app.projections("orders")` reads it."""
        self.hook = Hooks(self._internals)
        """Declares webhooks that other services call: `@app.hook("payments", secrets=…)`."""
        self.schedules = Schedules(self._internals)
        """What is sent by a calendar: `app.schedules.add("nightly", cron="0 3 * * *", message=…)`."""
        self.pauses = Pauses(self._internals)
        """What is paused for all workers."""
        self.tasks = Tasks(self._internals)
        """What people are asked to do."""
        self.post = Post(self._internals)
        """How to send in a transaction of one's own."""

    # ---- wiring

    def add(self, *workflows: Workflow[Any, Any, Any], retry: Retry | None = None) -> None:
        """Add workflows. `retry` holds for all commands that they send, instead of that of their handlers."""
        for workflow in workflows:
            self._internals.wiring.add_workflow(workflow, retry)

    def external(self, *types: type[Any]) -> None:
        """Declare that another process carries out messages of these types."""
        self._internals.wiring.add_external(*types)

    @overload
    def handler(self, function: F, /) -> F: ...
    @overload
    def handler(
        self,
        *,
        retry: Retry = ...,
        timeout: timedelta = ...,
        concurrency: int = ...,
        rate: RateLimit | None = ...,
        breaker: Breaker | None = ...,
        batch: int | None = ...,
        idempotency_key: Callable[[Any], str] | None = ...,
        remember: timedelta = ...,
        priority: int = ...,
        pool: str = ...,
        name: str | None = ...,
        transaction: timedelta | None = ...,
        executor: Literal["process"] | None = ...,
    ) -> Callable[[F], F]: ...
    def handler(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:  # pyright: ignore[reportInconsistentOverload]  the options are checked when they are used
        """Register the handler of a message type: the annotation of its first parameter.

        It may be async or plain (plain ones run in threads), may ask for a Context as its second parameter, and returns
        None, a message, or several. With `batch` it takes a list of messages and returns a list of results.
        With `transaction` it writes to the database in the transaction of its result, through `context.connection`.
        With `executor="process"` a plain function at the top of a module runs in a process of its own.
        """
        return registering(self._internals.wiring.add_handler, function, options)

    @overload
    def subscribe(self, function: F, /) -> F: ...
    @overload
    def subscribe(
        self, *, retry: Retry = ..., timeout: timedelta = ..., name: str | None = ...
    ) -> Callable[[F], F]: ...
    def subscribe(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:  # pyright: ignore[reportInconsistentOverload]  as above
        """Register a subscriber of a published message type: the annotation of its first parameter."""
        return registering(self._internals.wiring.add_subscriber, function, options)

    @overload
    def step(self, function: Callable[Concatenate[Context, P], Awaitable[T]], /) -> Step[P, T]: ...
    @overload
    def step(self, function: Callable[Concatenate[Context, P], T], /) -> Step[P, T]: ...
    @overload
    def step(self, function: Callable[P, Awaitable[T]], /) -> Step[P, T]: ...
    @overload
    def step(self, function: Callable[P, T], /) -> Step[P, T]: ...
    @overload
    def step(
        self,
        *,
        name: str | None = ...,
        raises: type[Exception] | tuple[type[Exception], ...] = ...,
        **options: Unpack[StepOptions],
    ) -> StepDecorator: ...
    def step(self, function: Any = None, /, *, name: str | None = None, raises: Any = (), **options: Any) -> Any:  # pyright: ignore[reportInconsistentOverload]  as above
        """Register a function that a flow may await: `await charge("o-1", 500)`. Recorded are its arguments and result.

        It may be async or plain (plain ones run in threads), and may have a Context as its first parameter. It is a
        handler, with a handler's options. Errors of the types in `raises` are results: they are not tried again, and
        the flow may catch them by their type. `name` is what its calls are stored under; by default the function's.
        """
        return add_step(self._internals, function, name, raises, options)

    @overload
    def flow(self, function: Callable[[M], Coroutine[Any, Any, T]], /) -> Flow[M, T]: ...
    @overload
    def flow(self, **options: Unpack[FlowOptions]) -> FlowDecorator: ...
    def flow(self, function: Any = None, /, **options: Any) -> Any:  # pyright: ignore[reportInconsistentOverload]  as above
        """Register an async function as a workflow. A message of its parameter's type begins an instance.

        `id` is the field that names the instance, in what begins it and in what it receives, or a function of a
        message; by default the first field. What it returns is the result. `version` pins instances to the code that
        they began with, where several versions are registered. `drift` says what becomes of instances whose code was
        changed all the same: "refuse", they are suspended; "adopt", they go on as far as it fits. What its code sends,
        receives and calls its stages is read from it; `sends`, `receives`, `steps` and `stages` declare what cannot be
        seen. `attributes`, a function of what it began with, says by what its instances are found. The rest is what a
        class statement says of other workflows: `retention`, `deadline`, `expected_within`, `again` …
        """
        return add_flow(self._internals, function, options)

    def resource(self, name: str) -> Callable[[F], F]:
        """Register an async context manager whose value handlers find as `context.resources[name]`.

        It is opened when the app starts to work, and closed when it stops; not with `work=False`.
        """
        return self._internals.resources.declare(name)

    def observe(self, **parts: Unpack[Parts]) -> None:
        """Turn telemetry on: `traces`, `metrics`, `meter`, `logs`, each off unless asked; see `Telemetry`."""
        self._internals.observe(**parts)

    def prometheus_collector(self) -> Collector:
        """Return its metrics, for a registry of prometheus_client: `REGISTRY.register(app.prometheus_collector())`.

        These are counters and histograms. Gauges of the database stand at `/metrics` of a worker and of the studio.
        """
        return collector(self._internals)

    # ---- life

    async def start(self, *, work: bool = True, pools: Iterable[str] | None = None, name: str | None = None) -> None:
        """Open the store and begin to work. With `work=False` this process only sends and reads."""
        await lifecycle.start(self._internals, work=work, pools=pools, name=name)

    async def stop(self, drain: timedelta = DRAIN) -> None:
        """Drain and close: running handlers finish, and all other work goes back. It resumes at the next start."""
        await lifecycle.stop(self._internals, drain)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def blocking(self, *, work: bool = True) -> BlockingApp:
        """Return the app for a program without an event loop: `with app.blocking() as shop: shop.send(…)`."""
        return BlockingApp(self, work=work)

    async def ended(self) -> None:
        """Wait until the app has stopped. If it stopped by itself, raise why.

        It does so when a newer release has changed the database (NewerSchemaError), with what it held released, and
        when the file of a SQLite database was deleted, moved or replaced (StoreMovedError).
        """
        if (engine := self._internals.running) is not None:
            await engine.over.wait()
            if engine.fault is not None:
                raise engine.fault.with_traceback(None)

    # ---- messages in

    async def send(
        self,
        message: Message,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation_id: str | None = None,
        must_exist: bool = False,
        expected_position: int | None = None,
        workflow: str | type[Any] | None = None,
    ) -> Receipt[Any]:
        """Send a message to the one workflow that takes it. Returns when it is durable.

        `id` makes it idempotent: the same id and message again is answered `duplicate`, and taken once. With
        `must_exist` it begins no instance and becomes no dead letter where there is none: NoSuchInstanceError. With
        `expected_position` it is taken in only where the stream ends there and no input waits, else
        PositionConflictError; 0 is an instance that has not begun. `workflow` names the one that is meant of several.
        """
        pending = await self._internals.engine.intake.send(
            message,
            id=id,
            actor=actor,
            correlation_id=correlation_id,
            must_exist=must_exist,
            expected_position=expected_position,
            workflow=workflow,
        )
        return Receipt(self._internals, pending)

    async def send_many(
        self,
        messages: Iterable[Message],
        *,
        ids: Iterable[str] | None = None,
        actor: str | None = None,
        must_exist: bool = False,
        workflow: str | type[Any] | None = None,
    ) -> list[Receipt[Any]]:
        """Send many messages together, in few commits. Returns when all are durable.

        If some cannot be taken in, the error of the first is raised; the others are durable all the same.
        """
        return await send_many(self._internals, messages, ids, actor, must_exist=must_exist, workflow=workflow)

    async def publish(
        self, message: Message, *, id: str | None = None, actor: str | None = None, correlation_id: str | None = None
    ) -> list[Receipt[Any]]:
        """Publish a message to all that want it: workflows that take it, and functions that subscribed to it.

        Returns when it is durable, with a receipt for each workflow's instance; with functions among those that want
        it, there is one receipt, for the publication that brings it to all of them.
        """
        engine = self._internals.engine
        wanted = engine.intake.published(message, id=id, actor=actor, correlation_id=correlation_id)
        await asyncio.gather(*(engine.intake.answered(pending) for pending in wanted))
        return [Receipt(self._internals, pending) for pending in wanted]

    def transaction(self, limit: timedelta = TRANSACTION) -> Transaction:
        """Return a transaction of the app's database, to write rows of one's own and to send beside them."""
        return Transaction(self._internals, limit)

    @overload
    async def request(self, message: Message, reply: type[R], **options: Unpack[AskOptions]) -> R: ...
    @overload
    async def request(self, message: Message, reply: UnionType | None = None, **options: Unpack[AskOptions]) -> Any: ...
    async def request(self, message: Message, reply: Any = None, **options: Unpack[AskOptions]) -> Any:
        """Send a message and wait for the Reply to it. A reply that comes too late is kept for a day: see `reply`.

        `reply` is the type that it has to have: else UnexpectedReplyError. Where none can come, that is raised at once:
        InstanceSuspendedError, NoReplyError, NoSuchInstanceError.
        """
        return await request(self._internals, message, reply, **options)

    async def reply(self, id: str) -> Any:
        """Return the reply to a request, by the request's id; also one that came too late. It is kept for a day."""
        return await kept_reply(self._internals, id)

    # ---- looking and operating

    def workflow(
        self, workflow: type[Workflow[In, State, Out, Result]] | Workflow[In, State, Out, Result]
    ) -> WorkflowHandle[In, State, Result]:
        """Return a handle on a workflow, with which a type checker knows its messages and its result."""
        cls = workflow if isinstance(workflow, type) else type(workflow)
        for entry in self._internals.registry.entries():
            if type(entry.workflow) is cls:
                return WorkflowHandle(self._internals, entry.name)
        raise WiringError(f"{cls.__name__} is not part of this app", f"app.add({cls.__name__}()) first.")

    def instance(
        self, workflow: type[Workflow[In, State, Out, Result]] | Workflow[In, State, Out, Result], id: str
    ) -> Instance[State, Result]:
        """Return a handle on one instance: its state, stream and result, and what operators can do."""
        return self.workflow(workflow).instance(id)

    def instance_at(self, identity: str) -> Instance[Any, Any]:
        """Return a handle on the instance written `workflow/id`."""
        workflow, _, id = checked_text("The identity", identity).partition("/")
        if workflow not in self._internals.registry.workflows or not id:
            raise NoSuchInstanceError(identity)
        return Instance(self._internals, Ref(workflow, check_id(id)))

    async def instances(self, *, limit: int = PAGE, after: int = 0, **search: Unpack[Search]) -> list[InstanceInfo]:
        """Return instances in the order of their beginning; `after` is the key of the last one seen.

        The engine's own, such as schedules and fan-outs, are found only by the name of their workflow.
        """
        where = filter_of(**search)
        rows = await found(self._internals.engine.store, where, checked_limit(limit), checked_place(after))
        return [instance_view(row) for row in rows]

    async def bulk(
        self,
        action: Action,
        *,
        reason: str = "by an operator",
        actor: str | None = None,
        dry_run: bool = False,
        per_second: float = PER_SECOND,
        on_progress: Callable[[BulkReport], None] | None = None,
        to: int | None = None,
        **search: Unpack[Search],
    ) -> BulkReport:
        """Suspend, resume, retry, skip, cancel, terminate, reset or migrate all instances that the search finds.

        `reset` goes `to` a position in the stream, `migrate` to a version of the workflow. `dry_run` only counts them;
        before `migrate` it reports which could not and why.
        """
        return await operate(
            self._internals,
            action,
            filter_of(**search),
            reason=reason,
            actor=actor,
            dry_run=dry_run,
            per_second=per_second,
            on_progress=on_progress,
            to=to,
        )

    async def timers(self, limit: int = PAGE) -> list[WaitingOutput]:
        """Return waiting timers, the next one first; not those that a worker has claimed to fire them."""
        read = decoded(self._internals.registry.codec)
        return [output_view(claim, read) for claim in await self._internals.engine.store.timers(checked_limit(limit))]

    async def stats(self) -> Stats:
        """Return counts: instances by status, waiting inputs and outputs, timers, dead letters, workers."""
        return stats_view(await self._internals.engine.store.stats())

    async def purge(
        self,
        *,
        older_than: timedelta,
        workflow: str | None = None,
        dry_run: bool = False,
        archive: str | Path | None = None,
        progress: Progress | None = None,
    ) -> PurgeReport:
        """Remove the streams of instances that ended so long ago; of all this app's workflows, or of one.

        Each leaves a tombstone, so that it cannot begin anew. What has work or dead letters left stays. `archive` names
        a file to which the streams are written first, as JSON lines; `progress` is called after every batch; `dry_run`
        only counts.
        """
        return await purge(self._internals, older_than, workflow, dry_run=dry_run, archive=archive, progress=progress)

    async def dead_letters(self, limit: int = PAGE, after: int = 0) -> list[DeadLetter]:
        """Return dead letters, oldest first, each with its message, or why that cannot be read (`unreadable`)."""
        found = await self._internals.engine.store.dead_letters(checked_limit(limit), checked_place(after))
        return [letter_view(letter, self._internals.registry.codec) for letter in found]

    async def retry_dead_letter(
        self, id: int, message: Any = None, *, actor: str | None = None, force: bool = False
    ) -> None:
        """Retry a dead letter under its old id; or `message`, recorded as Resent, in its place.

        An instance that this failure has suspended resumes, unless it waits for something else too. A command whose
        instance has ended, was compensated or has taken its failure is refused unless it is forced.
        """
        await letters.retry(self._internals.engine, self._internals.services.edges, id, message, actor, force=force)

    async def discard_dead_letter(self, id: int) -> None:
        """Remove a dead letter for good."""
        await letters.discard(self._internals.engine, id)
