"""How an envelope travels through a broker: CloudEvents in binary mode, the attributes as headers beside the message.

What comes in may as well be in structured mode, the whole envelope as JSON; or a bare message, if its endpoint says of
which type those are. The envelope itself is `mainspring.codec.wire`'s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final
from urllib.parse import quote, unquote

from mainspring.brokers.port import Delivery, Outgoing
from mainspring.codec.wire import ATTRIBUTES, MEDIA_TYPE, SPEC_VERSION, WireEnvelope, read_attributes, read_envelope
from mainspring.errors import DecodeError

CONTENT_TYPE: Final = "content-type"
JSON: Final = "application/json"

# The prefixes of CloudEvents' bindings: of HTTP and NATS, of Kafka, of AMQP.
_PREFIXES: Final = ("ce-", "ce_", "cloudevents:", "cloudevents_")
# W3C Trace Context has headers of its own, which tools look for.
_TRACE: Final = ("traceparent", "tracestate")
# Headers are printable ASCII; the rest is percent-encoded, as CloudEvents has it.
_SAFE: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_is_safe: Final = re.compile(f"[{re.escape(_SAFE)}]*").fullmatch


def outgoing(envelope: WireEnvelope, address: str, key: str | None) -> Outgoing:
    """Return an envelope as a broker takes it.

    >>> sent = outgoing(WireEnvelope(id="Orders/ö/3", source="/shop", type="Charge", data=b"{}"), "payments", None)
    >>> sent.id, sent.headers["ce-id"], sent.headers["ce-type"]
    ('/shop#Orders/ö/3', 'Orders/%C3%B6/3', 'Charge')
    """
    headers = {CONTENT_TYPE: JSON}
    for name, value in envelope.attributes().items():
        if name in _TRACE:
            headers[name] = str(value)
        else:
            headers[f"ce-{name}"] = _quoted(str(value))
    return Outgoing(address, envelope.message_id, envelope.data, headers, key)


def incoming(delivery: Delivery, address: str, bare_type: str | None = None) -> tuple[WireEnvelope, str]:
    """Return the envelope that came, and the id under which its message is taken; or raise what is wrong with it.

    A bare message is of `bare_type`. One that its sender gave no id has the broker's own for it, so that a redelivery
    is recognised after whatever time.

    >>> headers = {"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/shop", "ce-type": "Charge"}
    >>> incoming(Delivery(b"{}", headers, "nats:PAYMENTS/17"), "payments")[1]
    '/shop#7'
    >>> incoming(Delivery(b"{}", {}, "nats:PAYMENTS/17"), "payments", bare_type="Charge")[1]
    'nats:PAYMENTS/17'
    """
    if delivery.headers.get(CONTENT_TYPE, "").strip().lower().startswith(MEDIA_TYPE):
        envelope = read_envelope(delivery.body)
        return envelope, envelope.message_id
    attributes = attributes_of(delivery.headers)
    attributes.setdefault("specversion", SPEC_VERSION)
    attributes.setdefault("source", _quoted(address))
    if "type" not in attributes:
        if bare_type is None:
            raise DecodeError(
                "The message", "does not say of which type it is", "Send it with a ce-type header, or as CloudEvents."
            )
        attributes["type"] = bare_type
    if "id" in attributes:
        envelope = read_attributes(attributes, delivery.body)
        return envelope, envelope.message_id
    id = own_id(delivery, address)
    if id is None:
        raise DecodeError(
            "The message",
            "has no id, and its broker gives it none: a redelivery could not be distinguished from another message",
            "Send it with an id.",
        )
    return read_attributes({**attributes, "id": id}, delivery.body), id


def own_id(delivery: Delivery, address: str) -> str | None:
    """Return the id that a delivery has beside its envelope: its sender's, else the broker's own."""
    if delivery.sender_id:
        return f"{_quoted(address)}#{delivery.sender_id}"
    return delivery.identity


def id_of_unread(delivery: Delivery, address: str) -> str:
    """Return an id for what cannot be read: the same at every delivery.

    >>> id_of_unread(Delivery(b"{", {}, None), "orders")
    'orders#sha256:021fb596db81e6d02bf3d2586ee3981f'
    """
    found = own_id(delivery, address)
    if found is not None and found.isprintable():
        return found
    return f"{_quoted(address)}#sha256:{sha256(delivery.body).hexdigest()[:32]}"


def attributes_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes among headers, whose names are in lower case.

    >>> attributes_of({"ce_type": "Paid", "cloudEvents:id".lower(): "7%201", "traceparent": "00-…", "other": "x"})
    {'type': 'Paid', 'id': '7 1', 'traceparent': '00-…'}
    """
    found: dict[str, str] = {}
    for name, value in headers.items():
        attribute = _attribute(name)
        if attribute is not None:
            found[attribute] = value if name in _TRACE else unquote(value)
    if CONTENT_TYPE in headers:
        found.setdefault("datacontenttype", headers[CONTENT_TYPE])
    return found


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers by which a message is read, to be kept with one that cannot be taken; others may be secrets.

    >>> kept_headers({"ce_type": "Paid", "content-type": "application/json", "x-jwt": "…", "ce-token": "…"})
    {'ce_type': 'Paid', 'content-type': 'application/json'}
    """
    return {name: value for name, value in headers.items() if _attribute(name) in ATTRIBUTES or name == CONTENT_TYPE}


def _attribute(header: str) -> str | None:
    """Return the attribute that a header stands for, if it does."""
    prefix = next((prefix for prefix in _PREFIXES if header.startswith(prefix)), None)
    return header.removeprefix(prefix) if prefix is not None else header if header in _TRACE else None


def _quoted(text: str) -> str:
    return text if _is_safe(text) else quote(text, safe=_SAFE)
