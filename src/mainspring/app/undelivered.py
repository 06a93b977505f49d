"""What came from outside and could not be taken: kept as a dead letter of the edge through which it came.

It is not known which instance it was meant for, or whether it is a message at all. So the dead letter stands under the
edge's name, and its body is a JSON document around the very bytes that came, with their headers. It can be retried, as
it is or corrected, and discarded, as any other.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, json

from mainspring.engine.recording.stored_values import encode_context
from mainspring.errors import DamagedRecordError, OperationError, shown, told
from mainspring.errors.reading import UNREADABLE
from mainspring.port.records import EDGE, Context, DeadLetter, Remembered, Unit

if TYPE_CHECKING:
    from mainspring.app.services import Edge
    from mainspring.engine.engine import Engine

# How long a redelivery of what was kept once makes no second dead letter, whatever became of the first.
KNOWN_US: Final = 30 * 24 * 3_600 * 1_000_000
TYPE_CHARACTERS: Final = 200
NO_TYPE: Final = "unknown"


class Undelivered(Struct, frozen=True, gc=False, omit_defaults=True):
    r"""The bytes that came, as text where they are text; with the headers beside them.

    >>> Undelivered.of(b"{", {"ce-type": "PlaceOrder"}).text
    '{'
    >>> Undelivered.of(bytes([255]), {}).bytes
    b'\xff'
    """

    headers: dict[str, str]
    text: str | None = None
    base64: str | None = None

    @classmethod
    def of(cls, body: bytes, headers: Mapping[str, str]) -> Undelivered:
        """Return what came."""
        readable = {_readable(name): _readable(value) for name, value in headers.items()}
        try:
            return cls(readable, body.decode())
        except UnicodeDecodeError:
            return cls(readable, None, b64encode(body).decode())

    @property
    def bytes(self) -> bytes:
        """The bytes, exactly as they came."""
        return b64decode(self.base64) if self.base64 is not None else (self.text or "").encode()


_encode = json.Encoder().encode
_decode = json.Decoder(Undelivered).decode


def undelivered_in(letter: DeadLetter) -> Undelivered:
    """Return what a dead letter of an edge holds."""
    try:
        found = _decode(letter.body)
        b64decode(found.base64 or "", validate=True)
    except (*UNREADABLE, ValueError) as error:
        raise DamagedRecordError(f"dead letter {letter.id}", f"{shown(letter.body, 80)}: {error}") from error
    return found


async def keep_undelivered(
    engine: Engine,
    edge: str,
    *,
    id: str,
    body: bytes,
    headers: Mapping[str, str],
    reason: str,
    type: str | None = None,
    error: Exception | None = None,
    anew: bool = False,
) -> bool:
    """Keep what could not be taken as a dead letter of an edge, durably. False: it was kept before.

    `id` is the message's own where it has one, else one that the same bytes would have again; `anew` says that it came
    for the first time nevertheless, and whatever has the same bytes is another message.
    """
    digest = sha256(body).hexdigest()[:32]
    key = f"undelivered:{edge}:{sha256(id.encode(errors='replace')).hexdigest()[:32]}:{digest}"
    if not anew and await engine.store.remembered(key) is not None:
        return False
    now_us = engine.store.now_us()
    letter = DeadLetter(
        workflow=EDGE,
        instance=edge,
        message_id=f"{id}/{engine.runtime.new_id()}" if anew else id,
        kind="undelivered",
        type=_readable(type or NO_TYPE)[:TYPE_CHARACTERS],
        type_version=1,
        body=_encode(Undelivered.of(body, headers)),
        time_us=now_us,
        context=encode_context(Context(id)),
        reason=reason,
        error=None if error is None else told(error),
    )
    known = Remembered(key, None, 1, b"null", now_us + KNOWN_US)
    await engine.committer.commit(Unit(EDGE, edge, dead_letters=(letter,), remembers=(known,)))
    return True


async def take_again(edges: Mapping[str, Edge], letter: DeadLetter, message: Any, actor: str | None) -> None:
    """Let the edge of a dead letter retry it, or `message` in its place."""
    edge = edges.get(letter.instance)
    if edge is None:
        known = ", ".join(sorted(edges)) or "none"
        raise OperationError(
            f"Dead letter {letter.id}",
            f"came through {letter.instance}, which is not part of this app",
            f"Use the app that has it; this one has: {known}.",
        )
    await edge.again(letter, message, actor)


def _readable(text: str) -> str:
    r"""Return a text as every store can keep it.

    >>> _readable("a\0b")
    'a\\x00b'
    """
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")
