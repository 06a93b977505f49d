"""The app that is served, who may do what with it, and how answers are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Query, Request, Response
from fastapi.params import Depends as Dependency
from msgspec import Raw, Struct, json

from mainspring.analysis.model import Machine
from mainspring.analysis.redaction import Redaction
from mainspring.app import Mainspring
from mainspring.engine.intake import checked_actor
from mainspring.web.access import Access, Permission, Who
from mainspring.web.asgi import headers_of
from mainspring.web.live import Live
from mainspring.web.problems import Problem, Refusal
from mainspring.web.slow import Slow

SCHEMAS: Final = "#/components/schemas/"
ACTOR_HEADER: Final = "x-mainspring-actor"
PAGE: Final = 100
LARGEST_PAGE: Final = 1_000
LARGEST_WAIT_SECONDS: Final = 60.0

Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="How many at most.")]
Workflow = Annotated[str, Path(description="The name of a workflow.", examples=["OrderFulfilment"])]
Id = Annotated[str, Path(description="The id of an instance; it may hold slashes.", examples=["o-1"])]


class Needed:
    """A dependency that lets in who has a permission. Every route has one: a test walks over all of them."""

    def __init__(self, access: Access, permission: Permission) -> None:
        self._access = access
        self.permission: Permission = permission

    def __call__(self, request: Request) -> None:
        address = request.client.host if request.client else None
        who = self._access.who(headers_of(request.scope), address)
        if who is None:
            detail = "Send a token: Authorization: Bearer …"
            raise Refusal(Problem(401, "not known", detail, "NotKnown"))
        if not who.may(self.permission):
            detail = f"The role {who.role} does not permit to {self.permission}."
            raise Refusal(Problem(403, "not permitted", detail, "NotPermitted"))
        request.state.who = who


class Served:
    """What all routes share.

    >>> Served(Mainspring("memory://")).needs("read").dependency.permission
    'read'
    """

    def __init__(self, app: Mainspring, access: Access | None = None, redact: Iterable[str] = ()) -> None:
        self.app = app
        self.access = access or Access()
        self.slow = Slow(app)
        self.live = Live(app, self.shown)
        self.machines: dict[str, Machine] = {}
        """Workflows as their code says they are, as far as somebody has asked."""
        self.redaction = Redaction(payloads=True, fields=redact)

    def needs(self, permission: Permission) -> Any:
        """Return the dependency of a route that asks for a permission."""
        return Dependency(Needed(self.access, permission))

    def body(self, type: str | None, body: bytes | None) -> Raw | None:
        """Return a stored body as it may be shown: what is declared sensitive is not."""
        return None if body is None or type is None else Raw(self.redaction.body(type, body))

    def shown(self, document: dict[str, Any], field: str = "message") -> dict[str, Any]:
        """Return a document with its message as it may be shown."""
        raw, type = document.get(field), document.get("type")
        return document if raw is None else {**document, field: self.body(type, bytes(raw))}


def who(request: Request) -> Who:
    """Return who sends a request that was let in."""
    return request.state.who


def actor(request: Request) -> str | None:
    """Return who is to be recorded: whom we know; else whom somebody at this machine says to be."""
    return who(request).name or checked_actor(request.headers.get(ACTOR_HEADER))


Actor = Annotated[str | None, Depends(actor)]


def told(cls: type[Struct]) -> dict[str, Any]:
    """Return what OpenAPI is told of an answer that is such a record: `api` adds its schema.

    >>> told(Problem)["content"]["application/json"]["schema"]
    {'$ref': '#/components/schemas/Problem'}
    """
    schema = {"$ref": f"{SCHEMAS}{cls.__name__}"}
    return {"description": "Successful Response", "content": {"application/json": {"schema": schema}}}


def answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a document as an answer in JSON."""
    return Response(
        json.encode(document),
        status,
        {"cache-control": "no-store", **(headers or {})},
        media_type="application/json",
    )


def page(documents: list[dict[str, Any]], limit: int, cursor: Callable[[dict[str, Any]], Any]) -> Response:
    """Return a page of a list: what to ask for the next one stands in `next`, and is null behind the last."""
    more = len(documents) == limit
    return answer({"items": documents, "next": cursor(documents[-1]) if more and documents else None})
