"""Every reader of bytes from outside, by its name."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from mainspring import Mainspring
from mainspring.analysis.export.stream_file import read_file
from mainspring.analysis.what_if.check import check_file
from mainspring.app.arrivals import Arrivals
from mainspring.app.histories import held, read_histories
from mainspring.app.internals import internals_of
from mainspring.app.search import read_condition, read_moment
from mainspring.app.signatures import GitHub, Hmac, StandardWebhooks, Stripe, keys_of
from mainspring.brokers.kafka_subscription import KafkaSubscription
from mainspring.brokers.nats_subscription import NatsSubscription
from mainspring.brokers.port import Delivery
from mainspring.brokers.rabbitmq_subscription import RabbitSubscription
from mainspring.brokers.redis_subscription import BODY, RedisSubscription
from mainspring.brokers.routing import Table
from mainspring.brokers.sqs_subscription import delivery_of
from mainspring.brokers.wire import id_of_unread, incoming
from mainspring.codec import Codec
from mainspring.codec.wire import read_envelope, read_envelopes
from mainspring.engine.fleet import knowledge, standing
from mainspring.engine.recording.stored_values import read_context
from mainspring.engine.schedules.calendar import calendar_of
from mainspring.errors import (
    AttributeValueError,
    CodecError,
    DamagedRecordError,
    InvalidIdError,
    OperationError,
    RouteError,
    SettingError,
    WiringError,
)
from mainspring.port.attributes import conditions_of
from mainspring.port.records import EventRow
from mainspring.sealing import Compressed, Encrypted, FileKeys, Seal, StaticKeys
from mainspring.sealing.seals import About
from mainspring.telemetry.scraping import Scraped
from mainspring.telemetry.w3c import trace_of
from mainspring.testing.samples import Counter, LeaveRequests
from mainspring.web.access import read_tokens
from mainspring.web.connections import read_limits
from tests.edges.fuzzing.answers import answer_readers, kept_readers
from tests.edges.fuzzing.exchange import SECRET, Exchange, request
from tests.edges.fuzzing.fuzz import Reader
from tests.unit.codec.shop import Everything, codec_for

ABOUT: Final = About("Counter", "c-1", "Count")
SCHEMES: Final = (StandardWebhooks(), GitHub(), Stripe(), Hmac("x-signature"))
# What says more than its message.
EVENTS: Final = ("Sent", "Resent", "Scheduled", "Asked", "Compensating", "Completed", "Failed", "Replied", "Rewound")
KEY: Final = bytes(range(32))
Headers = list[tuple[str, bytes]]


@contextmanager
def readers() -> Generator[list[Reader]]:
    """Give all of them, while there is an app to be asked and a folder for files."""
    with Exchange() as exchange, tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        outside = [*_http(exchange), *_wire(exchange), *_brokers(exchange)]
        kept = [*_stored(folder, exchange.app), *kept_readers(exchange)]
        yield [*outside, *answer_readers(exchange), *_files(folder), *_texts(), *kept]


def _http(exchange: Exchange) -> list[Reader]:
    keys = keys_of(StandardWebhooks(), SECRET)

    def body(data: bytes) -> str:
        head, _, rest = data.partition(b"\n")
        return exchange.send(request(b"POST", b"/api/" + head.strip().replace(b" ", b"+"), rest))

    def hook(data: bytes) -> str:
        signed = StandardWebhooks().sign(keys, "m-1", int(time.time()), data)
        return exchange.send(request(b"POST", b"/api/hooks/doorbell", data, signed))

    def signatures(data: bytes) -> str:
        headers, rest = _parts(data)
        given = {name: value.decode("latin-1") for name, value in headers}
        return str([scheme.prove([scheme.key(SECRET)], given, rest) is not None for scheme in SCHEMES])

    def metrics(data: bytes) -> str:
        scraped = Scraped(_exposed)
        return str(asyncio.run(scraped._reply(data.decode("latin-1")))[0])  # noqa: SLF001  what it reads

    return [
        Reader("http-request", exchange.send),
        Reader("http-body", body),
        Reader("webhook-payload", hook),
        Reader("webhook-signature", signatures),
        Reader("metrics-request", metrics),
    ]


async def _exposed(_: str) -> tuple[bytes, str]:
    return b"", "text/plain"


def _wire(exchange: Exchange) -> list[Reader]:
    codec, all_kinds = internals_of(exchange.app).registry.codec, codec_for(Everything)
    return [
        Reader("envelope", read_envelope, (CodecError,)),
        Reader("envelopes", read_envelopes, (CodecError,)),
        Reader("message", lambda data: codec.decode_outside("Count", 1, data), (CodecError,)),
        Reader("message-of-all-kinds", lambda data: all_kinds.decode_outside("Everything", 1, data), (CodecError,)),
        Reader("message-stored", lambda data: _again(all_kinds, data), (CodecError,)),
    ]


def _again(codec: Codec, data: bytes) -> object:
    return codec.decode("Everything", 1, data)


def _brokers(exchange: Exchange) -> list[Reader]:
    """Return what makes a message of what each client hands over; the clients read the line themselves."""

    def kafka(headers: Headers, body: bytes) -> Delivery:
        record = SimpleNamespace(topic="orders", partition=0, offset=7, value=body, headers=headers)
        return KafkaSubscription._delivery(_as(_prefix="kafka:", _assignment=1), None, record)  # noqa: SLF001  what it reads

    def rabbitmq(headers: Headers, body: bytes) -> Delivery:
        given = {name: _amqp(value) for name, value in headers}
        own = {name: given.pop(name, None) for name in ("message_id", "content_type", "type")}
        texts = {name: None if value is None else str(value) for name, value in own.items()}
        message = _as(headers=given, body=body, redelivered=False, delivery_tag=1, **texts)
        return RabbitSubscription._delivery(_as(_identify=None, queue="orders"), message)  # noqa: SLF001  as above

    def nats(headers: Headers, body: bytes) -> Delivery:
        texts = {name: value.decode(errors="replace") for name, value in headers}
        metadata = SimpleNamespace(sequence=SimpleNamespace(stream=7), num_delivered=1)
        message = _as(headers=texts, data=body, metadata=metadata, reply="r")
        return NatsSubscription._delivery(_as(_prefix="nats:ORDERS"), message)  # noqa: SLF001  as above

    def redis(headers: Headers, body: bytes) -> Delivery:
        fields = [part for name, value in headers for part in (name.encode(errors="replace"), value)]
        return RedisSubscription._delivery(_as(_address="orders"), b"1-0", [*fields, BODY, body], 1)  # noqa: SLF001  as above

    def sqs(headers: Headers, body: bytes) -> Delivery:
        attributes = {name: {"StringValue": value.decode(errors="replace")} for name, value in headers}
        message = {"MessageId": "5f", "Body": body.decode(errors="replace"), "MessageAttributes": attributes}
        return delivery_of("orders.fifo", message, 1)

    def read(delivered: Callable[[Headers, bytes], Delivery]) -> Callable[[bytes], object]:
        def taken(data: bytes) -> object:
            delivery = delivered(*_parts(data))
            assert id_of_unread(delivery, "orders").isprintable()
            envelope, id = incoming(delivery, "orders", "Count")
            arrival = Arrivals(exchange.app).arrival(envelope, id)
            return f"{len(arrival.inputs)} inputs"

        return taken

    known = {"kafka": kafka, "rabbitmq": rabbitmq, "nats": nats, "redis": redis, "sqs": sqs}
    errors = (CodecError, WiringError, RouteError, InvalidIdError)
    return [Reader(f"broker-{name}", read(delivered), errors) for name, delivered in known.items()]


def _as(**fields: Any) -> Any:
    """Return what has the fields that a method looks at."""
    return SimpleNamespace(**fields)


def _amqp(value: bytes) -> Any:
    """Return a value as AMQP's tables have them: numbers, lists, tables, texts, bytes."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value


def _parts(data: bytes) -> tuple[Headers, bytes]:
    """Return headers, each in a line, and what stands behind an empty one."""
    head, _, body = data.partition(b"\n\n")
    pairs = [line.partition(b": ") for line in head.split(b"\n")]
    return [(name.decode(errors="replace"), value) for name, _, value in pairs if name], body


def _files(folder: Path) -> list[Reader]:
    def written(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
        def taken(data: bytes) -> object:
            path = folder / name
            path.write_bytes(data)
            return read(path)

        return taken

    def items(path: Path, seal: Seal | None = None) -> str:
        return " ".join(sorted({type(item).__name__ for item in read_file(path, seal)}))

    def opened(path: Path) -> str:
        return items(path, Encrypted(StaticKeys({"k-1": KEY})))

    def checked(path: Path) -> str:
        report = check_file(app, path)
        return f"{report.safe} {sorted({each.why[:40] for each in report.unchecked})}"

    def held_again(path: Path) -> str:
        return str([one.changed is not None for one in held(internals_of(app).registry, read_histories(path), path)])

    app = Mainspring("memory://")
    app.add(Counter(), LeaveRequests())
    return [
        Reader("export-file", written("streams.jsonl", items), (OperationError,)),
        Reader("export-file-checked", written("streams.jsonl", checked), (OperationError, DamagedRecordError)),
        Reader("export-file-compressed", written("streams.jsonl.gz", items), (OperationError,)),
        Reader("export-file-sealed", written("streams.jsonl", opened), (OperationError, DamagedRecordError)),
        Reader("histories-file", written("histories.json", read_histories), (WiringError,)),
        Reader("histories-file-held", written("histories.json", held_again), (WiringError, DamagedRecordError)),
        Reader("routing-table", written("routing.toml", Table.read), (SettingError,)),
    ]


def _texts() -> list[Reader]:
    def text(read: Callable[[str], object]) -> Callable[[bytes], object]:
        return lambda data: read(data.decode(errors="surrogateescape"))

    def headers(data: bytes) -> str:
        return str(trace_of({name: value.decode("latin-1") for name, value in _parts(data)[0]}) is not None)

    def condition(given: str) -> object:
        return conditions_of([read_condition(given)])

    def limits(given: str) -> object:
        return read_limits(given.split(" "))

    def cron(given: str) -> object:
        calendar = calendar_of("nightly", given, None, "UTC", "skip")
        return type(calendar).__name__

    return [
        Reader("search-condition", text(condition), (SettingError, AttributeValueError)),
        Reader("moment", text(read_moment), (ValueError,)),
        Reader("tokens", text(read_tokens), (SettingError,)),
        Reader("limits", text(limits), (SettingError,)),
        Reader("cron", text(cron), (SettingError,)),
        Reader("trace-headers", headers),
    ]


def _stored(folder: Path, app: Mainspring) -> list[Reader]:
    recorder = internals_of(app).registry.workflows["Counter"].recorder
    sealed, by_file = Encrypted(StaticKeys({"k-1": KEY})), Encrypted(FileKeys(folder / "keys"))

    def text(read: Callable[[str], object]) -> Callable[[bytes], object]:
        return lambda data: read(data.decode(errors="replace"))

    def detail(data: bytes) -> object:
        name = EVENTS[len(data) % len(EVENTS)]
        return recorder.event(EventRow(3, name, 0, "Count", 1, b'{"counter":"c-1"}', data))

    return [
        Reader("context", read_context, (DamagedRecordError,)),
        Reader("detail", detail, (DamagedRecordError, CodecError)),
        Reader("knowledge", text(knowledge.read)),
        Reader("standing", text(standing.read)),
        Reader("compressed", lambda data: Compressed().open(data, ABOUT), (CodecError, DamagedRecordError)),
        Reader("encrypted", lambda data: sealed.open(data, ABOUT), (CodecError, DamagedRecordError)),
        Reader("encrypted-by-file", lambda data: by_file.open(data, ABOUT), (CodecError, DamagedRecordError)),
    ]
