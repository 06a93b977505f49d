"""A verb as a dialogue with a database: it yields named statements with their values, and is sent their rows.

So a verb is written once, though a thread asks SQLite, and the event loop PostgreSQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import wraps
from types import CoroutineType
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from mainspring.stores.sql.dialect import Dialect

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Verbs")

Row: TypeAlias = Sequence[Any]
Dialogue: TypeAlias = Generator[tuple[Any, ...], Sequence[Row], T]
"""Yields a statement's name and its values, is sent its rows, and returns what the verb returns."""


def run(dialogue: Dialogue[T], ask: Callable[..., Sequence[Row]]) -> T:
    """Run a dialogue: ask what it wants to know, and return what comes of it.

    >>> def two() -> Dialogue[int]:
    ...     ((number,),) = yield "one", 1
    ...     return number + 1
    >>> run(two(), lambda _name, value: [(value,)])
    2
    """
    try:
        statement = next(dialogue)
        while True:
            statement = dialogue.send(ask(*statement))
    except StopIteration as end:
        return end.value


async def run_async(dialogue: Dialogue[T], ask: Callable[..., Awaitable[Sequence[Row]]]) -> T:
    """Do the same in the event loop."""
    try:
        statement = next(dialogue)
        while True:
            statement = dialogue.send(await ask(*statement))
    except StopIteration as end:
        return end.value


class Verbs(ABC):
    """What the verbs of both SQL stores need of theirs."""

    dialect: Dialect
    now_us: Callable[[], int]

    @abstractmethod
    async def in_read(self, begin: Callable[[], Dialogue[T]], *, at_one_moment: bool) -> T:
        """Run a dialogue that changes nothing; it may be begun again. One statement sees one moment anyway."""

    @abstractmethod
    async def in_transaction(self, begin: Callable[[int | None], Dialogue[T]]) -> T:
        """Run a dialogue in a transaction. It begins with the time, or None where the database is to say it."""


Verb: TypeAlias = "Callable[Concatenate[S, P], CoroutineType[Any, Any, T]]"


def read(verb: Callable[Concatenate[S, P], Dialogue[T]]) -> Verb[S, P, T]:
    """Make a verb of a dialogue that changes nothing, of one statement or several that need not fit together."""
    return _reading(verb, at_one_moment=False)


def read_at_one_moment(verb: Callable[Concatenate[S, P], Dialogue[T]]) -> Verb[S, P, T]:
    """Make a verb of a dialogue that changes nothing, whose statements have to fit together."""
    return _reading(verb, at_one_moment=True)


def _reading(dialogue: Callable[Concatenate[S, P], Dialogue[T]], *, at_one_moment: bool) -> Verb[S, P, T]:
    @wraps(dialogue)
    async def verb(self: S, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.in_read(lambda: dialogue(self, *args, **kwargs), at_one_moment=at_one_moment)

    return verb
