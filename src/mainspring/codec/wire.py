"""Messages as other services see them: a CloudEvents 1.0 envelope around the JSON of the message.

One set of attributes, two ways to write them: all in one JSON object (structured, here), or as headers beside the bare
message (binary, made of `attributes` where a transport has headers). docs/reference/envelope.md describes it for
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from msgspec import MsgspecError, Raw, Struct, ValidationError, convert, json

from mainspring.codec.limits import BODY_LIMIT_BYTES
from mainspring.codec.strict import scan
from mainspring.core.messages import Envelope
from mainspring.errors import BodyTooLargeError, DecodeError, shown

MEDIA_TYPE: Final = "application/cloudevents+json"
BATCH_MEDIA_TYPE: Final = "application/cloudevents-batch+json"
SPEC_VERSION: Final = "1.0"
ENVELOPE_VERSION: Final = 1
"""Raised when what is written could not be understood by a reader of the version before."""
SOURCE: Final = "/mainspring"
ENVELOPE_BYTES: Final = BODY_LIMIT_BYTES + 64 * 1_024
ATTRIBUTE_CHARACTERS: Final = 4_000
KINDS: Final = ("command", "event", "result", "reply")

_NAMES: Final = {
    "id": "id",
    "source": "source",
    "type": "type",
    "type_version": "typeversion",
    "time": "time",
    "kind": "kind",
    "correlation_id": "correlationid",
    "causation_id": "causationid",
    "sender": "sender",
    "instance": "instance",
    "reply_to": "replyto",
    "actor": "actor",
    "traceparent": "traceparent",
    "tracestate": "tracestate",
}


ATTRIBUTES: Final = frozenset({"specversion", "envelopeversion", "datacontenttype", *_NAMES.values()})
"""What an envelope is read by. All else that comes beside a message is passed over."""


class WireEnvelope(Struct, frozen=True, gc=False, kw_only=True):
    """A message on its way to or from another service, with the exact JSON bytes of its body as `data`.

    `source` and `id` together name it for ever. `sender` is the instance that sent it, `instance` the one that it is
    for, past that workflow's route; both are written `workflow/id`. Without a `type_version` it is the newest one.

    >>> envelope = WireEnvelope(id="OrderFulfilment/o-1/3", type="ChargeCard", data=b'{"order_id":"o-1"}')
    >>> read_envelope(written(envelope)) == envelope
    True
    """

    id: str
    type: str
    data: bytes
    source: str = SOURCE
    type_version: int | None = None
    time: datetime | None = None
    kind: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    sender: str | None = None
    instance: str | None = None
    reply_to: str | None = None
    actor: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None

    @property
    def message_id(self) -> str:
        """The id under which it is taken: two sources may well use the same id.

        >>> WireEnvelope(id="7", source="/payments", type="CardCharged", data=b"{}").message_id
        '/payments#7'
        """
        return f"{self.source.replace('#', '%23')}#{self.id}"

    def attributes(self) -> dict[str, str | int]:
        """Return all but `data`, under their names in CloudEvents; what is not known is left out."""
        found: dict[str, str | int] = {"specversion": SPEC_VERSION, "envelopeversion": ENVELOPE_VERSION}
        for own, name in _NAMES.items():
            value = getattr(self, own)
            if value is not None:
                found[name] = _timestamp(value) if isinstance(value, datetime) else value
        return found


class _Attributes(Struct, frozen=True, rename=_NAMES):
    """What the attributes must be; unknown ones are ignored, as CloudEvents has it."""

    specversion: str
    id: str
    type: str
    source: str
    envelopeversion: int = ENVELOPE_VERSION
    datacontenttype: str = "application/json"
    type_version: int | None = None
    time: datetime | None = None
    kind: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    sender: str | None = None
    instance: str | None = None
    reply_to: str | None = None
    actor: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None


class _Whole(Struct, frozen=True):
    data: Raw = Raw()
    data_base64: Raw = Raw()


_whole: Final = json.Decoder(_Whole)
_attributes: Final = json.Decoder(_Attributes)


def envelope_of(
    message: Envelope[Any], type: str, type_version: int, data: bytes, *, source: str = SOURCE
) -> WireEnvelope:
    """Return a message with its context, encoded by the codec, as others see it.

    >>> from mainspring.testing.samples import Count
    >>> own = Envelope(Count("c-1"), "m-1", datetime(2026, 1, 31, tzinfo=UTC), "c-1")
    >>> envelope_of(own, "Count", 1, b'{"counter":"c-1"}').attributes()["time"]
    '2026-01-31T00:00:00Z'
    """
    parent, _, state = (message.trace or "").partition(";")
    return WireEnvelope(
        id=message.id,
        source=source,
        type=type,
        type_version=type_version,
        data=data,
        time=message.time,
        kind=message.kind.value,
        correlation_id=message.correlation_id,
        causation_id=message.causation_id,
        sender=None if message.sender is None else str(message.sender),
        reply_to=message.reply_to,
        actor=message.actor,
        traceparent=parent or None,
        tracestate=state or None,
    )


def written(envelope: WireEnvelope) -> bytes:
    """Return an envelope as one JSON object.

    >>> written(WireEnvelope(id="7", type="CardCharged", source="/payments", data=b'{"order_id":"o-1"}')).decode()
    '{"specversion":"1.0","envelopeversion":1,"id":"7","source":"/payments","type":"CardCharged","datacontenttype":"application/json","data":{"order_id":"o-1"}}'
    """
    body = {**envelope.attributes(), "datacontenttype": "application/json", "data": Raw(envelope.data)}
    return json.encode(body)


def read_envelope(body: bytes) -> WireEnvelope:
    """Return the envelope that some JSON is, or say what is wrong with it.

    >>> read_envelope(b'{"specversion":"1.0","id":"7","source":"/p","type":"CardCharged","data":{}}').type
    'CardCharged'
    """
    if len(body) > ENVELOPE_BYTES:
        problem = f"has {len(body):,} bytes; the limit is {ENVELOPE_BYTES:,}"
        raise BodyTooLargeError("The envelope", problem, "Keep large data elsewhere and its address in the message.")
    scan("The envelope", body)
    try:
        whole = _whole.decode(body)
        attributes = _attributes.decode(body)
    except MsgspecError as error:
        raise _wrong(str(error)) from None
    if bytes(whole.data_base64):
        raise _wrong("its data is base64", "Send the message as JSON, in `data`.")
    if not bytes(whole.data):
        raise _wrong("it has no data", "Send the message's fields as `data`, {} if there are none.")
    return _checked(attributes, bytes(whole.data))


def read_envelopes(body: bytes) -> list[WireEnvelope]:
    """Return the envelopes of a JSON array, or the single one given.

    >>> read_envelopes(b"[]")
    []
    """
    if not body.lstrip().startswith(b"["):
        return [read_envelope(body)]
    scan("The envelopes", body)
    return [read_envelope(bytes(part)) for part in json.decode(body, type=list[Raw])]


def read_attributes(attributes: Mapping[str, str], data: bytes) -> WireEnvelope:
    """Return the envelope that attributes beside a message make: those of headers, all of them texts.

    >>> read_attributes({"specversion": "1.0", "id": "7", "source": "/p", "type": "Paid", "typeversion": "2"}, b"{}")
    ...     # doctest: +ELLIPSIS
    WireEnvelope(id='7', type='Paid', data=b'{}', source='/p', type_version=2, ...)
    """
    try:
        found = convert(dict(attributes), _Attributes, strict=False)
    except ValidationError as error:
        raise _wrong(str(error)) from None
    return _checked(found, data)


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the structured form, as it is shipped with the package.

    >>> schema()["$id"]
    'urn:mainspring:envelope:1'
    """
    return json.decode(files("mainspring.codec").joinpath("envelope.schema.json").read_bytes())


def _checked(found: _Attributes, data: bytes) -> WireEnvelope:
    if found.specversion != SPEC_VERSION:
        raise _wrong(f"its specversion is {shown(found.specversion, 20)}", f"Send CloudEvents {SPEC_VERSION}.")
    if found.envelopeversion != ENVELOPE_VERSION:
        raise _wrong(
            f"its envelopeversion is {found.envelopeversion}",
            f"Send version {ENVELOPE_VERSION}, or upgrade mainspring.",
        )
    if not _is_json(found.datacontenttype):
        raise _wrong(f"its data is {shown(found.datacontenttype, 80)}", "Send the message as application/json.")
    if found.kind is not None and found.kind not in KINDS:
        raise _wrong(f"its kind is {shown(found.kind, 20)}", f"Use one of {', '.join(KINDS)}.")
    if " " in found.source:
        raise _wrong(f"its source is {shown(found.source, 40)}", "Use a URI reference, such as /payments.")
    if found.time is not None and found.time.tzinfo is None:
        raise _wrong("its time has no zone", "Send it as in 2026-01-31T12:00:00Z.")
    if found.type_version is not None and found.type_version < 1:
        raise _wrong(f"its typeversion is {found.type_version}", "Versions begin with 1.")
    for own, name in _NAMES.items():
        _check_text(name, getattr(found, own))
    for name, identity in (("sender", found.sender), ("instance", found.instance)):
        workflow, _, id = (identity or "workflow/id").partition("/")
        if not (workflow and id):
            raise _wrong(f"its {name} is {shown(identity, 40)}", "Write it as workflow/id.")
    return WireEnvelope(data=data, **{name: getattr(found, name) for name in _NAMES})


def _check_text(name: str, value: object) -> None:
    if isinstance(value, str) and not (0 < len(value) <= ATTRIBUTE_CHARACTERS and value.isprintable()):
        fix = f"Use 1 to {ATTRIBUTE_CHARACTERS:,} visible characters, or leave it out."
        raise _wrong(f"its {name} is {shown(value, 40)}", fix)


def _is_json(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    return essence in ("application/json", "text/json") or essence.endswith("+json")


def _timestamp(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _wrong(problem: str, fix: str = "The reference of the envelope says what it holds.") -> DecodeError:
    return DecodeError("The envelope", problem, fix)
