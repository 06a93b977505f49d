"""Mainspring: the app. The only place that wires stores, engine and authors' code together."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Self, TypeVar, Unpack, overload

from mainspring.app import letters
from mainspring.app.blocking import BlockingApp
from mainspring.app.bulk import PER_SECOND, operate
from mainspring.app.given import checked_limit, checked_place, checked_processes, checked_text
from mainspring.app.hooks import Hooks
from mainspring.app.instance import Instance, Receipt
from mainspring.app.observing import Looks, observing, telemetry_of_environment
from mainspring.app.pauses import Pauses
from mainspring.app.posting import Post
from mainspring.app.projections import Declare, Projections
from mainspring.app.purging import Progress, checked_age, purge, purge_forever, retentions
from mainspring.app.requests import AskOptions, kept_reply, request
from mainspring.app.resources import Resources
from mainspring.app.schedules import Schedules
from mainspring.app.search import Search, filter_of, found
from mainspring.app.sending import send_many
from mainspring.app.services import Services
from mainspring.app.tasks import Tasks
from mainspring.app.transactions import TRANSACTION, Transaction
from mainspring.app.viewing import decoded, instance_view, letter_view, output_view, stats_view
from mainspring.app.workflow_handle import R, WorkflowHandle
from mainspring.core.messages import In, Message, Out
from mainspring.core.route import check_id
from mainspring.core.workflow import STEPS_PER_HOUR, State, Workflow
from mainspring.engine.engine import DRAIN_SECONDS, Engine
from mainspring.engine.handlers.policies.breaker import Breaker
from mainspring.engine.handlers.policies.limits import RateLimit
from mainspring.engine.handlers.policies.retry import Retry
from mainspring.engine.inputs.envelopes import Envelopes
from mainspring.engine.registry import Registry, registering
from mainspring.engine.runtime import Runtime
from mainspring.engine.startup_checks import check_store, check_wiring
from mainspring.errors import NoSuchInstanceError, WiringError
from mainspring.port.records import Ref
from mainspring.port.store import Store
from mainspring.sealing.seals import Seal, Seals
from mainspring.stores import open_store
from mainspring.stores.sealed import sealed
from mainspring.telemetry.telemetry import Parts, Telemetry
from mainspring.views import Action, BulkReport, DeadLetter, InstanceInfo, PurgeReport, Stats, WaitingOutput

Result = TypeVar("Result")
F = TypeVar("F", bound=Callable[..., Any])

PAGE: Final = 100
SHORTEST_RETENTION: Final = timedelta(microseconds=1)


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
        self.url = url
        self.seal: Seal | None = Seals(seal) if isinstance(seal, Sequence) else seal
        # None keeps everything. Else workers purge ended instances after so long; a workflow may say its own time.
        self.retention = None if retention is None else checked_age("retention", retention, least=SHORTEST_RETENTION)
        self._runtime = runtime or Runtime()
        if processes is not None:
            # How many run handlers with executor="process" at most. None: as many as there are cores.
            self._runtime.processes = checked_processes(processes)
        self._given_store = store
        self.registry = Registry(steps_per_hour)
        self.projection = Declare(self.registry)
        self.projections = Projections(self)
        self._resources = Resources()
        self._exits: AsyncExitStack | None = None
        self._engine: Engine | None = None
        self.services = Services()
        """What runs beside the engine while this app works, such as the sources of brokers."""
        self.telemetry = observing(self._runtime, telemetry_of_environment())
        """What this app reports about itself, if anything."""
        self.looks = Looks(self)
        self.hook = Hooks(self)
        """Declares webhooks that other services call: `@app.hook("payments", secrets=…)`."""
        self.schedules = Schedules(self)
        self.pauses = Pauses(self)
        """What is paused for all workers."""
        self.tasks = Tasks(self)
        """What people are asked to do."""
        self.post = Post(self)
        """How to send in a transaction of one's own."""

    # ---- wiring

    def add(self, *workflows: Workflow[Any, Any, Any], retry: Retry | None = None) -> None:
        """Add workflows. `retry` holds for all commands that they send, instead of what their handlers say."""
        for workflow in workflows:
            self.registry.add_workflow(workflow, retry)

    def external(self, *types: type[Any]) -> None:
        """Say that messages of these types are carried out by another process."""
        self.registry.add_external(*types)

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
        """Register the function that carries out a message; its first parameter's annotation says which.

        It may be async or plain (plain ones run in threads), may ask for a Context as its second parameter, and returns
        None, a message, or several. With `batch` it takes a list of messages and returns a list of results.
        With `transaction` it writes to the database in the transaction of its result, through `context.connection`.
        With `executor="process"` a plain function at the top of a module runs in a process of its own.
        """
        return registering(self.registry.add_handler, function, options)

    @overload
    def subscribe(self, function: F, /) -> F: ...
    @overload
    def subscribe(
        self, *, retry: Retry = ..., timeout: timedelta = ..., name: str | None = ...
    ) -> Callable[[F], F]: ...
    def subscribe(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:  # pyright: ignore[reportInconsistentOverload]  as above
        """Register one more function that gets a published message; its first parameter says which."""
        return registering(self.registry.add_subscriber, function, options)

    def resource(self, name: str) -> Callable[[F], F]:
        """Register an async context manager whose value handlers find as `context.resources[name]`.

        It is opened when the app starts to work, and closed when it stops; not with `work=False`.
        """
        return self._resources.declare(name)

    def observe(self, **parts: Unpack[Parts]) -> None:
        """Turn telemetry on: `traces`, `metrics`, `meter`, `logs`, each off unless asked; see `Telemetry`."""
        if self._engine is not None:
            raise WiringError("This app runs already", "Say what is to be observed before it starts.")
        told = Telemetry(**parts) if self.telemetry is None else self.telemetry.add(**parts)
        self.telemetry = observing(self._runtime, told)

    # ---- life

    async def start(self, *, work: bool = True, pools: Iterable[str] | None = None, name: str | None = None) -> None:
        """Open the store and begin to work. With `work=False` this process only sends and reads."""
        if self._engine is not None:
            raise WiringError("This app runs already", "Stop it first, or make another one.")
        self.services.prepare()
        self.registry.add_publication()
        self.registry.add_fan_out()
        self.registry.add_pauses()
        if work:
            check_wiring(self.registry, pools)
            if pools is None:
                self.schedules.check()
        exits = AsyncExitStack()
        try:
            store = self._given_store or open_store(self.url, self._runtime.clock)
            store = store if self.seal is None else sealed(store, self.seal)
            if work:
                check_store(self.registry, store)
            await store.open()
            exits.push_async_callback(store.close)
            if work:
                await self._resources.open(exits)
            engine = Engine(store, self.registry, self._runtime, self._resources.opened)
            worker = name or f"{socket.gethostname()}:{os.getpid()}"
            await engine.start(work=work, name=worker, pools=None if pools is None else frozenset(pools))
        except BaseException:
            await exits.aclose()
            raise
        self._engine, self._exits = engine, exits
        self.looks.begin()
        if work and (kept := retentions(self.registry, self.retention)):
            self._runtime.spawn(purge_forever(store, self._runtime, self.registry, kept), "mainspring-purge")
        if work:
            try:
                await self.schedules.declare()
                await self.services.start()
            except BaseException:
                await self.stop()
                raise

    async def stop(self, drain: timedelta = timedelta(seconds=DRAIN_SECONDS)) -> None:
        """Finish what runs, release the rest, and close. What is not done resumes at the next start."""
        engine, exits = self._engine, self._exits
        self._exits = None  # so that it is not stopped twice
        if engine is None or exits is None:
            return
        try:
            try:
                await self.services.stop()
            finally:
                await engine.stop(drain.total_seconds())
        finally:
            # Only now: until it is drained, a handler that runs may still send.
            self._engine = None
            self._resources.opened.clear()
            try:
                await exits.aclose()
                await self._runtime.end_processes()
            finally:
                self._runtime.close()

    @contextmanager
    def standing_on(self, runtime: Runtime, store: Store, resources: Mapping[str, Any]) -> Generator[None]:
        """Be on another runtime and store for a while, unsealed and with stand-ins for resources: for a simulation."""
        if self._engine is not None:
            raise WiringError("This app runs already", "Stop it first; a simulation starts the app itself.")
        own = self._runtime, self._given_store, self._resources, self.seal
        self._runtime, self._given_store, self.seal = runtime, store, None
        self._resources = self._resources.with_stand_ins(resources)
        self.services.prepare()
        self.services.idle = True
        try:
            yield
        finally:
            self.services.idle = False
            self._runtime, self._given_store, self._resources, self.seal = own

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
        if (engine := self._engine) is not None:
            await engine.over.wait()
            if engine.fault is not None:
                raise engine.fault.with_traceback(None)

    @property
    def engine(self) -> Engine:
        """The running engine."""
        if self._engine is None:
            raise WiringError("This app is not running", "Use it inside `async with app:`, or await app.start() first.")
        if self._engine.fault is not None:
            raise self._engine.fault.with_traceback(None)
        return self._engine

    def another_store(self) -> Store | None:
        """Return another connection to the database, for another thread to open; None where only this one sees it."""
        if self._given_store is not None or self.url.startswith("memory:"):
            return None
        store = open_store(self.url, self._runtime.clock)
        return store if self.seal is None else sealed(store, self.seal)

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
        pending = self.engine.intake.sent(
            message,
            id=id,
            actor=actor,
            correlation_id=correlation_id,
            must_exist=must_exist,
            expected_position=expected_position,
            workflow=workflow,
        )
        await self.engine.intake.answered(pending)
        return Receipt(self, pending)

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
        return await send_many(self, messages, ids, actor, must_exist=must_exist, workflow=workflow)

    async def publish(
        self, message: Message, *, id: str | None = None, actor: str | None = None, correlation_id: str | None = None
    ) -> list[Receipt[Any]]:
        """Publish a message to all that want it: workflows that take it, and functions that subscribed to it.

        Returns when it is durable, with a receipt for each workflow's instance; with functions among those that want
        it, there is one receipt, for the publication that brings it to all of them.
        """
        engine = self.engine
        wanted = engine.intake.published(message, id=id, actor=actor, correlation_id=correlation_id)
        await asyncio.gather(*(engine.intake.answered(pending) for pending in wanted))
        return [Receipt(self, pending) for pending in wanted]

    def transaction(self, limit: timedelta = TRANSACTION) -> Transaction:
        """Return a transaction of the app's database, to write rows of one's own and to send beside them."""
        return Transaction(self, limit)

    @property
    def envelopes(self) -> Envelopes:
        """What makes inputs of messages: the running engine's intake, or one that needs no engine."""
        if self._engine is not None:
            return self.engine.intake
        return Envelopes(self.registry, self._runtime, self._runtime.clock.now_us)

    @overload
    async def request(self, message: Message, reply: type[R], **options: Unpack[AskOptions]) -> R: ...
    @overload
    async def request(self, message: Message, reply: UnionType | None = None, **options: Unpack[AskOptions]) -> Any: ...
    async def request(self, message: Message, reply: Any = None, **options: Unpack[AskOptions]) -> Any:
        """Send a message and wait for the Reply to it. A reply that comes too late is kept for a day: see `reply`.

        `reply` is the type that it has to have: else UnexpectedReplyError. Where none can come, that is raised at once:
        InstanceSuspendedError, NoReplyError, NoSuchInstanceError.
        """
        return await request(self, message, reply, **options)

    async def reply(self, id: str) -> Any:
        """Return the reply to a request, by the request's id; also one that came too late. It is kept for a day."""
        return await kept_reply(self, id)

    # ---- looking and operating

    def workflow(self, workflow: type[Workflow[In, State, Out, Result]]) -> WorkflowHandle[In, State, Result]:
        """Return a handle on a workflow, with which a type checker knows its messages and its result."""
        for entry in self.registry.entries():
            if type(entry.workflow) is workflow:
                return WorkflowHandle(self, entry.name)
        raise WiringError(f"{workflow.__name__} is not part of this app", f"app.add({workflow.__name__}()) first.")

    def instance(self, workflow: type[Workflow[In, State, Out, Result]], id: str) -> Instance[State, Result]:
        """Return a handle on one instance: its state, stream and result, and what operators can do."""
        return self.workflow(workflow).instance(id)

    def instance_at(self, identity: str) -> Instance[Any, Any]:
        """Return a handle on the instance written `workflow/id`."""
        workflow, _, id = checked_text("The identity", identity).partition("/")
        if workflow not in self.registry.workflows or not id:
            raise NoSuchInstanceError(identity)
        return Instance(self, Ref(workflow, check_id(id)))

    async def instances(self, *, limit: int = PAGE, after: int = 0, **search: Unpack[Search]) -> list[InstanceInfo]:
        """Return instances in the order of their beginning; `after` is the key of the last one seen.

        The engine's own, such as schedules and fan-outs, are found only by the name of their workflow.
        """
        where = filter_of(**search)
        rows = await found(self.engine.store, where, checked_limit(limit), checked_place(after))
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
            self,
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
        """Return waiting timers, the next one first; not those that a worker is about to let fire."""
        read = decoded(self.registry.codec)
        return [output_view(claim, read) for claim in await self.engine.store.timers(checked_limit(limit))]

    async def stats(self) -> Stats:
        """Return how much of everything there is."""
        return stats_view(await self.engine.store.stats())

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
        return await purge(self, older_than, workflow, dry_run=dry_run, archive=archive, progress=progress)

    async def dead_letters(self, limit: int = PAGE, after: int = 0) -> list[DeadLetter]:
        """Return dead letters, oldest first, each with its message, or why that cannot be read (`unreadable`)."""
        found = await self.engine.store.dead_letters(checked_limit(limit), checked_place(after))
        return [letter_view(letter, self.registry.codec) for letter in found]

    async def retry_dead_letter(
        self, id: int, message: Any = None, *, actor: str | None = None, force: bool = False
    ) -> None:
        """Carry a dead letter out after all, under its old id; or `message`, recorded as Resent, in its place.

        An instance that this failure has suspended resumes, unless it waits for something else too. A command whose
        instance has ended, was compensated or has taken its failure is refused unless it is forced.
        """
        await letters.retry(self.engine, self.services.edges, id, message, actor, force=force)

    async def discard_dead_letter(self, id: int) -> None:
        """Remove a dead letter for good."""
        await letters.discard(self.engine, id)
