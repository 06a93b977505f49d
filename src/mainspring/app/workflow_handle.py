"""A handle on one workflow of an app, which knows for a type checker what the app cannot: its inputs and its result."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Any, Generic, TypedDict, TypeVar, Unpack, overload

from mainspring.app.instance import Instance, Receipt
from mainspring.app.internals import Internals
from mainspring.app.requests import RequestOptions, request
from mainspring.app.sending import send_many
from mainspring.core.messages import In
from mainspring.core.route import check_id
from mainspring.core.workflow import State
from mainspring.port.records import Ref

Result_co = TypeVar("Result_co", covariant=True)
R = TypeVar("R")


class MessageOptions(TypedDict, total=False):
    """What may be said of a message that is sent; see `Mainspring.send`.

    >>> options: MessageOptions = {"id": "checkout-17", "actor": "ann"}
    """

    id: str | None
    actor: str | None
    correlation_id: str | None
    must_exist: bool
    expected_position: int | None


class SendOptions(MessageOptions, total=False):
    """What may be said of one that is sent to an app: also which workflow is meant, where several take it.

    >>> options: SendOptions = {"workflow": "Orders"}
    """

    workflow: str | type[Any] | None


class WorkflowHandle(Generic[In, State, Result_co]):
    """What `app.workflow(Orders)` returns. It sends as the app does, to this workflow alone.

    A type checker knows its messages and its result: it refuses other messages, and `result()` returns the workflow's
    fourth type parameter. A message that several workflows take goes to this one.

    >>> import asyncio
    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> async def main() -> None:
    ...     async with app:
    ...         counters = app.workflow(Counter)
    ...         receipts = await counters.send_many([Count("c-1")] * 3)
    ...         print(await receipts[-1].result())
    >>> asyncio.run(main())
    CountedThrice(counter='c-1')
    """

    def __init__(self, internals: Internals, name: str) -> None:
        self._internals = internals
        self.name = name
        """The workflow's name."""

    async def send(self, message: In, **options: Unpack[MessageOptions]) -> Receipt[Result_co]:
        """Send a message to this workflow. Returns when it is durable."""
        intake = self._internals.engine.intake
        return Receipt(self._internals, await intake.send(message, workflow=self.name, **options))

    async def send_many(
        self,
        messages: Iterable[In],
        *,
        ids: Iterable[str] | None = None,
        actor: str | None = None,
        must_exist: bool = False,
    ) -> list[Receipt[Result_co]]:
        """Send many messages to this workflow together, in few commits. Returns when all are durable."""
        return await send_many(self._internals, messages, ids, actor, must_exist=must_exist, workflow=self.name)

    @overload
    async def request(self, message: In, reply: type[R], **options: Unpack[RequestOptions]) -> R: ...
    @overload
    async def request(self, message: In, reply: UnionType | None = None, **options: Unpack[RequestOptions]) -> Any: ...
    async def request(self, message: In, reply: Any = None, **options: Unpack[RequestOptions]) -> Any:
        """Send a message to this workflow and wait for the Reply to it, which is a `reply` if that is given."""
        return await request(self._internals, message, reply, **options, workflow=self.name)

    def instance(self, id: str) -> Instance[State, Result_co]:
        """Return a handle on one instance."""
        return Instance(self._internals, Ref(self.name, check_id(id)))
