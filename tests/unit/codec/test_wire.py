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
    BATCH_MEDIA_TYPE,
    ENVELOPE_BYTES,
    KINDS,
    MEDIA_TYPE,
    SPEC_VERSION,
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
        reply_to="answers",
        actor="ann",
        trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01;rojo=1;congo=2",
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
        "replyto": "answers",
        "actor": "ann",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "rojo=1;congo=2",
        "datacontenttype": "application/json",
        "data": {"counter": "c-1"},
    }
    SCHEMA.validate(body)


def test_a_message_without_a_sender_and_a_trace_says_nothing_of_them() -> None:
    own = Envelope(Count("c-1"), "m-1", EPOCH, "m-1")
    attributes = envelope_of(own, "Count", 1, b"{}").attributes()

    assert attributes.keys().isdisjoint({"sender", "traceparent", "tracestate", "replyto", "actor", "causationid"})
    assert read_envelope(written(envelope_of(own, "Count", 1, b"{}"))).sender is None


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
        ({"sender": "/o-1"}, "its sender"),
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
    with pytest.raises(BodyTooLargeError, match=r"has 2,162,689 bytes; the limit is 2,162,688"):
        read_envelope(b" " * (ENVELOPE_BYTES + 1))


def test_an_envelope_of_just_its_limit_is_read() -> None:
    assert read_envelope(json.encode(LEAST).ljust(ENVELOPE_BYTES)).id == "7"


def test_an_attribute_may_be_just_as_long_as_its_limit() -> None:
    assert ATTRIBUTE_CHARACTERS == 4_000
    assert read_envelope(json.encode(LEAST | {"id": "x" * ATTRIBUTE_CHARACTERS})).id == "x" * ATTRIBUTE_CHARACTERS


def test_the_first_version_of_a_type_may_be_named() -> None:
    assert read_envelope(json.encode(LEAST | {"typeversion": 1})).type_version == 1


@pytest.mark.parametrize("kind", ["command", "event", "result", "reply"])
def test_a_message_may_be_of_every_kind_that_travels(kind: str) -> None:
    assert read_envelope(json.encode(LEAST | {"kind": kind})).kind == kind


@pytest.mark.parametrize(
    "media_type", ["application/json", "text/json", "application/vnd.shop+json", " Application/JSON ; charset=utf-8"]
)
def test_data_is_json_under_each_of_its_names(media_type: str) -> None:
    assert read_envelope(json.encode(LEAST | {"datacontenttype": media_type})).data == b"{}"


def test_a_key_that_stands_twice_in_an_envelope_is_refused() -> None:
    body = json.encode(LEAST)[:-1] + b',"id":"8"}'

    with pytest.raises(DecodeError, match="The envelope: the body has the key 'id' twice"):
        read_envelope(body)
    with pytest.raises(DecodeError, match="The envelopes: the body has the key 'id' twice"):
        read_envelopes(b"[" + body + b"]")


def test_one_envelope_may_stand_where_several_are_expected() -> None:
    one = read_envelope(json.encode(LEAST))

    assert read_envelopes(json.encode(LEAST)) == [one]
    assert read_envelopes(b" \n[" + json.encode(LEAST) + b"]") == [one]


def test_attributes_that_make_no_envelope_are_refused() -> None:
    with pytest.raises(DecodeError, match=r"The envelope: .*missing required field `id`"):
        read_attributes({"specversion": "1.0", "source": "/p", "type": "Paid"}, b"{}")


def test_the_names_under_which_envelopes_travel_are_those_of_cloudevents() -> None:
    assert MEDIA_TYPE == "application/cloudevents+json"
    assert BATCH_MEDIA_TYPE == "application/cloudevents-batch+json"
    assert (WireEnvelope(id="1", type="Paid", data=b"{}").source, SPEC_VERSION) == ("/mainspring", "1.0")


def test_an_envelope_cannot_be_changed() -> None:
    envelope: Any = read_envelope(json.encode(LEAST))
    with pytest.raises(AttributeError):
        envelope.id = "8"
    with pytest.raises(TypeError):
        WireEnvelope("8", "Paid", b"{}")  # pyright: ignore[reportCallIssue]  its fields are named


def test_the_schema_is_read_once() -> None:
    assert schema() is schema()


def test_attributes_that_nobody_knows_are_passed_over() -> None:
    assert read_envelope(json.encode(LEAST | {"partitionkey": "7", "comexampleflag": True})).id == "7"


def test_two_sources_may_use_the_same_id() -> None:
    one = WireEnvelope(id="b", source="/a", type="Count", data=b"{}")

    assert one.message_id == "/a#b"
    assert replace(one, source="/a#x", id="y").message_id != replace(one, source="/a", id="x#y").message_id
