"""Pauses: handlers and workflows of which nothing more is begun, in all workers."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from pydantic import ConfigDict, Field

from mainspring.analysis.export.viewed_store import paused
from mainspring.app.pauses import with_waiting
from mainspring.web import models
from mainspring.web.instances import REASON_CHARACTERS
from mainspring.web.models import Asked
from mainspring.web.served import Actor, Router, Served, answer

What = Annotated[
    str, Path(description="What a handler takes, or a workflow, by its name.", examples=["handler:ChargeCard"])
]


class PauseOrder(Asked):
    """Why it is paused."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the bank moves"}]})

    reason: str = Field(default="by an operator", max_length=REASON_CHARACTERS)


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "app")
    pauses = served.app.pauses

    @router.get("/pauses", "read", models.PausesDocument, 503)
    async def list_pauses() -> Response:
        """Return what is paused for all workers, by which actor, since when and why, and what can be paused."""
        return await _found(served)

    @router.post("/pauses/{what:path}", "act", models.PausesDocument, 404, 409, 422, 503)
    async def pause(what: What, actor: Actor, order: PauseOrder | None = None) -> Response:
        """Let all workers begin nothing more of a handler or a workflow; they know within two seconds."""
        await pauses.pause(what, (order or PauseOrder()).reason, actor=actor)
        return await _found(served)

    @router.delete("/pauses/{what:path}", "act", models.PausesDocument, 404, 409, 422, 503)
    async def resume(what: What, actor: Actor) -> Response:
        """Resume it, with what has waited."""
        await pauses.resume(what, actor=actor)
        return await _found(served)

    return router


async def _found(served: Served) -> Response:
    found = await with_waiting(served.store, await paused(served.store))
    pausable = [f"{kind}:{name}" for kind, name in served.app.pauses.pausable()]
    return answer(models.PausesDocument(found, pausable))
