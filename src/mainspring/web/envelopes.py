"""Messages of other services in their envelope: among them the results of commands that were carried out elsewhere."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request, Response
from msgspec.structs import replace

from mainspring.app.answers import take_envelope
from mainspring.app.arrivals import Arrivals
from mainspring.codec.wire import MEDIA_TYPE, read_envelope, schema
from mainspring.web import models
from mainspring.web.served import Actor, Router, Served, answer

_RESULT: Final = {
    "specversion": "1.0",
    "id": "charge-17",
    "source": "/payments",
    "type": "CardCharged",
    "kind": "result",
    "causationid": "OrderFulfilment/o-1/3",
    "instance": "OrderFulfilment/o-1",
    "data": {"order_id": "o-1"},
}


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "messages")
    app = served.app
    plain = {name: value for name, value in schema().items() if not name.startswith("$")}
    body = {"schema": _inlined(plain, schema()["$defs"]), "example": _RESULT}
    envelope_body: dict[str, Any] = {
        "requestBody": {
            "required": True,
            "description": "A message in its envelope: CloudEvents 1.0, structured.",
            "content": {MEDIA_TYPE: body, "application/json": body},
        }
    }

    @router.post("/envelopes", "send", models.Published, 404, 409, 413, 422, 503, openapi_extra=envelope_body)
    async def take(request: Request, actor: Actor) -> Response:
        """Take a message of another service, and return when it is durable. Sent again, it is taken once.

        One that names an instance goes there past its route. A result also names the command that it answers.
        """
        # The actor is the authenticated user, whatever the envelope says.
        envelope = replace(read_envelope(await request.body()), actor=actor)
        taken = await take_envelope(app, Arrivals(app), envelope)
        return answer(models.Published([models.Taken(instance, status, id) for instance, status, id in taken]))

    return router


def _inlined(part: Any, definitions: dict[str, Any]) -> Any:
    """Return a schema without references: OpenAPI would look for them elsewhere."""
    if isinstance(part, list):
        return [_inlined(each, definitions) for each in part]  # pyright: ignore[reportUnknownVariableType]  JSON
    if not isinstance(part, dict):
        return part
    found: dict[str, Any] = {str(name): _inlined(value, definitions) for name, value in part.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  JSON
    reference = found.pop("$ref", None)
    return found if reference is None else {**definitions[str(reference).rpartition("/")[2]], **found}
