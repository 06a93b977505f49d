"""Live changes over HTTP: a stream of server-sent events, about the app as a whole or about one instance."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Header, Query, Response
from fastapi.responses import StreamingResponse

from mainspring.app.given import LARGEST, checked_place
from mainspring.errors import NoSuchInstanceError
from mainspring.port.records import Ref
from mainspring.web.instances import loaded
from mainspring.web.served import Router, Served, told_as

MEDIA_TYPE: Final = "text/event-stream"

EVENTS: Final = """\
`stats`: how much there is of everything, as `/api/stats` tells it. `instance`: the instance as it is now. `events`:
what was recorded since; the id is the last position, and given as `Last-Event-ID` the stream goes on behind it."""


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "live")

    events = told_as(MEDIA_TYPE, description=EVENTS)

    @router.get("/live", "read", events, 404, 410, 422, 503, response_class=StreamingResponse)
    async def live(
        instance: Annotated[
            str | None, Query(description="Only this instance; else the app as a whole.", examples=["Orders/o-1"])
        ] = None,
        after: Annotated[int | None, Query(ge=0, description="The position that was seen last.")] = None,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Listen to what changes, as server-sent events: to the app as a whole, or to one instance.

        Every second the rows are looked at, once for all who listen. Send the token as with any other request: read
        the stream with `fetch`, not with `EventSource`.
        """
        served.live.check_room()
        ref = None if instance is None else await _ref(served, instance)
        seen = _version(last_event_id)
        place = checked_place(after) if seen is None and after is not None else seen
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(served.live.listen(ref, place), media_type=MEDIA_TYPE, headers=headers)

    return router


async def _ref(served: Served, instance: str) -> Ref:
    workflow, slash, id = instance.partition("/")
    if not slash or not id:
        raise NoSuchInstanceError(instance)
    await loaded(served.app, workflow, id, events=0)
    return Ref(workflow, id)


def _version(text: str | None) -> int | None:
    """Return the version in a Last-Event-ID; one that is none of ours says nothing.

    >>> _version("17"), _version("abc"), _version(None)
    (17, None, None)
    """
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > len(str(LARGEST)):
        return None
    return min(int(text), LARGEST)
