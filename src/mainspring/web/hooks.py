"""Webhooks that other services call. A signature is their proof; there is no token, and no role.

A page from elsewhere may make a browser call one, too: that is why other routes ask where a request comes from. Here it
gains nothing by it, for a browser sends along nothing that would count: no cookie, no address, only a signature does,
and the page cannot make one.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path, Request, Response

from mainspring.app.hooks import Hook, Reception
from mainspring.app.internals import internals_of
from mainspring.web import models
from mainspring.web.asgi import headers_of
from mainspring.web.problems import Problem, Refusal
from mainspring.web.served import Router, Served, answer, told

Name = Annotated[str, Path(description="The name of a hook, as the app declares it.", examples=["payments"])]
PAYLOAD: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "Whatever its sender sends, signed as the hook's scheme has it.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": {"type": "paid", "order_id": "o-1"}}},
    }
}
# A client that cannot prove to be the sender learns nothing else: not what was wrong, nor what would have been right.
_REFUSALS: Final[dict[Reception, tuple[int, str, str, str]]] = {
    "unproven": (401, "not proven", "Its signature does not prove who sent it.", "NotProven"),
    "stale": (400, "stale", "It was signed too long ago, or by a clock that is wrong.", "Stale"),
    "too often": (429, "too often", "Send it again after a while.", "TooOften"),
}


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "webhooks")

    kept = {202: told(models.HookTaken, "Kept as a dead letter: it cannot be read.")}
    refused = (400, 401, 404, 413, 429, 503)

    @router.post("/hooks/{name}", None, models.HookTaken, *refused, openapi_extra=PAYLOAD, responses=kept)
    async def hook(request: Request, name: Name) -> Response:
        """Take what another service sends. Anything but 2xx says that nothing was kept, and to send it again."""
        found = internals_of(served.app).hooks.get(name)
        if found is None:
            raise Refusal(Problem(404, "no such hook", f"There is no hook {name[:100]!r}.", "NoSuchHook"))
        outcome = await found.take(headers_of(request.scope), await _body(request, found))
        if outcome in _REFUSALS:
            problem = Problem(*_REFUSALS[outcome])
            after = {"retry-after": str(found.retry_seconds)} if outcome == "too often" else {}
            return Response(problem.body, problem.status, {**problem.headers, **after})
        return answer(models.HookTaken("taken")) if outcome == "taken" else answer(models.HookTaken("kept"), 202)

    return router


async def _body(request: Request, hook: Hook) -> bytes:
    """Return the raw bytes of a request, no more of them than the hook takes."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > hook.body_bytes:
            detail = f"A body has at most {hook.body_bytes:,} bytes here."
            raise Refusal(Problem(413, "too large", detail, "BodyTooLarge"))
    return bytes(body)
