"""Many dead letters at once: which kinds there are, and one kind, or some of them, retried or removed together."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Final, Literal

from fastapi import Path, Response
from pydantic import ConfigDict, Field

from mainspring.errors import MainspringError, SettingError
from mainspring.port.records import DeadLetter
from mainspring.web import models
from mainspring.web.letter_kinds import KIND_BYTES, kind_of
from mainspring.web.letters import LARGEST_ID
from mainspring.web.models import Asked
from mainspring.web.served import PIECE, Actor, Router, Served, answer

LOOKED_AT: Final = 10_000
"""How many dead letters are sorted into kinds, the oldest ones."""
KINDS: Final = 1_000
AT_ONCE: Final = 1_000
"""How many are retried or removed by one request; `left` says that there are more."""
REFUSALS_SHOWN: Final = 100

Operation = Literal["retry", "discard"]
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]


class Order(Asked):
    """Which dead letters: some by their ids, or all of a kind. Unless `dry_run` is false, they are only counted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [17, 18], "dry_run": False}]})

    ids: list[Id] | None = Field(default=None, min_length=1, max_length=AT_ONCE)
    kind: str | None = Field(default=None, max_length=2 * KIND_BYTES, description="As /api/dead-letter-kinds names it.")
    dry_run: bool = True
    force: bool = Field(default=False, description="Retry also what its instance has gone on without.")


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "dead letters")

    @router.get("/dead-letter-kinds", "read", models.LetterKinds, 503)
    async def kinds() -> Response:
        """Return what kinds of dead letters there are, the most frequent first, among the 10,000 oldest."""
        return answer(await _kinds(served))

    @router.post("/dead-letter-operations/{operation}", "act", models.ManySettled, 409, 422, 503)
    async def operate(
        operation: Annotated[Operation, Path(description="What is to be done.")], order: Order, actor: Actor
    ) -> Response:
        """Retry or discard many dead letters: those with some ids, or all of a kind; a thousand at most by a request.

        Unless `dry_run` is false they are only counted. One that refuses does not stop the others.
        """
        if (order.ids is None) == (order.kind is None):
            raise SettingError("The order", "either ids or a kind", "Give one of the two.")
        return answer(await _operated(served, operation, order, actor))

    return router


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


async def _operated(served: Served, operation: Operation, order: Order, actor: str | None) -> models.ManySettled:
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


async def _wanted(served: Served, order: Order) -> list[int]:
    if order.ids is not None:
        return sorted(set(order.ids))
    return [letter.id async for letter in _letters(served) if kind_of(letter) == order.kind]
