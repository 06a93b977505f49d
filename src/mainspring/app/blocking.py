"""The app for programs without an event loop: scripts, Flask, Django. The same methods; each waits for its answer."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, InvalidStateError
from datetime import timedelta
from types import UnionType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, cast, overload

from mainspring.app.instance import Instance, Receipt, Result_co
from mainspring.app.pauses import Pauses
from mainspring.app.posting import Post
from mainspring.app.projections import ProjectionHandle, Projections
from mainspring.app.requests import AskOptions, RequestOptions
from mainspring.app.schedules import Schedules
from mainspring.app.tasks import Tasks
from mainspring.app.transactions import Transaction
from mainspring.app.workflow_handle import MessageOptions, SendOptions, WorkflowHandle
from mainspring.core.messages import In, Message, Out
from mainspring.core.workflow import State, Workflow
from mainspring.engine.inputs.pending import ReceiptStatus
from mainspring.errors import WiringError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring

    # What type checkers know of the methods that `__getattr__` finds: the same, without `await`.
    # tests/engine/test_blocking.py holds that none is left out.
    def waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
        """Return a method as it is for programs without an event loop."""
        ...

    def at_once(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
        """Return one that waits for nothing."""
        ...

    def receives(
        method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Receipt[T]]],
    ) -> Callable[Concatenate[Any, P], BlockingReceipt[T]]:
        """Return one that sends a message."""
        ...

    def receives_many(
        method: Callable[Concatenate[Any, P], Coroutine[Any, Any, list[Receipt[T]]]],
    ) -> Callable[Concatenate[Any, P], list[BlockingReceipt[T]]]:
        """Return one that sends several."""
        ...


class Blocking:
    """An object whose async methods can be called without `await`: an app, an instance, a receipt, a projection.

    It is not a second implementation: every call is made on the object itself, in the app's own event loop, which runs
    in a thread of its own.
    """

    def __init__(self, target: Any, loop: EventLoopThread) -> None:
        self._target = target
        self._loop = loop

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            value = getattr(self._target, name)
            if isinstance(value, Post):
                return value.blocking  # it needs no event loop, but the connection's own thread
            return functools.partial(self._call, value) if inspect.ismethod(value) else self._wrapped(value)

    def __str__(self) -> str:
        return str(self._target)

    def _call(self, method: Any, /, *args: Any, **options: Any) -> Any:
        result = method(*args, **options)
        if inspect.iscoroutine(result):
            result = self._loop.run(result)
        return self._wrapped(result)

    def _wrapped(self, result: Any) -> Any:
        for kind, blocking in _WRAPPED.items():
            if isinstance(result, kind):
                return blocking(result, self._loop)
        if isinstance(result, list):
            return [self._wrapped(item) for item in cast("list[Any]", result)]
        return result


class BlockingInstance(Blocking, Generic[State, Result_co]):
    """A handle on one instance, for programs without an event loop."""

    if TYPE_CHECKING:

        def state(self) -> State: ...
        def result(self, timeout: timedelta = ...) -> Result_co: ...

        end = waits(Instance[Any, Any].end)
        row = waits(Instance[Any, Any].row)
        standing = waits(Instance[Any, Any].standing)
        stream = waits(Instance[Any, Any].stream)
        log = waits(Instance[Any, Any].log)
        attempts = waits(Instance[Any, Any].attempts)
        attributes = waits(Instance[Any, Any].attributes)
        waiting = waits(Instance[Any, Any].waiting)
        waits_at = waits(Instance[Any, Any].waits_at)
        outputs = waits(Instance[Any, Any].outputs)
        suspend = waits(Instance[Any, Any].suspend)
        resume = waits(Instance[Any, Any].resume)
        retry = waits(Instance[Any, Any].retry)
        skip = waits(Instance[Any, Any].skip)
        cancel = waits(Instance[Any, Any].cancel)
        terminate = waits(Instance[Any, Any].terminate)
        reset = waits(Instance[Any, Any].reset)
        migrate = waits(Instance[Any, Any].migrate)


class BlockingReceipt(BlockingInstance[Any, Result_co]):
    """What the sender of a message holds, for programs without an event loop."""

    if TYPE_CHECKING:
        message_id: str
        status: ReceiptStatus


class BlockingWorkflow(Blocking, Generic[In, State, Result_co]):
    """A handle on one workflow, for programs without an event loop."""

    if TYPE_CHECKING:
        name: str

        def send(self, message: In, **options: Unpack[MessageOptions]) -> BlockingReceipt[Result_co]: ...
        def send_many(
            self,
            messages: Iterable[In],
            *,
            ids: Iterable[str] | None = None,
            actor: str | None = None,
            must_exist: bool = False,
        ) -> list[BlockingReceipt[Result_co]]: ...
        @overload
        def request(self, message: In, reply: type[R], **options: Unpack[RequestOptions]) -> R: ...
        @overload
        def request(self, message: In, reply: UnionType | None = None, **options: Unpack[RequestOptions]) -> Any: ...
        def request(self, message: Any, reply: Any = None, **options: Any) -> Any: ...
        def instance(self, id: str) -> BlockingInstance[State, Result_co]: ...


class BlockingProjection(Blocking):
    """One projection, for programs without an event loop."""

    if TYPE_CHECKING:
        name: str

        get = waits(ProjectionHandle.get)
        list = waits(ProjectionHandle.list)
        status = waits(ProjectionHandle.status)
        caught_up = waits(ProjectionHandle.caught_up)
        rebuild = waits(ProjectionHandle.rebuild)


class BlockingProjections(Blocking):
    """The projections of an app, for programs without an event loop: `shop.projections("orders").get("o-1")`."""

    # Of these alone: what is callable is called by a template of Django that only wants to show it.
    def __call__(self, name: str) -> BlockingProjection:
        """Return a handle on a projection."""
        return cast("BlockingProjection", self._call(self._target, name))

    if TYPE_CHECKING:
        list = waits(Projections.list)


class BlockingTasks(Blocking):
    """What people are asked to do, for programs without an event loop."""

    if TYPE_CHECKING:
        list = waits(Tasks.list)
        get = waits(Tasks.get)
        forms = waits(Tasks.forms)
        claim = waits(Tasks.claim)
        release = waits(Tasks.release)
        delegate = waits(Tasks.delegate)
        pick = waits(Tasks.pick)
        complete = waits(Tasks.complete)
        reject = waits(Tasks.reject)


class BlockingSchedules(Blocking):
    """The schedules of an app, for programs without an event loop."""

    if TYPE_CHECKING:
        list = waits(Schedules.list)
        next = waits(Schedules.next)
        pause = waits(Schedules.pause)
        resume = waits(Schedules.resume)
        remove = waits(Schedules.remove)
        run_now = waits(Schedules.run_now)


class BlockingPauses(Blocking):
    """What is paused for all workers, for programs without an event loop."""

    if TYPE_CHECKING:
        pause = waits(Pauses.pause)
        resume = waits(Pauses.resume)
        list = waits(Pauses.list)


class BlockingTransaction(Blocking):
    """A transaction for programs without an event loop: `with shop.transaction() as transaction`.

    Its limit holds here too, and its verbs are the same, without `await`.
    """

    def __enter__(self) -> Self:
        self._loop.run(self._target.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._loop.run(self._target.__aexit__(kind, error, trace))

    if TYPE_CHECKING:

        def send(self, message: Message, **options: Unpack[SendOptions]) -> BlockingReceipt[Any]: ...
        def publish(
            self,
            message: Message,
            *,
            id: str | None = None,
            actor: str | None = None,
            correlation_id: str | None = None,
        ) -> list[BlockingReceipt[Any]]: ...

        execute = waits(Transaction.execute)
        executemany = waits(Transaction.executemany)
        fetch = waits(Transaction.fetch)
        fetchrow = waits(Transaction.fetchrow)
        fetchval = waits(Transaction.fetchval)


_WRAPPED: dict[type[Any], type[Blocking]] = {
    Receipt: BlockingReceipt,
    Instance: BlockingInstance,
    WorkflowHandle: BlockingWorkflow,
    ProjectionHandle: BlockingProjection,
    Projections: BlockingProjections,
    Tasks: BlockingTasks,
    Schedules: BlockingSchedules,
    Pauses: BlockingPauses,
    Transaction: BlockingTransaction,
}
"""How what an app hands out is handed out here. A receipt is an instance too, and comes first."""


class BlockingApp(Blocking):
    """A running app for programs without an event loop.

    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> with app.blocking() as blocking:
    ...     receipts = [blocking.send(Count("c-1")) for _ in range(3)]
    ...     print(receipts[-1].result())
    CountedThrice(counter='c-1')
    """

    def __init__(self, app: Mainspring, *, work: bool = True) -> None:
        super().__init__(app, EventLoopThread())
        self._work = work

    def __enter__(self) -> Self:
        self._loop.start()
        try:
            self._loop.run(self._target.start(work=self._work))
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._loop.run(self._target.stop())
        finally:
            self._loop.stop()

    if TYPE_CHECKING:
        projections: BlockingProjections
        schedules: BlockingSchedules
        pauses: BlockingPauses
        tasks: BlockingTasks

        @overload
        def request(self, message: Message, reply: type[R], **options: Unpack[AskOptions]) -> R: ...
        @overload
        def request(self, message: Message, reply: UnionType | None = None, **options: Unpack[AskOptions]) -> Any: ...
        def request(self, message: Any, reply: Any = None, **options: Any) -> Any: ...
        def workflow(
            self, workflow: type[Workflow[In, State, Out, T]] | Workflow[In, State, Out, T]
        ) -> BlockingWorkflow[In, State, T]: ...
        def instance(
            self, workflow: type[Workflow[Any, State, Any, T]] | Workflow[Any, State, Any, T], id: str
        ) -> BlockingInstance[State, T]: ...
        def instance_at(self, identity: str) -> BlockingInstance[Any, Any]: ...
        def transaction(self, limit: timedelta = ...) -> BlockingTransaction: ...

        post = at_once(Post.blocking)
        send = receives(Mainspring.send)
        send_many = receives_many(Mainspring.send_many)
        publish = receives_many(Mainspring.publish)
        reply = waits(Mainspring.reply)
        instances = waits(Mainspring.instances)
        bulk = waits(Mainspring.bulk)
        timers = waits(Mainspring.timers)
        stats = waits(Mainspring.stats)
        purge = waits(Mainspring.purge)
        dead_letters = waits(Mainspring.dead_letters)
        retry_dead_letter = waits(Mainspring.retry_dead_letter)
        discard_dead_letter = waits(Mainspring.discard_dead_letter)
        ended = waits(Mainspring.ended)


class EventLoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._awaited: set[Future[Any]] = set()

    def start(self) -> None:
        """Start the loop."""
        started = threading.Event()

        def turn() -> None:
            self._loop = asyncio.new_event_loop()
            self._loop.call_soon(started.set)
            try:
                self._loop.run_forever()
            finally:
                # Also where a KeyboardInterrupt ended it: a caller must not wait for its answer without end.
                self._loop.close()
                for answer in list(self._awaited):
                    _never_answered(answer)

        self._thread = threading.Thread(target=turn, name="mainspring-loop", daemon=True)
        self._thread.start()
        started.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop and wait for it."""
        if self._loop is None or not self._loop.is_running():
            work.close()
            raise WiringError("This app is not running", "Use it inside `with app.blocking() as …:`.")
        if threading.current_thread() is self._thread:
            work.close()
            raise WiringError(
                "The blocking app was called in its own event loop, which cannot wait for itself",
                "Await the method of the app itself there, or make the handler a plain function.",
            )
        answer = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._awaited.add(answer)
        if self._loop.is_closed():  # it ended just now, and may have missed this one
            _never_answered(answer)
        try:
            return answer.result()
        finally:
            self._awaited.discard(answer)

    def stop(self) -> None:
        """Stop the loop."""
        if self._loop is not None and self._thread is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def _never_answered(answer: Future[Any]) -> None:
    """Fail callers whose answer will not come. What was answered before stays so."""
    with contextlib.suppress(InvalidStateError):
        answer.set_exception(WiringError("The app's event loop has ended", "Start the app again."))
