"""What went wrong, as `application/problem+json` (RFC 9457): which status, what happened, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, json
from msgspec.structs import replace

from mainspring import errors
from mainspring.web.asgi import Send
from mainspring.web.matching import ETAG, etag
from mainspring.web.models import ProblemDocument

MEDIA_TYPE: Final = "application/problem+json"
URN: Final = "urn:mainspring:error:"

# The first that fits counts, so that a special case stands before its base.
STATUSES: Final[tuple[tuple[type[Exception], int, str], ...]] = (
    (errors.InstancePurgedError, 410, "purged"),
    (errors.NoSuchInstanceError, 404, "no such instance"),
    (errors.NoSuchTaskError, 404, "no such task"),
    (errors.UnknownTypeError, 404, "no such message type"),
    (errors.NotFromOutsideError, 403, "not from outside"),
    (errors.TaskRefusedError, 409, "refused"),
    (errors.DuplicateIdError, 409, "id used before"),
    (errors.PositionConflictError, 412, "not as expected"),
    (errors.NoSuchNameError, 404, "no such name"),
    (errors.OperationError, 409, "not possible now"),
    (errors.InstanceFailedError, 409, "failed"),
    (errors.InstanceSuspendedError, 409, "suspended"),
    (errors.NoReplyError, 409, "no reply"),
    (errors.WaitTimeoutError, 504, "not in time"),
    (errors.BodyTooLargeError, 413, "too large"),
    (errors.ErasedError, 410, "erased"),
    (errors.CodecError, 422, "not readable"),
    (errors.RouteError, 422, "not routable"),
    (errors.InvalidIdError, 422, "not usable as an id"),
    (errors.AttributeValueError, 422, "not searchable"),
    (errors.SettingError, 422, "not understood"),
    (errors.WiringError, 422, "not part of this app"),
    (errors.StoreBusyError, 503, "database is busy"),
    (errors.StoreUnreachableError, 503, "database does not answer"),
    (errors.StoreClosedError, 503, "not open"),
    (errors.StoreMovedError, 503, "database is gone"),
    (errors.StoreFullError, 507, "no room left"),
    (errors.UnknownOutcomeError, 503, "outcome unknown"),
)
RETRY_SECONDS: Final = 5
DETAIL_CHARACTERS: Final = 10_000


class Problem(Struct, frozen=True):
    """One of them. `name` is the error's own, `position` that of an instance which the caller expected elsewhere.

    `waiting` says whether inputs wait there, which will move it. `reason` is that of a TaskRefusedError.

    >>> Problem(404, "no such instance", "There is none.", "NoSuchInstanceError").document().type
    'urn:mainspring:error:NoSuchInstanceError'
    """

    status: int
    title: str
    detail: str
    name: str
    position: int | None = None
    waiting: bool = False
    reason: str | None = None

    def document(self) -> ProblemDocument:
        """Return it as it goes over the line."""
        waiting = None if self.position is None else self.waiting
        kind, detail = f"{URN}{self.name}", _told(self.detail)
        return ProblemDocument(kind, self.title, self.status, detail, self.position, waiting, self.reason)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of its answer."""
        headers = {"content-type": MEDIA_TYPE, "cache-control": "no-store"}
        if self.status == 503:
            headers["retry-after"] = str(RETRY_SECONDS)
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.position:  # at 0 there is nothing to have a tag
            headers |= etag(self.position)
        return headers

    @property
    def body(self) -> bytes:
        """The body of its answer."""
        return json.encode(self.document())

    async def send(self, send: Send) -> None:
        """Answer an ASGI request with it."""
        body = self.body
        given = {**self.headers, "content-length": str(len(body))}
        headers = [(name.encode(), value.encode()) for name, value in given.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _told(detail: str) -> str:
    """Return a text that any reader can take: a part of what was sent may be in it, however strange or long."""
    text = detail if len(detail) <= DETAIL_CHARACTERS else f"{detail[:DETAIL_CHARACTERS]}…"
    return text.encode(errors="backslashreplace").decode()


class Refusal(Exception):  # noqa: N818  it is an answer
    """Ends a request with a problem.

    >>> Refusal(Problem(403, "not permitted", "…", "NotPermitted")).problem.status
    403
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def problem_of(error: Exception) -> Problem:
    """Return an error as a problem. A fault of our own is reported without its details.

    >>> problem_of(errors.NoSuchInstanceError("Orders/o-1")).status
    404
    >>> problem_of(KeyError("secret")).detail
    'The server could not do it; its log says why.'
    """
    for kind, status, title in STATUSES:
        if isinstance(error, kind):
            problem = Problem(status, title, str(error), type(error).__name__)
            if isinstance(error, errors.PositionConflictError):
                return replace(problem, position=error.actual, waiting=error.waiting)
            if isinstance(error, errors.TaskRefusedError):
                return replace(problem, reason=error.reason)
            return problem
    return Problem(500, "failed", "The server could not do it; its log says why.", "InternalError")


def responses(*statuses: int) -> Mapping[int | str, dict[str, Any]]:
    """Return how OpenAPI describes problems with these statuses.

    >>> responses(404)[404]["description"]
    'no such instance; no such task; no such message type; no such name'
    """
    described = {
        400: "not understood",
        401: "not known",
        403: "not permitted",
        421: "unknown host",
        429: "too often",
        500: "failed: an error of the server",
    }
    for _, status, title in STATUSES:
        described[status] = f"{described[status]}; {title}" if status in described else title
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    headers: dict[int, dict[str, Any]] = {412: {"headers": ETAG}}
    return {
        status: {"description": described[status], "content": content, **headers.get(status, {})} for status in statuses
    }
