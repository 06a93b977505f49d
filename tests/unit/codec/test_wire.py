"""The envelope in which messages travel to other services and back."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from mainspring.codec.wire import (
    ATTRIBUTE_CHARACTERS,
    ENVELOPE_BYTES,
    KINDS,
    WireEnvelope,
    envelope_of,
    read_attributes,
    read_envelope,
    read_envelopes,
    schema,
    written,
)
from mainspring.core.messages import Envelope, InstanceId, Kind
from mainspring.errors import BodyTooLargeError, CodecError, DecodeError
from mainspring.testing.samples import Count

SCHEMA = jsonschema_rs.Draft202012Validator(schema(), validate_formats=True)
LEAST: dict[str, Any] = {"specversion": "1.0", "id": "7", "source": "/payments", "type": "Count", "data": {}}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zs", "Zl", "Zp", "Co", "Cn"]), min_size=1)
instances = st.tuples(texts.filter(lambda text: "/" not in text), texts).map("/".join)
envelopes = st.builds(
    WireEnvelope,
    id=texts,
    type=texts,
    data=st.dictionaries(texts, st.integers(-(2**53), 2**53) | texts).map(json.encode),
    source=texts,
    type_version=st.none() | st.integers(1, 1_000),
    time=st.none() | st.integers(0, 2**52).map(lambda us: EPOCH + timedelta(microseconds=us)),
    kind=st.none() | st.sampled_from(KINDS),
    correlation_id=st.none() | texts,
    causation_id=st.none() | texts,
    sender=st.none() | instances,
    instance=st.none() | instances,
    reply_to=st.none() | texts,
    actor=st.none() | texts,
    traceparent=st.none() | texts,
    tracestate=st.none() | texts,
)


@given(envelopes)
@settings(max_examples=25, deadline=None)
def test_every_envelope_that_is_written_is_read_as_it_was_and_fits_its_schema(envelope: WireEnvelope) -> None:
    body = written(envelope)

    assert read_envelope(body) == envelope
    assert read_envelopes(b"[" + body + b"," + body + b"]") == [envelope, envelope]
    attributes = {name: str(value) for name, value in envelope.attributes().items()}
    assert read_attributes(attributes, envelope.data) == envelope
    SCHEMA.validate(json.decode(body))


def test_a_message_keeps_its_whole_context() -> None:
    time = datetime(2026, 1, 31, 13, tzinfo=timezone(timedelta(hours=1)))
    own = Envelope(
        Count("c-1"),
        "Orders/o-1/3",
        time,
        "m-1",
        Kind.COMMAND,
        "m-2",
        InstanceId("Orders", "o-1"),
        trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    body = json.decode(written(envelope_of(own, "Count", 1, b'{"counter":"c-1"}', source="/shop")))

    assert body == {
        "specversion": "1.0",
        "envelopeversion": 1,
        "id": "Orders/o-1/3",
        "source": "/shop",
        "type": "Count",
        "typeversion": 1,
        "time": "2026-01-31T12:00:00Z",
        "kind": "command",
        "correlationid": "m-1",
        "causationid": "m-2",
        "sender": "Orders/o-1",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "datacontenttype": "application/json",
        "data": {"counter": "c-1"},
    }
    SCHEMA.validate(body)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"envelopeversion": 2}, "envelopeversion is 2"),
        ({"id": ""}, "its id"),
        ({"id": 7}, "id"),
        ({"id": "x" * (ATTRIBUTE_CHARACTERS + 1)}, "its id"),
        ({"type": "a\nb"}, "its type"),
        ({"source": "two words"}, "its source"),
        ({"typeversion": 0}, "typeversion"),
        ({"typeversion": "2"}, "typeversion"),
        ({"time": "2026-01-31T12:00:00"}, "zone"),
        ({"time": "yesterday"}, "time"),
        ({"kind": "timer"}, "kind"),
        ({"instance": "o-1"}, "its instance"),
        ({"sender": "Orders/"}, "its sender"),
        ({"datacontenttype": "text/xml"}, "text/xml"),
        ({"data_base64": "e30="}, "base64"),
    ],
)
def test_an_envelope_that_cannot_be_meant_is_refused_by_the_reader_and_by_the_schema(
    changed: dict[str, Any], problem: str
) -> None:
    body = LEAST | changed

    with pytest.raises(DecodeError, match=problem):
        read_envelope(json.encode(body))
    if problem != "its type":  # which characters are visible, a schema cannot say
        assert not SCHEMA.is_valid(body)


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"null", b'"text"', b"[]", b"\xff", json.encode({**LEAST, "data": 1})[:-1], b'{"id":1,"id":2}'],
)
def test_what_is_no_envelope_is_refused(body: bytes) -> None:
    with pytest.raises(CodecError):
        read_envelope(body)


def test_an_envelope_without_data_is_refused_and_one_over_its_limit() -> None:
    with pytest.raises(DecodeError, match="no data"):
        read_envelope(json.encode({name: value for name, value in LEAST.items() if name != "data"}))
    with pytest.raises(BodyTooLargeError):
        read_envelope(b" " * (ENVELOPE_BYTES + 1))


def test_attributes_that_nobody_knows_are_passed_over() -> None:
    assert read_envelope(json.encode(LEAST | {"partitionkey": "7", "comexampleflag": True})).id == "7"


def test_two_sources_may_use_the_same_id() -> None:
    one = WireEnvelope(id="b", source="/a", type="Count", data=b"{}")

    assert one.message_id == "/a#b"
    assert replace(one, source="/a#x", id="y").message_id != replace(one, source="/a", id="x#y").message_id
