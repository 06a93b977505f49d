"""The lifespan of a web app, with an app of ours inside: for FastAPI, Starlette and whatever else has one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import timedelta
from typing import Any, Final, TypeAlias

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.engine import DRAIN_SECONDS
from mainspring.errors import WiringError
from mainspring.frameworks.own_file import kept_alone

__all__ = ["app_of", "lifespan"]

STATE: Final = "mainspring"
DRAIN: Final = timedelta(seconds=DRAIN_SECONDS)

Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]


def lifespan(
    app: Mainspring, *, work: bool = True, drain: timedelta = DRAIN, inner: Lifespan | None = None
) -> Lifespan:
    """Return a lifespan that starts an app with the server and stops it when the last request was answered.

    With `work=False` the server only sends and reads, and workers run apart (`mainspring worker shop:app`). When it
    stops, what runs may finish within `drain`; the rest is released, and resumes at the next start. `inner` is a
    lifespan of your own, inside which the app runs already.

    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> async def main() -> None:
    ...     async with lifespan(app)(None) as state:
    ...         print(state["mainspring"] is app)
    >>> import asyncio
    >>> asyncio.run(main())
    True
    """

    @asynccontextmanager
    async def around(web: Any) -> AsyncGenerator[Mapping[str, Any]]:
        with kept_alone(internals_of(app).url):
            await app.start(work=work)
            try:
                async with nullcontext() if inner is None else inner(web) as own:
                    yield {STATE: app, **(own or {})}
            finally:
                await app.stop(drain)

    return around


def app_of(request: Any) -> Mainspring:
    """Return the app that runs with the server of a request, or of a WebSocket.

    >>> from types import SimpleNamespace
    >>> app = Mainspring("memory://")
    >>> app_of(SimpleNamespace(state=SimpleNamespace(mainspring=app))) is app
    True
    """
    found = getattr(request.state, STATE, None)
    if not isinstance(found, Mainspring):
        raise WiringError(
            "No app of mainspring runs with this server", "Make it with lifespan=lifespan(app), and run its lifespan."
        )
    return found
