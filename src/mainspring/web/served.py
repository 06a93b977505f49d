"""The app that is served, who may do what with it, and how answers are written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias, TypeVar, Unpack, cast, get_args
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute
from msgspec import DecodeError, Raw, Struct, json
from msgspec.structs import astuple, replace
from starlette.routing import BaseRoute, Route

from mainspring.analysis.diagram.mining import machine_of
from mainspring.analysis.export.redaction import MARKER, Redaction
from mainspring.analysis.export.viewed_store import viewed
from mainspring.analysis.reading.model import Machine
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.search import Search, filter_of
from mainspring.codec.strict import scan
from mainspring.engine.inputs.senders import checked_actor
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import (
    DuplicateIdError,
    InstanceFailedError,
    InstanceSuspendedError,
    NoReplyError,
    NoSuchInstanceError,
    NoSuchTaskError,
    NotFromOutsideError,
    OperationError,
    PositionConflictError,
    SettingError,
    StoreError,
    TaskRefusedError,
    WaitTimeoutError,
    WiringError,
)
from mainspring.errors.kinds import kind_of
from mainspring.logs import logger
from mainspring.port.records import InstanceFilter
from mainspring.port.store import Store
from mainspring.web.access import Access, Permission, Who
from mainspring.web.asgi import headers_of
from mainspring.web.live import Live
from mainspring.web.matching import refuse_conditions, unknown_conditions
from mainspring.web.models import Page
from mainspring.web.problems import Problem, Refusal, problem_of, responses
from mainspring.web.slow import Slow

SCHEMAS: Final = "#/components/schemas/"
ACTOR_HEADER: Final = "x-mainspring-actor"
PAGE: Final = 100
LARGEST_PAGE: Final = 1_000
PAGE_BYTES: Final = 8 * 1_024 * 1_024
"""A page ends when its messages have so many, however many were asked for."""
PIECE: Final = 100
"""How many rows with messages are read at once."""
# What is shown in place of a body that cannot be read: its seal cannot be opened here.
UNREADABLE: Final = Raw(b'{"$unreadable":true}')
LARGEST_WAIT_SECONDS: Final = 60.0

R = TypeVar("R")
P = TypeVar("P")
V = TypeVar("V", bound=Struct)
Ask: TypeAlias = Callable[[P, int], Awaitable[Sequence[R]]]
Answering: TypeAlias = Callable[..., Awaitable[Response]]
Decorator: TypeAlias = Callable[[Answering], Answering]

audit = logger("mainspring.audit")

Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="How many at most.")]
Workflow = Annotated[str, Path(description="The name of a workflow.", examples=["OrderFulfilment"])]
Id = Annotated[str, Path(description="The id of an instance; it may hold slashes.", examples=["o-1"])]


# Fields of documents in which an error may quote what is not to be shown.
TEXTS: Final = ("error", "reason", "problem")
# Errors that say names, ids, rules and what the caller asked for. Any other may quote a message, a state or an
# error.
QUOTING_NOTHING: Final = (
    *(NoSuchInstanceError, NoSuchTaskError, TaskRefusedError, DuplicateIdError, NotFromOutsideError),
    *(NoReplyError, PositionConflictError),
    *(OperationError, SettingError, WiringError, StoreError),
)
# What is done with these is logged as well: not everything has a stream to be recorded in.
AUDITED: Final[frozenset[Permission]] = frozenset({"act", "administer"})


class Needed:
    """A dependency that lets in users with a permission. Every route has one: a test walks over all of them."""

    def __init__(self, access: Access, permission: Permission) -> None:
        self._access = access
        self.permission: Permission = permission

    # All that every request passes is a coroutine, though nothing waits: FastAPI would send a function to a thread.
    async def __call__(self, request: Request) -> None:
        if getattr(request.state, "asked_by", None) is not self:  # a route that is `Checked` has asked before
            self.check(request)

    def check(self, request: Request) -> None:
        """Let a request in, or refuse it."""
        address = request.client.host if request.client else None
        who = self._access.who(headers_of(request.scope), address)
        if who is None:
            detail = "Send a token: Authorization: Bearer …"
            raise Refusal(Problem(401, "not known", detail, "NotKnown"))
        if not who.may(self.permission):
            detail = f"The role {who.role} does not permit to {self.permission}."
            raise Refusal(Problem(403, "not permitted", detail, "NotPermitted"))
        request.state.who, request.state.asked_by = who, self
        if self.permission in AUDITED:
            audit.info("%s: %s %s", who.name or "anonymous", request.method, path_of(request))


class Checked(APIRoute):
    """A route that authenticates before it reads anything: FastAPI would read the body, and its JSON, first.

    What it is not to do but on a condition that it does not know, it does not do. And it is made when it is first asked
    for: FastAPI takes a millisecond or two for each, and a server has more than sixty.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        Route.__init__(self, path, endpoint, include_in_schema=options.get("include_in_schema", True))
        self.methods = {method.upper() for method in options.get("methods") or ("GET",)}  # without the HEAD of `Route`
        del self.app
        self._unmade: dict[str, Any] = {"path": path, "endpoint": endpoint, **options}

    def __getattr__(self, name: str) -> Any:
        """Make the route: what is asked for is not there yet."""
        unmade: dict[str, Any] | None = vars(self).pop("_unmade", None)
        if unmade is None:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        super().__init__(**unmade)
        return getattr(self, name)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request, behind what lets it in."""
        answered = super().get_route_handler()
        needed = [each.dependency for each in self.dependencies if isinstance(each.dependency, Needed)]
        unknown = unknown_conditions(self)

        async def checked(request: Request) -> Response:
            for each in needed:
                each.check(request)
            refuse_conditions(request.headers, unknown)
            return await answered(request)

        return checked


class Served:
    """What all routes share.

    >>> Served(Mainspring("memory://")).needs("read").dependency.permission
    'read'
    """

    def __init__(self, app: Mainspring, access: Access | None = None, redact: Iterable[str] = ()) -> None:
        self.app = app
        self.access = access or Access()
        self.slow = Slow(app)
        self.live = Live(app, self.shown, beside=self.slow.beside)
        self._machines: dict[str, Machine] = {}
        self.redaction = Redaction(payloads=True, fields=redact)
        self.redaction.check(internals_of(app).registry)
        self.on_stop: list[Callable[[], Awaitable[None]]] = []
        """What routes want to be done before the app stops."""

    def needs(self, permission: Permission) -> Any:
        """Return the dependency of a route that asks for a permission."""
        return Dependency(Needed(self.access, permission))

    def machine(self, entry: WorkflowEntry) -> Machine:
        """Return a workflow as its code says it is; code does not change while it runs. It takes a while at first."""
        known = self._machines.get(entry.name)
        if known is None:
            known = self._machines[entry.name] = machine_of(entry)
        return known

    def body(self, type: str | None, body: bytes | None) -> Raw | None:
        """Return a stored body as it may be shown: what is declared sensitive is not, nor is what is no JSON."""
        if body is None or type is None:
            return None
        try:
            return json.decode(self.redaction.body(type, body), type=Raw)
        except DecodeError:
            return UNREADABLE

    def restored(self, type: str, given: bytes, stored: bytes) -> bytes:
        """Return a body that a user sends back corrected, with what was not shown to them as it is stored."""
        if not self.redaction.fields or MARKER.encode() not in given:
            return given
        scan(type or "The body", given)  # before a lenient reader makes something plain of what is doubtful
        return self.redaction.restored(type, given, stored)

    @property
    def store(self) -> Store:
        """The app's store, in which errors are found and read as they may be shown."""
        return self.view(internals_of(self.app).engine.store)

    def view(self, store: Store) -> Store:
        """Return any store so."""
        return viewed(store, self.redaction)

    def sought(self, **search: Unpack[Search]) -> InstanceFilter:
        """Return a search as a store takes it; what is not shown cannot be searched by: the answers would reveal it."""
        where = filter_of(**search)
        for wanted in where.attributes:
            if self.redaction.hides("", wanted.name):
                raise SettingError("The attribute", wanted.name, "It is not shown here, so search by another one.")
        return where

    def error(self, text: str | None) -> str | None:
        """Return what may be shown of an error: it may quote a message or a state."""
        return None if text is None else self.redaction.error(text)

    def detail(self, error: Exception, *, own: bool = False) -> str:
        """Return the error text for a client whose request failed; `own`: it quotes nothing but what they sent."""
        problem = problem_of(error)
        if self.redaction.fields and problem.status != 500:
            if isinstance(error, InstanceFailedError):
                error = InstanceFailedError(error.instance, error.status, self.error(error.reason))
            elif isinstance(error, InstanceSuspendedError):
                error = InstanceSuspendedError(error.instance, self.error(error.error))
            elif isinstance(error, TaskRefusedError) and error.reason == "guard":
                error = TaskRefusedError(error.task, "guard", error.actor, self.error(error.detail) or "")
            elif isinstance(error, WaitTimeoutError):
                error = WaitTimeoutError(error.what, error.seconds, "it did not come")
            elif isinstance(error, OperationError) and error.__cause__ is not None:
                return kind_of(error.__cause__)  # it says why by quoting that
            elif not own and not isinstance(error, QUOTING_NOTHING):
                return kind_of(error)
            problem = problem_of(error)
        return self.redaction.text(problem.detail)

    def shown(self, view: V, field: str = "message") -> V:
        """Return a view with its message, and what it says of errors, as they may be shown."""
        raw, type = getattr(view, field, None), getattr(view, "type", None)
        changed: dict[str, Any] = {} if raw is None else {field: self.body(type, bytes(raw))}
        if self.redaction.fields:
            changed |= {name: self.error(getattr(view, name)) for name in TEXTS if name in view.__struct_fields__}
        return replace(view, **changed) if changed else view


class Router:
    """Routes of the API: each names the permission that it asks for, what it answers with, and its problems' statuses.

    That the client may be unknown or not permitted need not be said. `options` are FastAPI's.
    """

    def __init__(self, served: Served, tag: str) -> None:
        self._served = served
        self._router = APIRouter(prefix="/api", tags=[tag], route_class=Checked)

    @property
    def routes(self) -> list[BaseRoute]:
        """To be taken as they are: included into another router, each would be made a second time."""
        return self._router.routes

    def get(self, path: str, needs: Permission | None, answered: Any, *problems: int, **options: Any) -> Decorator:
        """Add a route that reads."""
        return self._router.get(path, **self._described(needs, answered, problems, options))

    def post(self, path: str, needs: Permission | None, answered: Any, *problems: int, **options: Any) -> Decorator:
        """Add a route that does something."""
        return self._router.post(path, **self._described(needs, answered, problems, options))

    def delete(self, path: str, needs: Permission | None, answered: Any, *problems: int, **options: Any) -> Decorator:
        """Add a route that ends or removes something."""
        return self._router.delete(path, **self._described(needs, answered, problems, options))

    def _described(
        self, needs: Permission | None, answered: Any, problems: tuple[int, ...], options: dict[str, Any]
    ) -> dict[str, Any]:
        problems = problems if needs is None else (401, 403, *problems)
        documented = cast("dict[str, Any]", answered) if isinstance(answered, dict) else told(answered)
        return {
            "response_model": None,
            "dependencies": [] if needs is None else [self._served.needs(needs)],
            **options,
            "responses": {200: documented, **responses(*problems), **options.get("responses", {})},
        }


def path_of(request: Request) -> str:
    """Return the path of a request for a log: all of it, and nothing in it that could break a line."""
    return quote(request.scope["path"])


def who(request: Request) -> Who:
    """Return who sends a request that was let in."""
    return request.state.who


def actor_of(request: Request) -> str | None:
    """Return the actor to record: the authenticated user; else the name that a user at this machine gives."""
    return who(request).name or checked_actor(request.headers.get(ACTOR_HEADER))


async def _actor(request: Request) -> str | None:
    return actor_of(request)


Actor = Annotated[str | None, Depends(_actor)]


def told(answered: Any, description: str = "Successful Response") -> dict[str, Any]:
    """Return how OpenAPI describes an answer that is such a record, or a list of them: `api` adds its schema.

    >>> from mainspring.views import PauseInfo
    >>> told(list[PauseInfo])["content"]["application/json"]["schema"]
    {'type': 'array', 'items': {'$ref': '#/components/schemas/PauseInfo'}}
    """
    # By its name alone: the schema of all that is in it would take half a millisecond, and there are sixty routes.
    listed = get_args(answered)
    record = {"$ref": f"{SCHEMAS}{(listed[0] if listed else answered).__name__}"}
    schema = {"type": "array", "items": record} if listed else record
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def told_as(*media_types: str, description: str = "Successful Response") -> dict[str, Any]:
    """Return how OpenAPI describes an answer that is a text in one of some formats."""
    return {"description": description, "content": {media: {"schema": {"type": "string"}} for media in media_types}}


def answer(view: Struct | Sequence[Struct], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a view, or a list of them, as an answer in JSON."""
    return Response(
        json.encode(view), status, {"cache-control": "no-store", **(headers or {})}, media_type="application/json"
    )


async def page(ask: Ask[P, R], show: Callable[[R], Struct], cursor: str, after: P, limit: int) -> Response:
    """Return a page of a list, read some rows at a time: what stands in `next` is null behind the last one.

    `ask` returns so many rows behind a place, and `cursor` is the field of a view that says its place.
    """
    found: list[Struct] = []
    size, more = 0, True
    while more and len(found) < limit:
        wanted = min(limit - len(found), PIECE)
        rows = await ask(after, wanted)
        for row in rows:
            if size > PAGE_BYTES:
                return answer(Page(found, after))
            found.append(show(row))
            size += weight(found[-1])
            after = getattr(found[-1], cursor)
        more = len(rows) == wanted
    return answer(Page(found, after if more else None))


def fitting(views: Iterable[V]) -> list[V]:
    """Return as many views as an answer may hold.

    >>> from mainspring.views import StateInfo
    >>> len(fitting([StateInfo(1, "S", Raw(b" " * PAGE_BYTES + b"1"), None), StateInfo(2, "S", None, None)]))
    1
    """
    found: list[V] = []
    size = 0
    for view in views:
        if size > PAGE_BYTES:
            break
        found.append(view)
        size += weight(view)
    return found


def weight(view: Struct) -> int:
    """Return how many bytes the messages and the data in a view have.

    >>> from mainspring.views import StateInfo
    >>> weight(StateInfo(1, "S", Raw(b'{"n":1}'), None)), weight(StateInfo(1, "S", {"n": 1}, None))
    (7, 7)
    """
    return sum(len(json.encode(value)) for value in astuple(view) if isinstance(value, Raw | dict))
