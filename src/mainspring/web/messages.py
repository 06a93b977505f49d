"""Messages in: send, publish, request, and how an instance ended.

Those of other services come in their envelope: among them the results of commands that were carried out elsewhere.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, cast

from fastapi import Path, Query, Request, Response
from msgspec import json
from msgspec.structs import replace

from mainspring.app import Receipt
from mainspring.app.answers import take_envelope
from mainspring.app.arrivals import Arrivals
from mainspring.app.internals import internals_of
from mainspring.app.outside import publish_outside, read_message, send_outside
from mainspring.app.requests import request as requested
from mainspring.codec.wire import MEDIA_TYPE, read_envelope, schema
from mainspring.web import models
from mainspring.web.instances import loaded
from mainspring.web.matching import Conditions
from mainspring.web.served import LARGEST_WAIT_SECONDS, Actor, Id, Router, Served, Workflow, answer

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


def _enveloped(router: Router, served: Served) -> None:
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


def _inlined(part: Any, definitions: dict[str, Any]) -> Any:
    """Return a schema without references: OpenAPI would look for them elsewhere."""
    if isinstance(part, list):
        return [_inlined(each, definitions) for each in part]  # pyright: ignore[reportUnknownVariableType]  JSON
    if not isinstance(part, dict):
        return part
    found: dict[str, Any] = {str(name): _inlined(value, definitions) for name, value in part.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  JSON
    reference = found.pop("$ref", None)
    return found if reference is None else {**definitions[str(reference).rpartition("/")[2]], **found}


WAIT_SECONDS: Final = 30.0

TypeName = Annotated[str, Path(description="The name of a message type.", examples=["PlaceOrder"])]
MessageId = Annotated[
    str | None,
    Query(alias="id", description="The message's id: sent again, it is taken once.", examples=["checkout-17"]),
]
Wait = Annotated[float, Query(gt=0, le=LARGEST_WAIT_SECONDS, description="Seconds to wait at most.")]
# The body is read by the codec alone: what a lenient reader would let through must not come so far.
FIELDS: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "The fields of the message.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": {"order_id": "o-1"}}},
    }
}


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "messages")
    app, inside = served.app, internals_of(served.app)

    @router.post("/messages/{type}", "send", models.Taken, 404, 409, 410, 412, 413, 422, 503, openapi_extra=FIELDS)
    async def send(
        request: Request, type: TypeName, actor: Actor, conditions: Conditions, id: MessageId = None
    ) -> Response:
        """Send a message to the one workflow that takes it, and return when it is durable.

        With the same id it is taken once, however often it is sent; a different message under that id is refused.
        With If-Match it is taken only if the instance is where it was read, and no input waits there.
        """
        message = read_message(app, type, await request.body())
        return answer(_taken(await send_outside(inside, message, id=id, actor=actor, **conditions)))

    @router.post("/events/{type}", "send", models.Published, 409, 413, 422, 503, openapi_extra=FIELDS)
    async def publish(request: Request, type: TypeName, actor: Actor, id: MessageId = None) -> Response:
        """Publish an event to every workflow that takes it."""
        message = read_message(app, type, await request.body())
        receipts = await publish_outside(inside, message, id=id, actor=actor)
        return answer(models.Published([_taken(receipt) for receipt in receipts]))

    @router.post(
        "/requests/{type}", "send", models.Replied, 404, 409, 410, 412, 413, 422, 503, 504, openapi_extra=FIELDS
    )
    async def ask(
        request: Request,
        type: TypeName,
        actor: Actor,
        conditions: Conditions,
        id: MessageId = None,
        wait: Wait = WAIT_SECONDS,
    ) -> Response:
        """Send a message and wait for the reply to it. A reply that comes later can be had with the same id."""
        message = read_message(app, type, await request.body())
        reply = await requested(inside, message, timeout=_seconds(wait), id=id, actor=actor, **conditions, outside=True)
        return answer(models.Replied(_document(served, reply)))

    @router.get("/results/{workflow}/{id:path}", "read", models.Ended, 404, 409, 410, 503, 504)
    async def result(workflow: Workflow, id: Id, wait: Wait = WAIT_SECONDS) -> Response:
        """Wait until an instance has ended, and return its result."""
        await loaded(app, workflow, id, events=0)
        instance = app.instance_at(f"{workflow}/{id}")
        end = await instance.end(_seconds(wait))
        return answer(models.Ended(str(instance), _result(served, workflow, end)))

    _enveloped(router, served)
    return router


def _seconds(wait: float) -> timedelta:
    return timedelta(seconds=wait)


def _taken(receipt: Receipt[Any]) -> models.Taken:
    return models.Taken(str(receipt), receipt.status, receipt.message_id)


def _result(served: Served, workflow: str, end: Any) -> Any:
    """Return the result of a workflow, as its style gives it and as it may be shown."""
    style, document = internals_of(served.app).registry.workflows[workflow].workflow, _document(served, end)
    if style.result_of(end) is end:
        return document
    kind = cast("type[Any]", type(end))
    return style.result_of(json.decode(document, type=kind))  # of what is shown: a field may be redacted


def _document(served: Served, message: Any) -> Any:
    """Return a message as it is stored; None stays None."""
    if message is None:
        return None
    encoded = internals_of(served.app).registry.codec.encode(message)
    return served.body(encoded.name, encoded.body)
