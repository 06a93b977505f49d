"""The API as one ASGI app: mounted into another one, or served by itself."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from msgspec.json import schema_components
from starlette.exceptions import HTTPException

from mainspring.app import Mainspring
from mainspring.errors import MainspringError
from mainspring.web import (
    analytics,
    bulk,
    history,
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
from mainspring.web.guard import LOOPBACK, Guard
from mainspring.web.problems import Problem, Refusal, problem_of
from mainspring.web.served import SCHEMAS, Served

DESCRIPTION: Final = """\
Durable workflows over HTTP: messages in, instances looked at and operated on, tasks for people, dead letters.

Every answer is JSON, and every error `application/problem+json`. Lists come in pages: what stands in `next` is given as
`after` for the next one. Who acts is recorded in the stream.
"""

ROUTES: Final = (
    messages.routes,
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

log = logging.getLogger("mainspring.web")


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

    `access` says who is let in: without it everybody who reaches the port, which is right for one's own machine only.
    `hosts` are the names under which it is reached, None: any. Fields named in `redact` (`card`, `PlaceOrder.card`) are
    never shown. With `start` the app is started and stopped with the server, and with `work` it works here too; an app
    that is mounted into another one, whose lifespan starts it, has `start=False`.

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
        try:
            yield
        finally:
            served.live.close()
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
    for routes in ROUTES:
        made.include_router(routes(served), prefix="/api")
    made.state.live = served.live
    _describe(made, served)
    _tell_problems(made)
    made.add_middleware(Guard, hosts=hosts)  # pyright: ignore[reportArgumentType]  an ASGI app like any other
    return made


def _describe(made: FastAPI, served: Served) -> None:
    """Serve the description of the API to who may read."""

    @made.get("/api/openapi.json", include_in_schema=False, dependencies=[served.needs("read")])
    async def openapi() -> dict[str, Any]:
        return described(made)


def described(made: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document."""
    document = made.openapi()
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas.setdefault("Problem", models.Problem.model_json_schema())
    _, records = schema_components((*workflows.STRUCTS, *analytics.STRUCTS), ref_template=f"{SCHEMAS}{{name}}")
    schemas.update(records)
    return document


def _tell_problems(made: FastAPI) -> None:
    def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)  # noqa: S101  it is registered for nothing else
        return _answer(error.problem)

    def misunderstood(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101  as above
        faults = "; ".join(f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors())
        return _answer(Problem(422, "not understood", faults, "NotUnderstood"))

    def unknown(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101  as above
        return _answer(Problem(error.status_code, str(error.detail).lower(), str(error.detail), "Http"))

    def failed(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem.status == 500:
            log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return _answer(problem)

    handlers: tuple[tuple[type[Exception], Callable[[Request, Exception], Response]], ...] = (
        (Refusal, refused),
        (RequestValidationError, misunderstood),
        (HTTPException, unknown),
        (MainspringError, failed),
        (Exception, failed),
    )
    for kind, handler in handlers:
        made.add_exception_handler(kind, handler)


def _answer(problem: Problem) -> Response:
    return Response(problem.body, problem.status, problem.headers)
