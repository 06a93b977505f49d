"""What is reported of requests where telemetry is on: how many by route, how long they took, whose trace."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any, Final

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.telemetry.instruments import Instruments
from mainspring.telemetry.w3c import trace_of
from mainspring.web.asgi import App, Message, Receive, Scope, Send, headers_of

NO_ROUTE: Final = "none"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Observing:
    """Stands before an ASGI app. A message that comes in by it belongs to the trace of the request's sender.

    >>> async def nothing(scope, receive, send): ...
    >>> _ = Observing(nothing, observed=Mainspring("memory://"))
    """

    def __init__(self, app: App, *, observed: Mainspring) -> None:
        self._app = app
        self._observed = observed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        telemetry = internals_of(self._observed).telemetry
        if telemetry is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        tracing = telemetry.tracing
        with nullcontext() if tracing is None else tracing.below(trace_of(headers_of(scope))):
            if telemetry.instruments is None:
                await self._app(scope, receive, send)
            else:
                await self._counted(telemetry.instruments, scope, receive, send)

    async def _counted(self, instruments: Instruments, scope: Scope, receive: Receive, send: Send) -> None:
        begun, answered = time.monotonic(), list[tuple[int, float]]()

        async def told(message: Message) -> None:
            # What is streamed may last for an hour: how long the client listens says nothing about this app.
            if message["type"] == "http.response.start":
                answered.append((message["status"], time.monotonic() - begun))
            await send(message)

        try:
            await self._app(scope, receive, told)
        finally:
            status, seconds = answered[0] if answered else (500, time.monotonic() - begun)
            method = scope["method"] if scope["method"] in _METHODS else "other"
            # The path as it is written in the code: ids in it would make a series each.
            found: Any = scope.get("route")
            route = str(getattr(found, "path", NO_ROUTE)).removeprefix("/api")
            instruments.requests.add((method, route, str(status)))
            instruments.request_duration.observe(seconds, (method, route))
