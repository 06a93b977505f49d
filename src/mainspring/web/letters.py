"""Dead letters: shown, carried out after all, corrected, or removed; one by one, or many at once.

Those are alike that have one cause, which one fix mends together: so a kind of them, or some, are retried or removed
together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from hashlib import blake2b
from typing import Annotated, Any, Final, Literal

from fastapi import Path, Query, Request, Response
from msgspec import Raw, json
from msgspec.structs import asdict, replace
from pydantic import ConfigDict, Field

from mainspring.analysis.export.redaction import MARKER
from mainspring.app.given import checked_place
from mainspring.app.internals import internals_of
from mainspring.app.undelivered import undelivered_in
from mainspring.app.viewing import letter_view
from mainspring.errors import MainspringError, NoSuchNameError, SettingError
from mainspring.port.records import EDGE, DeadLetter
from mainspring.web import models
from mainspring.web.models import Asked
from mainspring.web.served import PAGE, PIECE, Actor, Limit, Router, Served, answer, page

LARGEST_ID: Final = 2**63 - 1

LetterId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The id of a dead letter.")]
Force = Annotated[bool, Query(description="Carry it out although its instance has gone on without it.")]
CORRECTION: Final[dict[str, Any]] = {
    "requestBody": {
        "required": False,
        "description": "All fields of the corrected message; nothing: the message as it is.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": {"order_id": "o-1"}}},
    }
}


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "dead letters")
    app = served.app

    @router.get("/dead-letters", "read", models.LetterPage, 503)
    async def letters(
        limit: Limit = PAGE, after: Annotated[int, Query(ge=0, description="The `next` of the page before.")] = 0
    ) -> Response:
        """Return dead letters, the oldest first."""

        def ask(behind: int, wanted: int) -> Awaitable[list[DeadLetter]]:
            return served.store.dead_letters(wanted, behind)

        return await page(ask, lambda each: _shown(served, each), "id", checked_place(after), limit)

    @router.get("/dead-letters/{id}", "read", models.ShownLetter, 404, 503)
    async def letter(id: LetterId) -> Response:
        """Return one dead letter."""
        return answer(_shown(served, await _letter(served, id)))

    @router.post("/dead-letters/{id}/retry", "act", models.Settled, 404, 409, 422, 503, openapi_extra=CORRECTION)
    async def retry(request: Request, id: LetterId, actor: Actor, force: Force = False) -> Response:
        """Carry a dead letter out after all, as it is or corrected. `left` says that it is a dead letter still.

        A command whose instance has ended, was compensated or has taken its failure is refused unless it is forced.
        """
        found = await _letter(served, id)
        body = served.restored(_shown_as(found), await request.body(), _stored(found))
        message = (
            internals_of(app).registry.codec.decode_outside(found.type, found.type_version, body) if body else None
        )
        await app.retry_dead_letter(id, message, actor=actor, force=force)
        return answer(models.Settled(id, bool(await internals_of(app).engine.store.dead_letters(1, 0, [id]))))

    @router.delete("/dead-letters/{id}", "act", models.Settled, 404, 409, 503)
    async def discard(id: LetterId) -> Response:
        """Remove a dead letter for good."""
        await app.discard_dead_letter(id)
        return answer(models.Settled(id, left=False))

    _together(router, served)
    return router


def _shown(served: Served, row: DeadLetter) -> models.ShownLetter:
    """Return a dead letter as it may be shown. What is no JSON object has no fields of which some could be shown."""
    view = letter_view(row)
    message, headers = view.message, view.headers
    if headers is not None and served.redaction.fields:
        if bytes(message) != undelivered_in(row).bytes or not bytes(message).lstrip().startswith(b"{"):
            message = Raw(json.encode(MARKER))
        hides = served.redaction.hides
        headers = {
            name: MARKER if hides(_shown_as(row), name.removeprefix("ce-")) else value
            for name, value in headers.items()
        }
    # Of its error, the store has returned no more than may be shown; its reason is a rule of ours.
    message = None if message is None else served.body(_shown_as(row), bytes(message))
    shown = replace(view, message=message, headers=headers)
    return models.ShownLetter(**asdict(shown), letter_kind=kind_of(row))


def _shown_as(letter: DeadLetter) -> str:
    """Return the type by which something is hidden: none where it came from outside, whatever it calls itself."""
    return "" if letter.workflow == EDGE else letter.type


def _stored(letter: DeadLetter) -> bytes:
    return undelivered_in(letter).bytes if letter.workflow == EDGE else letter.body


async def _letter(served: Served, id: int) -> DeadLetter:
    found = await served.store.dead_letters(1, 0, [id])
    if not found:
        raise NoSuchNameError(f"Dead letter {id}", "does not exist", "List them to see which there are.")
    return found[0]


# ---- kinds of them

ERROR_CHARACTERS: Final = 200
READ_CHARACTERS: Final = 2_000
"""How much of an error is read: more than is kept, for ids in it may be long."""
KIND_BYTES: Final = 12

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
# Each word is searched for a digit by itself: an expression that looked for one would begin again at each letter.
_WORD: Final = re.compile(r"[\w-]+")


def alike(error: str, instance: str = "") -> str:
    """Return an error without what differs between errors of one kind: ids, numbers, and texts in quotes.

    >>> alike("order o-17 of 'ann' was refused after 3 s")
    "order # of '…' was refused after # s"
    >>> alike("Orders/ann/b has completed already", "ann/b")
    'Orders/# has completed already'
    """
    error = error[:READ_CHARACTERS]
    if instance:
        # Whatever it looks like; but only as a word of its own, for it may be as short as an "a".
        error = re.sub(rf"(?<![\w-]){re.escape(instance)}(?![\w-])", "#", error)
    return _WORD.sub(_without_number, _QUOTED.sub("'…'", error))[:ERROR_CHARACTERS]


def _without_number(word: re.Match[str]) -> str:
    """Return a word, unless it is a number or has one in it, such as most ids."""
    return "#" if any(map(str.isdecimal, word[0])) else word[0]


def kind_of(letter: DeadLetter) -> str:
    """Return a name for all dead letters like this one: of one workflow and type, with one reason and like errors."""
    instance = letter.instance if letter.workflow != EDGE else ""
    parts = (letter.workflow, letter.type, alike(letter.reason, instance), alike(letter.error or "", instance))
    return blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=KIND_BYTES).hexdigest()


# ---- many at once

LOOKED_AT: Final = 10_000
"""How many dead letters are sorted into kinds, the oldest ones."""
KINDS: Final = 1_000
AT_ONCE: Final = 1_000
"""How many are retried or removed by one request; `left` says that there are more."""
REFUSALS_SHOWN: Final = 100

Operation = Literal["retry", "discard"]
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]


class LettersOrder(Asked):
    """Which dead letters: some by their ids, or all of a kind. Unless `dry_run` is false, they are only counted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [17, 18], "dry_run": False}]})

    ids: list[Id] | None = Field(default=None, min_length=1, max_length=AT_ONCE)
    kind: str | None = Field(default=None, max_length=2 * KIND_BYTES, description="As /api/dead-letter-kinds names it.")
    dry_run: bool = True
    force: bool = Field(default=False, description="Retry also what its instance has gone on without.")


def _together(router: Router, served: Served) -> None:
    @router.get("/dead-letter-kinds", "read", models.LetterKinds, 503)
    async def kinds() -> Response:
        """Return what kinds of dead letters there are, the most frequent first, among the 10,000 oldest."""
        return answer(await _kinds(served))

    @router.post("/dead-letter-operations/{operation}", "act", models.ManySettled, 409, 422, 503)
    async def operate(
        operation: Annotated[Operation, Path(description="What is to be done.")], order: LettersOrder, actor: Actor
    ) -> Response:
        """Retry or discard many dead letters: those with some ids, or all of a kind; a thousand at most by a request.

        Unless `dry_run` is false they are only counted. One that refuses does not stop the others.
        """
        if (order.ids is None) == (order.kind is None):
            raise SettingError("The order", "either ids or a kind", "Give one of the two.")
        return answer(await _operated(served, operation, order, actor))


async def _kinds(served: Served) -> models.LetterKinds:
    firsts: dict[str, DeadLetter] = {}
    counts = Counter[str]()
    looked_at, others = 0, 0
    async for letter in _letters(served):
        looked_at += 1
        kind = kind_of(letter)
        if kind in firsts or len(firsts) < KINDS:
            firsts.setdefault(kind, letter)
            counts[kind] += 1
        else:
            others += 1
    kinds = [
        models.LetterKind(kind, first.workflow, first.type, first.reason, first.error, counts[kind], first.id)
        for kind, first in firsts.items()
    ]
    kinds.sort(key=lambda each: (-each.count, each.first))
    return models.LetterKinds(kinds, others, looked_at, looked_at == LOOKED_AT)


async def _letters(served: Served) -> AsyncIterator[DeadLetter]:
    """Yield the oldest dead letters as they may be shown, read some at a time: each may be large.

    Of what is not shown, not even the names of their kinds must show which are alike.
    """
    after, seen = 0, 0
    while seen < LOOKED_AT and (page := await served.store.dead_letters(min(PIECE, LOOKED_AT - seen), after)):
        for letter in page:
            yield letter
        after, seen = page[-1].id, seen + len(page)


async def _operated(served: Served, operation: Operation, order: LettersOrder, actor: str | None) -> models.ManySettled:
    app = served.app
    ids = await _wanted(served, order)
    chosen = ids[:AT_ONCE]
    done, refused = 0, list[models.LetterRefusal]()
    for id in () if order.dry_run else chosen:
        try:
            if operation == "retry":
                await app.retry_dead_letter(id, actor=actor, force=order.force)
            else:
                await app.discard_dead_letter(id)
            done += 1
        except MainspringError as error:
            refused.append(models.LetterRefusal(id, served.detail(error)))
    return models.ManySettled(
        operation=operation,
        dry_run=order.dry_run,
        matched=len(ids),
        done=done,
        left=0 if order.dry_run else len(ids) - len(chosen),
        refusals=len(refused),
        refused=refused[:REFUSALS_SHOWN],
    )


async def _wanted(served: Served, order: LettersOrder) -> list[int]:
    if order.ids is not None:
        return sorted(set(order.ids))
    return [letter.id async for letter in _letters(served) if kind_of(letter) == order.kind]
