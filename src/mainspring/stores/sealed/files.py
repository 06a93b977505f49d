"""Events in a file that outlives its database: sealed as they were there, so that they are erased with their keys."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from msgspec import Raw, json
from msgspec.structs import replace

from mainspring.errors import ERASED_TYPE, OperationError
from mainspring.errors.reading import UNREADABLE
from mainspring.port.records import EventRow, Ref
from mainspring.sealing.seals import ERASED, About, Seal
from mainspring.stores.sealed.bodies import about_of

# Sealed bytes as a JSON document: no message has such a field alone.
_BEGIN: Final = b'{"$sealed":"'
_END: Final = b'"}'


def sealed_event(ref: Ref, row: EventRow, seal: Seal) -> EventRow:
    """Return an event whose body and detail are sealed, each as a JSON document.

    >>> from mainspring.sealing import Encrypted, StaticKeys
    >>> seal, ref = Encrypted(StaticKeys({"2026": bytes(32)})), Ref("OrderFulfilment", "o-1")
    >>> row = EventRow(2, "Received", 0, "PlaceOrder", 1, b'{"card":"4111"}')
    >>> b"4111" in sealed_event(ref, row, seal).body
    False
    >>> opened_event(ref, sealed_event(ref, row, seal), seal) == row
    True
    """
    about = _about(ref, row)

    def closed(body: bytes | None) -> bytes | None:
        # What was erased is no secret any more, and must not seem to be one.
        return body if body in (None, ERASED) else _BEGIN + base64.b64encode(seal.close(body, about)) + _END

    return replace(row, body=closed(row.body), detail=closed(row.detail))


def opened_event(ref: Ref, row: EventRow, seal: Seal | None) -> EventRow:
    """Return an event from a file as it was, or with what stands for it where it was erased.

    Raises an OperationError for what no seal has made, and a DamagedRecordError for what cannot be opened.
    """
    about = _about(ref, row)

    def opened(body: bytes | None) -> bytes | None:
        if body is None or not (body.startswith(_BEGIN) and body.endswith(_END)):
            return body
        if seal is None:
            raise OperationError(str(ref), "is sealed in this file", "Use the app that has its seal and its keys.")
        try:
            body = seal.open(base64.b64decode(body[len(_BEGIN) : -len(_END)], validate=True), about)
            json.decode(body, type=Raw)  # what is not a seal's own, it returns as it is
        except (binascii.Error, *UNREADABLE) as error:
            raise OperationError(str(ref), "is damaged in this file", "Take another copy of the file.") from error
        return body

    body, type = opened(row.body), row.type
    if body == ERASED and type is not None and not type.startswith(ERASED_TYPE):
        type = f"{ERASED_TYPE}{type}"
    return replace(row, type=type, body=body, detail=opened(row.detail))


def _about(ref: Ref, row: EventRow) -> About:
    about = about_of(ref.workflow, ref.id)
    return About(about.workflow, about.instance, row.type)
