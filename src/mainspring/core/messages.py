"""Messages, the envelope they travel in, and the names of things.

A message is immutable data with a type: a frozen dataclass, a frozen msgspec Struct or a frozen pydantic model. It
knows nothing of mainspring. `@message` is needed only to rename a type, to give it a version, or to read older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from mainspring.errors import DefinitionError


class DataclassMessage(Protocol):
    """What a type checker knows a dataclass by."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ModelMessage(Protocol):
    """What a type checker knows a pydantic model by, without pydantic."""

    __pydantic_core_schema__: ClassVar[Any]


Message: TypeAlias = DataclassMessage | Struct | ModelMessage
"""What may be sent: an instance of a dataclass, a msgspec Struct or a pydantic model. That it is frozen, which no type
says, is checked when its workflow is first used."""

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
M_co = TypeVar("M_co", covariant=True)
T = TypeVar("T")

Upcaster: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

TYPE_ATTRIBUTE: Final = "__mainspring_type__"


class Kind(StrEnum):
    """How the sender meant a message.

    >>> Kind.COMMAND.value
    'command'
    """

    COMMAND = "command"
    EVENT = "event"
    REPLY = "reply"
    RESULT = "result"
    TIMER = "timer"
    TASK = "task"
    ANSWER = "answer"


class InstanceId(Struct, frozen=True, gc=False):
    """One running case of a workflow, written `OrderFulfilment/o-1`.

    >>> str(InstanceId("OrderFulfilment", "o-1"))
    'OrderFulfilment/o-1'
    """

    workflow: str
    id: str

    def __str__(self) -> str:
        return f"{self.workflow}/{self.id}"


def output_id(instance: InstanceId, version: int) -> str:
    """Return the message id of the output that `instance` recorded at `version`: the same at every redelivery.

    >>> output_id(InstanceId("OrderFulfilment", "o-1"), 3)
    'OrderFulfilment/o-1/3'
    """
    return f"{instance.workflow}/{instance.id}/{version}"


class Envelope(Struct, Generic[M_co], frozen=True, gc=False):
    """A message with its context. A decide that wants the context asks for the envelope instead of the message.

    `task` is the key of the task that the message answers, if it answers one; `actor` is then who did. `command` is the
    data (JSON) of the command that the message answers: where it is a handler's result or failure, a child's end or a
    reply, and the stream of the instance has that command.

    >>> from dataclasses import dataclass
    >>> from datetime import UTC
    >>> @dataclass(frozen=True)
    ... class Approve:
    ...     document: str
    >>> e = Envelope(Approve("d-1"), id="m-1", time=datetime(2026, 1, 1, tzinfo=UTC), correlation_id="c-1", actor="ann")
    >>> e.type, e.type_version, e.actor
    ('Approve', 1, 'ann')
    """

    message: M_co
    id: str
    time: datetime
    correlation_id: str
    kind: Kind = Kind.COMMAND
    causation_id: str | None = None
    sender: InstanceId | None = None
    reply_to: str | None = None
    actor: str | None = None
    trace: str | None = None
    task: str | None = None
    command: Any = None

    @property
    def type(self) -> str:
        """The name of the message's type."""
        return type_of(type(self.message)).name

    @property
    def type_version(self) -> int:
        """The version of the message's type."""
        return type_of(type(self.message)).version


class MessageType(Struct, frozen=True, gc=False):
    """The name, version, former names and upcasters of a type, as `@message` gives them."""

    name: str
    version: int = 1
    aliases: tuple[str, ...] = ()
    upcasters: tuple[Upcaster, ...] = ()


def message(
    *, name: str | None = None, version: int = 1, aliases: Sequence[str] = (), upcasters: Sequence[Upcaster] = ()
) -> Callable[[type[T]], type[T]]:
    """Give a message or state type another name, a version, former names, and upcasters for its older versions.

    The first upcaster turns the body of version 1 into one of version 2, the second that of 2 into 3, and so on. Each
    is a pure function from one JSON object to the next.

    >>> from dataclasses import dataclass
    >>> @message(version=2, aliases=["OrderPlaced"], upcasters=[lambda body: body | {"currency": "EUR"}])
    ... @dataclass(frozen=True)
    ... class PlaceOrder:
    ...     order_id: str
    ...     currency: str
    >>> type_of(PlaceOrder).version
    2
    """

    def mark(cls: type[T]) -> type[T]:
        declared = MessageType(name or cls.__name__, version, tuple(aliases), tuple(upcasters))
        if len(declared.upcasters) != version - 1:
            raise DefinitionError(
                cls.__name__,
                f"is at version {version} and has {len(declared.upcasters)} upcasters",
                f"Give one for each older version: {max(version - 1, 0)}.",
            )
        setattr(cls, TYPE_ATTRIBUTE, declared)
        return cls

    return mark


def type_of(cls: type[Any]) -> MessageType:
    """Return what is known of a type. A subclass does not inherit its parent's name.

    >>> type_of(int).name
    'int'
    """
    declared = cls.__dict__.get(TYPE_ATTRIBUTE)
    return declared if declared is not None else MessageType(cls.__name__)
