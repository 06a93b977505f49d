"""What of a message may leave the database: nothing but its type, or all but the fields that are named."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, cast

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from mainspring.codec.naming import WHOLE, naming_of
from mainspring.engine.recording.event_details import Detail, Packed, encode_detail, read_detail
from mainspring.engine.recording.event_rows import is_unkept
from mainspring.engine.registry import Registry
from mainspring.errors import ERASED_TYPE, SettingError
from mainspring.errors.kinds import kind_in
from mainspring.errors.reading import UNREADABLE
from mainspring.port.records import EventRow
from mainspring.sealing.seals import ERASED

MARKER: Final = "[redacted]"
# A value as it stands in a text: in quotes, in brackets, or up to what ends it.
_QUOTED: Final = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\{[^}]*\}|\w+\([^)]*\)|[^\s,;)}\]]+)"""

# What a workflow hears of failures, by fields that nothing else has together: where each quotes an error, or a command.
_FAILURES: Final[dict[frozenset[str], tuple[str, ...]]] = {
    frozenset(("type", "message_id", "error", "attempts")): ("error", "command"),
    frozenset(("child", "status", "reason")): ("reason",),
    # No failure, but a text of people: why something is paused.
    frozenset(("kind", "name", "reason", "actor", "since")): ("reason",),
}

# By the names of their attributes; above, as they are stored.
_SAID: Final = {("SendFailed", "error"), ("SendFailed", "command"), ("mainspring.ChildFailed", "error")}

_ANEW: Final = " could not begin anew"

# Messages inside messages: lists of (type, version, JSON as text).
_HOLDERS: Final = {"mainspring.Parts": "messages", "mainspring.PartDone": "results"}


class Outgoing(Struct, frozen=True, gc=False):
    """What an event says to the outside. `type` is there even where the message is not: `gone` says why it is not."""

    type: str | None
    body: bytes | None
    detail: bytes | None
    gone: str | None = None
    redacted: bool = False


class Redaction:
    """What is left out. Without `payloads` no message leaves; with them, all but the `fields`.

    A field is named alone, `card`, wherever it stands; or with the type of its message, `PlaceOrder.card`.
    `check` makes the types of an app known: without it, names are taken as they are.

    >>> redaction = Redaction(payloads=True, fields=["card"])
    >>> redaction.outgoing(EventRow(2, "Received", 0, "PlaceOrder", 1, b'{"order_id":"o-1","card":"4111"}')).body
    b'{"order_id":"o-1","card":"[redacted]"}'
    """

    def __init__(self, *, payloads: bool = False, fields: Iterable[str] = ()) -> None:
        self.payloads = payloads
        self.fields = tuple(dict.fromkeys(fields))
        self._anywhere = {field for field in self.fields if "." not in field}
        self._scoped: dict[str, set[str]] = {}
        for field in self.fields:
            type, dot, name = field.rpartition(".")
            if not name or (dot and not type):
                raise SettingError("redact", field, "Name fields as in card or PlaceOrder.card.")
            if dot:
                self._scoped.setdefault(type, set()).add(name)
        self._registry: Registry | None = None
        self._size = 0
        self._hidden: dict[str, set[str]] = {}
        self._hide({type: self._anywhere | names for type, names in self._scoped.items()})

    def check(self, registry: Registry) -> None:
        """Learn the types of an app, and refuse a field that it does not have, which would hide nothing.

        A field is hidden under all names that it has in code and in storage, and so is one of a type that has had other
        names. Where a type stands within another, its fields are hidden in that one; and where it is not known of what
        type something is, those of all types are.
        """
        if not self.fields:
            return
        self._registry = registry
        found = self._read(registry)
        for type, names in self._scoped.items():
            if registry.workflows and type not in found:
                own = min(names)
                fix = f"Name a type of message or state; {own} alone is hidden wherever it stands, in parts too."
                raise SettingError("redact", f"{type}.{own}", fix)

    def _read(self, registry: Registry) -> dict[str, set[str]]:
        """Read the types of an app, and return what is hidden in each."""
        codecs = [registry.codec, *(registry.codec.states(entry.workflow.__class__) for entry in registry.entries())]
        found: dict[str, set[str]] = {}
        unsaid: list[str] = []
        for name, cls in ((name, cls) for codec in codecs for name, cls in codec.classes().items()):
            naming = naming_of(cls)
            fields = self._anywhere.union(*(self._scoped[type] for type in naming.types & self._scoped.keys()))
            # States of several workflows may have one name.
            found.setdefault(name, set()).update(naming.names(fields))
            if naming.open:
                unsaid.append(name)
        everything = self._anywhere.union(*self._scoped.values(), *found.values()) - {WHOLE}
        for name in unsaid:
            found[name] |= everything
        self._hide(found)
        self._size = _size(registry)
        return found

    def _hide(self, hidden: dict[str, set[str]]) -> None:
        everything = self._anywhere.union(*self._scoped.values(), *hidden.values()) - {WHOLE}
        self._everything = everything
        # Most messages hold none of them, and need not be read. What failures say is hidden with any field.
        self._marks = [name.encode() for name in (*everything, *chain(*_FAILURES.values()))] if everything else []
        told = "|".join(re.escape(name) for name in sorted(everything))
        self._told = re.compile(rf"\b({told})(['\"]?\s*[=:]\s*){_QUOTED}") if everything else None
        self._hidden = hidden

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

    def hides(self, type: str, field: str, outer: Collection[str] | None = None) -> bool:
        """Return True if a field of a type is redacted, within another where `outer` are."""
        return field in self.within(type, outer) or bool(self.fields and (type, field) in _SAID)

    def body(self, type: str, body: bytes) -> bytes:
        """Return the body of a message with the marker in place of what is redacted."""
        names = self._names(type)
        if WHOLE in names:
            return json.encode(MARKER)
        # A name may be written with escapes, which only reading shows.
        if not self._marks or (b"\\" not in body and not any(mark in body for mark in self._marks)):
            return body
        decoded: Any = json.decode(body)
        shown = self._value(decoded, names, _HOLDERS.get(type))
        return body if shown == decoded else json.encode(shown)

    def restored(self, type: str, given: bytes, stored: bytes) -> bytes:
        """Return a body that comes back corrected, with what is stored wherever the marker was left.

        >>> redaction = Redaction(payloads=True, fields=["card"])
        >>> redaction.restored("PlaceOrder", b'{"amount":7,"card":"[redacted]"}', b'{"amount":"x","card":"4111"}')
        b'{"amount":7,"card":"4111"}'
        """
        try:
            known = json.decode(stored)
        except UNREADABLE:
            known = None
        names, decoded = self._names(type), json.decode(given)
        return json.encode(known if WHOLE in names and decoded == MARKER else self._restored(decoded, known, names))

    def data(self, data: Any) -> Any:
        """Return data that has no type of its own, with the marker in place of what is redacted.

        >>> Redaction(payloads=True, fields=["card"]).data({"order": {"card": "4111", "amount": 7}})
        {'order': {'card': '[redacted]', 'amount': 7}}
        """
        return self._value(data, self._everything)

    def error(self, text: str) -> str:
        """Return what may be shown of an error: where anything is redacted only its kind, since its text may quote it.

        >>> Redaction(payloads=True, fields=["card"]).error("ValueError: 4111 was refused")
        'ValueError'
        >>> Redaction(payloads=True, fields=["card"]).error("4111 was refused")
        '[redacted]'
        """
        return text if self.payloads and not self.fields else kind_in(text) or MARKER

    def rule(self, text: str) -> str:
        """Return the rule by which something became a dead letter; older letters have an error's text behind one.

        >>> Redaction(payloads=True, fields=["card"]).rule("Orders/o-1 could not begin anew: CardError: 4111")
        'Orders/o-1 could not begin anew'
        """
        rule, anew, _ = text.partition(_ANEW)
        return self.text(rule + anew if self.fields else text)

    def text(self, text: str) -> str:
        """Return a text of ours or of an author's, with the marker for values of fields that it quotes by their names.

        >>> Redaction(payloads=True, fields=["Order.card"]).text("Order(id='o-1', card='4111') was refused")
        "Order(id='o-1', card=[redacted]) was refused"
        """
        return text if self._told is None else self._told.sub(rf"\1\2{MARKER}", text)

    def within(self, type: str, outer: Collection[str] | None) -> Collection[str]:
        """Return which names are hidden in a type that stands in another where `outer` are; None: it stands alone.

        >>> sorted(Redaction(fields=["Order.card", "note"]).within("Line", {"card"}))
        ['card']
        """
        return self._names(type) if outer is None else {*outer, *self._hidden.get(type, ())}

    def _names(self, type: str) -> set[str]:
        hidden = self._hidden.get(type)
        if hidden is None and type and self._registry is not None and _size(self._registry) != self._size:
            hidden = self._read(self._registry).get(type)  # added since
        if hidden is not None:
            return hidden
        return self._everything if self._registry is not None or not type else self._anywhere

    def _names_in(self, fields: Mapping[str, Any], names: set[str]) -> set[str]:
        tag = fields.get("$type")
        said = chain(*(said for shape, said in _FAILURES.items() if self.fields and shape <= fields.keys()))
        return (names | self._hidden.get(tag, set()) if isinstance(tag, str) else names).union(said)

    def _value(self, value: Any, names: set[str], holder: str | None = None) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            names = self._names_in(fields, names)
            return {
                name: MARKER if name in names else self._held(each) if name == holder else self._value(each, names)
                for name, each in fields.items()
            }
        if isinstance(value, list):
            return [self._value(each, names) for each in cast("list[Any]", value)]
        return value

    def _restored(self, given: Any, known: Any, names: set[str]) -> Any:
        if isinstance(given, dict):
            fields = cast("dict[str, Any]", given)
            stored = cast("dict[str, Any]", known if isinstance(known, dict) else {})
            names = self._names_in(fields, names)
            return {
                name: _unmarked(name, value, stored)
                if name in names
                else self._restored(value, stored.get(name), names)
                for name, value in fields.items()
            }
        if isinstance(given, list):
            parts = cast("list[Any]", given)
            # Of a list that has grown or shrunk it is unknown which item was which.
            stored = cast("list[Any]", known if isinstance(known, list) else [])
            others = stored if len(stored) == len(parts) else [None] * len(parts)
            return [self._restored(part, other, names) for part, other in zip(parts, others, strict=True)]
        return given

    def _held(self, messages: Sequence[Any]) -> list[Any]:
        return [[type, version, self.body(type, body.encode()).decode()] for type, version, body in messages]

    def _detail(self, stored: bytes | None) -> bytes | None:
        if stored is None:
            return None
        detail = read_detail(stored)
        if self.payloads:
            if not self._marks or (b"\\" not in stored and not any(mark in stored for mark in self._marks)):
                return stored
            data: dict[str, Any] = self.data(detail.data)
            detail = replace(
                detail,
                data=data,
                compensate=self._packed(detail.compensate),
                result=self._packed(detail.result),
                title=None if detail.title is None else self.text(detail.title),
                reason=None if detail.reason is None else self.error(detail.reason),
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


def _size(registry: Registry) -> int:
    """Return a number that grows with each addition to an app."""
    return len(registry.codec.versions()) + sum(1 for _ in registry.entries())


def _unmarked(name: str, value: Any, stored: Mapping[str, Any]) -> Any:
    if value != MARKER:
        return value
    if name not in stored:
        raise SettingError(name, value, "It is not shown, and what it was is not known in this place: write its value.")
    return stored[name]
