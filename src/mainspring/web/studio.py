"""The studio: the API, and the page that uses it, as one ASGI app."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI

from mainspring.app import Mainspring
from mainspring.web import static
from mainspring.web.access import Access
from mainspring.web.api import api
from mainspring.web.guard import LOOPBACK


def studio(
    app: Mainspring,
    *,
    access: Access | None = None,
    redact: Iterable[str] = (),
    hosts: Iterable[str] | None = LOOPBACK,
    start: bool = True,
    work: bool = False,
) -> FastAPI:
    """Return the API of an app and the page that shows it, for a server or to be mounted. All words are those of `api`.

    Its links are relative, so that it may be mounted anywhere: `your_app.mount("/studio", studio(app, start=False))`.

    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> studio(app).title
    'mainspring'
    """
    made = api(app, access=access, redact=redact, hosts=hosts, start=start, work=work)
    made.include_router(static.routes(static.read_files()))
    return made
