"""What of a message may leave the database: nothing but its type, or all but the fields that are named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from mainspring.engine.details import Detail, Packed, encode_detail, read_detail
from mainspring.engine.recorder import is_unkept
from mainspring.errors import ERASED_TYPE, SettingError
from mainspring.port.records import EventRow
from mainspring.sealing.seals import ERASED

MARKER: Final = "[redacted]"
# A value as it stands in a text: in quotes, in brackets, or up to what ends it.
_QUOTED: Final = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\{[^}]*\}|\w+\([^)]*\)|[^\s,;)}\]]+)"""

# Messages inside messages: lists of (type, version, JSON as text).
_HOLDERS: Final = {"mainspring.Parts": "messages", "mainspring.PartDone": "results"}


class Outgoing(Struct, frozen=True, gc=False):
    """What an event says to the outside. `type` is there even where the message is not: `gone` says why it is not.

    >>> Outgoing("PlaceOrder", None, None, "erased").gone
    'erased'
    """

    type: str | None
    body: bytes | None
    detail: bytes | None
    gone: str | None = None
    redacted: bool = False


class Redaction:
    """What is left out. Without `payloads` no message leaves; with them, all but the `fields`.

    A field is named alone, `card`, wherever it stands; or with the type of its message, `PlaceOrder.card`.

    >>> redaction = Redaction(payloads=True, fields=["card"])
    >>> redaction.outgoing(EventRow(2, "Received", 0, "PlaceOrder", 1, b'{"order_id":"o-1","card":"4111"}')).body
    b'{"order_id":"o-1","card":"[redacted]"}'
    """

    def __init__(self, *, payloads: bool = False, fields: Iterable[str] = ()) -> None:
        self.payloads = payloads
        self.fields = tuple(dict.fromkeys(fields))
        self._anywhere = {field for field in self.fields if "." not in field}
        self._of_type: dict[str, set[str]] = {}
        for field in self.fields:
            type, dot, name = field.rpartition(".")
            if not name or (dot and not type):
                raise SettingError("redact", field, "Name fields as in card or PlaceOrder.card.")
            if dot:
                self._of_type.setdefault(type, set()).add(name)
        names = self._anywhere.union(*self._of_type.values())
        # Most messages hold none of them, and need not be read.
        self._marks = [name.encode() for name in names]
        told = "|".join(re.escape(name) for name in sorted(names))
        self._told = re.compile(rf"\b({told})(['\"]?\s*[=:]\s*){_QUOTED}") if names else None

    def outgoing(self, row: EventRow) -> Outgoing:
        """Return what may be said of an event."""
        type, body, gone = row.type, row.body, None
        if is_unkept(row):
            type, body, gone = read_detail(row.detail).unkept, None, "not kept"
        elif type is not None and type.startswith(ERASED_TYPE):
            type, body, gone = type.removeprefix(ERASED_TYPE), None, "erased"
        if row.detail == ERASED:
            detail, gone = None, "erased"
        else:
            detail = self._detail(row.detail)
        if not self.payloads:
            return Outgoing(type, None, detail, gone or (None if body is None else "left out"))
        shown = None if body is None or type is None else self.body(type, body)
        redacted = (shown, detail) != (body, row.detail) and gone is None
        return Outgoing(type, shown, detail, gone, redacted)

    def hides(self, type: str, field: str) -> bool:
        """Tell whether a field of a type of message is redacted."""
        return field in self._names(type)

    def body(self, type: str, body: bytes) -> bytes:
        """Return the body of a message with the marker in place of what is redacted."""
        # A name may be written with escapes, which only reading shows.
        if not self._marks or (b"\\" not in body and not any(mark in body for mark in self._marks)):
            return body
        decoded: Any = json.decode(body)
        shown = self._value(decoded, self._names(type), _HOLDERS.get(type))
        return body if shown == decoded else json.encode(shown)

    def data(self, data: Any) -> Any:
        """Return data that has no type of its own, with the marker in place of what is redacted.

        >>> Redaction(payloads=True, fields=["card"]).data({"order": {"card": "4111", "amount": 7}})
        {'order': {'card': '[redacted]', 'amount': 7}}
        """
        return self._value(data, self._anywhere)

    def text(self, text: str) -> str:
        """Return what an error says, with the marker for values of fields that it quotes, as Python or as JSON.

        >>> Redaction(payloads=True, fields=["Order.card"]).text("Order(id='o-1', card='4111') was refused")
        "Order(id='o-1', card=[redacted]) was refused"
        """
        return text if self._told is None else self._told.sub(rf"\1\2{MARKER}", text)

    def _names(self, type: str) -> set[str]:
        return self._anywhere | self._of_type.get(type, set())

    def _value(self, value: Any, names: set[str], holder: str | None = None) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            tag = fields.get("$type")
            names = names | self._names(tag) if isinstance(tag, str) else names
            return {
                name: MARKER if name in names else self._held(each) if name == holder else self._value(each, names)
                for name, each in fields.items()
            }
        if isinstance(value, list):
            return [self._value(each, names) for each in cast("list[Any]", value)]
        return value

    def _held(self, messages: Sequence[Any]) -> list[Any]:
        return [[type, version, self.body(type, body.encode()).decode()] for type, version, body in messages]

    def _detail(self, stored: bytes | None) -> bytes | None:
        if stored is None:
            return None
        detail = read_detail(stored)
        if self.payloads:
            if not any(mark in stored for mark in self._marks):
                return stored
            data: dict[str, Any] = self.data(detail.data)
            detail = replace(
                detail, data=data, compensate=self._packed(detail.compensate), result=self._packed(detail.result)
            )
        else:
            # What people or errors have said is data too.
            detail = replace(
                detail, data={}, compensate=None, result=None, title=None, reason=None, person=None, excludes=()
            )
        return None if detail == Detail() else encode_detail(detail)

    def _packed(self, packed: Packed | None) -> Packed | None:
        if packed is None:
            return None
        return Packed(packed.type, packed.version, Raw(self.body(packed.type, bytes(packed.body))))
