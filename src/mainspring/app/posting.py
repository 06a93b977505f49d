"""Posting: a message in a caller's own transaction, through its own connection to the same database.

It becomes a row of the table `posted` there, beside whatever rows that transaction writes, and exists if they do. A
worker then takes it in like any other message. Nothing of ours has to run where it is posted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from msgspec import Struct

from mainspring.app.connections import Posting, post, post_blocking
from mainspring.app.internals import Internals
from mainspring.core.messages import Message
from mainspring.engine.inputs.pending import Pending
from mainspring.port.records import InputRow
from mainspring.stores import posting_to
from mainspring.stores.sealed import sealed_input


class Posted(Struct, frozen=True):
    """What was posted: the message's id, and the instances that it goes to, written `workflow/id`.

    What was published and has no taker has neither.

    >>> Posted("m-1", ("OrderFulfilment/o-1",)).instances
    ('OrderFulfilment/o-1',)
    """

    message_id: str
    instances: tuple[str, ...]


class PostOptions(TypedDict, total=False):
    """What may be said of a message that is posted; see `Post`.

    >>> options: PostOptions = {"id": "checkout-17", "publish": True}
    """

    id: str | None
    actor: str | None
    correlation_id: str | None
    publish: bool
    workflow: str | type[Any] | None


class Post:
    """Sends in a transaction of yours, on PostgreSQL: `await app.post(message, connection)`.

    `connection` is what you write your own rows with, inside a transaction: an asyncpg or psycopg connection, a
    SQLAlchemy session or connection. The message is sent if that transaction commits, and what is wrong with it is
    raised here. The app need not run in this process. `app.post.blocking` is for connections without `await`, and for
    Django's. On SQLite no other library may write to the file: see `app.transaction`.

    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("postgresql://db.example/shop")
    >>> app.add(Counter())
    >>> app.post.blocking(Count("c-1"), connection=object())
    Traceback (most recent call last):
    mainspring.errors.running.PostingError: builtins.object is no connection that is known here. Give what you \
write your rows with: a connection of asyncpg, psycopg, SQLAlchemy (or a session) or Django.
    """

    def __init__(self, internals: Internals) -> None:
        self._internals = internals
        self._posting: Posting | None = None

    async def __call__(self, message: Message, connection: Any, **options: Unpack[PostOptions]) -> Posted:
        """Send a message, or publish it, if the transaction of an async connection commits.

        `id` makes it idempotent: the same id and message again is taken once; with another message it becomes a dead
        letter, for the caller can no longer get an error.
        """
        posting = self._prepared()
        pendings = self._pendings(message, **options)
        await post(connection, posting, self._rows(pendings))
        return _posted(pendings)

    def blocking(self, message: Message, connection: Any, **options: Unpack[PostOptions]) -> Posted:
        """Send a message, or publish it, if the transaction of a connection without `await` commits."""
        posting = self._prepared()
        pendings = self._pendings(message, **options)
        post_blocking(connection, posting, self._rows(pendings))
        return _posted(pendings)

    def _prepared(self) -> Posting:
        if self._posting is None:
            self._posting = posting_to(self._internals.url)
        return self._posting

    def _pendings(
        self, message: Any, *, publish: bool = False, workflow: str | type[Any] | None = None, **said: Any
    ) -> list[Pending]:
        envelopes = self._internals.envelopes
        if publish:
            pendings = envelopes.published(message, **said)
        else:
            pendings = [envelopes.sent(message, workflow=workflow, **said)]
        envelopes.handed_over(pendings)
        return pendings

    def _rows(self, pendings: Sequence[Pending]) -> list[InputRow]:
        rows = [pending.input_row() for pending in pendings]
        seal = self._internals.seal
        return rows if seal is None else [sealed_input(row, seal) for row in rows]


def _posted(pendings: Sequence[Pending]) -> Posted:
    return Posted(pendings[0].id if pendings else "", tuple(str(pending.ref) for pending in pendings))
