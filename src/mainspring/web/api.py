"""The API as one ASGI app: mounted into another one, or served by itself."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from msgspec import Struct
from msgspec.json import encode, schema_components
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from mainspring import views
from mainspring.analysis.replay import documents
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.errors import MainspringError
from mainspring.logs import logger
from mainspring.web import (
    analytics,
    bulk,
    history,
    hooks,
    instances,
    letters,
    listening,
    messages,
    models,
    system,
    tasks,
    travel,
    workflows,
)
from mainspring.web.access import Access
from mainspring.web.guard import HEADERS, LOOPBACK, Guard
from mainspring.web.observing import Observing
from mainspring.web.problems import MEDIA_TYPE as PROBLEM
from mainspring.web.problems import Problem, Refusal, problem_of, responses
from mainspring.web.served import SCHEMAS, Checked, Served, path_of

DESCRIPTION: Final = """\
Durable workflows over HTTP: messages in, instances looked at and operated on, tasks for people, dead letters.

Every answer is JSON, and every error `application/problem+json`. Lists come in pages: what stands in `next` is given as
`after` for the next one. Who acts is recorded in the stream.
"""

ROUTES: Final = (
    messages.routes,
    hooks.routes,
    instances.routes,
    travel.routes,
    history.routes,
    bulk.routes,
    listening.routes,
    tasks.routes,
    letters.routes,
    workflows.routes,
    analytics.routes,
    system.routes,
    system.health,
)

FAULTS: Final = 20
RECORDS: Final[dict[str, type[Struct]]] = {
    name: each
    for home in (documents, views, models, analytics, workflows)
    for name, each in vars(home).items()
    if isinstance(each, type) and issubclass(each, Struct)
}
"""Of which answers are made; those that are nested in them are found from these."""
SPARSE: Final = {name for name, each in RECORDS.items() if each.__struct_config__.omit_defaults}
"""Those that leave out what has nothing to say."""

SENDING: Final = ("/api/messages/", "/api/events/", "/api/requests/", "/api/envelopes", "/api/hooks/")

log = logger("mainspring.web")


def api(
    app: Mainspring,
    *,
    access: Access | None = None,
    redact: Iterable[str] = (),
    hosts: Iterable[str] | None = LOOPBACK,
    start: bool = True,
    work: bool = False,
) -> FastAPI:
    """Return the HTTP API of an app.

    `access` says who is let in: without it every client that reaches the port, which is right for one's own machine
    only. `hosts` are the names under which it is reached, None: any. Fields named in `redact` (`card`,
    `PlaceOrder.card`) are never shown. With `start` the app is started and stopped with the server, and with `work` it
    works here too; an app that is mounted into another one, whose lifespan starts it, has `start=False`.

    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> api(app).title
    'mainspring'
    """
    served = Served(app, access, redact)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        if start:
            await app.start(work=work)
        served.redaction.check(internals_of(app).registry)  # workflows may have been added since
        try:
            yield
        finally:
            served.live.close()
            for stop in served.on_stop:
                await stop()
            served.slow.close()
            if start:
                await app.stop()

    made = FastAPI(
        title="mainspring",
        version=version("mainspring"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    made.router.route_class = Checked
    for routes in ROUTES:
        made.router.routes.extend(routes(served).routes)
    made.state.live = served.live
    _describe(made, served)
    _tell_problems(made, served)
    made.add_middleware(Guard, hosts=hosts)  # pyright: ignore[reportArgumentType]  an ASGI app like any other
    made.add_middleware(Observing, observed=app)  # pyright: ignore[reportArgumentType]  as above
    return made


def _describe(made: FastAPI, served: Served) -> None:
    """Serve the description of the API to users that may read."""

    @made.get("/api/openapi.json", include_in_schema=False, dependencies=[served.needs("read")])
    async def openapi() -> dict[str, Any]:
        return described(made)


def described(made: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document."""
    document = made.openapi()
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    _, records = schema_components(_answers(document), ref_template=f"{SCHEMAS}{{name}}")
    for name, record in records.items():
        if "properties" in record and name not in SPARSE:
            record["required"] = [*record["properties"]]  # also what has a default is always written
    schemas.update(records)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for operation in (each for methods in document["paths"].values() for each in methods.values()):
        _with_problems(operation)
    return document


def _answers(document: dict[str, Any]) -> list[type[Struct]]:
    """Return the records that answers are made of: those to which the document refers and that are no bodies."""
    named = set(re.findall(rf"{SCHEMAS}(\w+)", encode(document).decode())) - set(document["components"]["schemas"])
    return [RECORDS[name] for name in sorted(named)]


def _with_problems(operation: dict[str, Any]) -> None:
    """Add the problems that any operation may answer with to those of its own, and say in a line what it does."""
    operation["summary"] = operation["description"].partition("\n")[0]
    statuses = [400, 404, 421, 500]
    if operation.get("parameters") or "requestBody" in operation:
        statuses.append(422)
    if "requestBody" in operation:
        statuses.append(413)
    answers = operation["responses"]
    for status, problem in responses(*statuses).items():
        known = answers.get(str(status), {})
        # What the framework would say of a request that it does not understand, it does not say here.
        if PROBLEM not in known.get("content", {}):
            answers[str(status)] = problem
    operation["responses"] = dict(sorted(answers.items()))


def _tell_problems(made: FastAPI, served: Served) -> None:
    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)  # noqa: S101  it is registered for nothing else
        return _answer(error.problem)

    async def misunderstood(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101  as above
        faults = "; ".join(f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()[:FAULTS])
        return _answer(Problem(422, "not understood", faults, "NotUnderstood"))

    async def unknown(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101  as above
        title = HTTPStatus(error.status_code).phrase.lower()
        return _answer(Problem(error.status_code, title, _advice(error), "Http"), error.headers)

    async def failed(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem.status == 500:
            log.error("%s %s failed", request.method, path_of(request), exc_info=error)
        return _answer(replace(problem, detail=served.detail(error, own=_sends(request))))

    async def gone(_: Request, error: Exception) -> Response:
        return _answer(Problem(400, "not understood", f"It ended before its body did: {error!r}", "BadRequest"))

    handlers: tuple[tuple[type[Exception], Callable[[Request, Exception], Awaitable[Response]]], ...] = (
        (Refusal, refused),
        (RequestValidationError, misunderstood),
        (HTTPException, unknown),
        (MainspringError, failed),
        (ClientDisconnect, gone),
        (Exception, failed),
    )
    for kind, handler in handlers:
        made.add_exception_handler(kind, handler)


def _sends(request: Request) -> bool:
    """Return True if a request only brings a message: its sender may see what is wrong with that."""
    return str(getattr(request.scope.get("route"), "path", "")).startswith(SENDING)


def _advice(error: HTTPException) -> str:
    """Return what the framework says, and what to do about it."""
    said = str(error.detail).rstrip(".")
    match error.status_code:
        case 404:
            return f"{said}: there is no such route. /api/openapi.json lists those that there are."
        case 405:
            return f"{said}. Use {(error.headers or {}).get('Allow', 'another method')}."
        case _:
            return f"{said}."


def _answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    # An unforeseen error is answered outside of the guard, which would add the headers that keep a browser safe.
    return Response(problem.body, problem.status, {**HEADERS, **(headers or {}), **problem.headers})
