"""Dead letters: looked at, carried out after all, corrected, or removed."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from msgspec import Raw, json
from msgspec.structs import asdict, replace

from mainspring.analysis.export.redaction import MARKER
from mainspring.app.given import checked_place
from mainspring.app.internals import internals_of
from mainspring.app.undelivered import undelivered_in
from mainspring.app.viewing import letter_view
from mainspring.errors import NoSuchNameError
from mainspring.port.records import EDGE, DeadLetter
from mainspring.web import models
from mainspring.web.letter_kinds import kind_of
from mainspring.web.served import PAGE, Actor, Limit, Router, Served, answer, page

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
