"""What a pure step and a codec round trip cost, with no store behind them."""

from dataclasses import dataclass
from typing import Any

from bench.measure import REPEATS, emit, median, seconds_each
from examples.order_processing.workflow import OrderProcessing
from mainspring.codec import Codec
from mainspring.core.messages import Envelope
from mainspring.core.step import step
from mainspring.testing import Rehearsal, envelope

INSTANCES = 5_000
MESSAGES = 20_000


@dataclass(frozen=True)
class Line:
    sku: str
    qty: int
    price: int


@dataclass(frozen=True)
class Address:
    city: str
    zip: str


@dataclass(frozen=True)
class Order:
    """About 200 bytes of JSON."""

    id: str
    customer: str
    currency: str
    lines: tuple[Line, ...]
    address: Address
    note: str


ORDER = Order(
    id="order-0000001",
    customer="c-4711",
    currency="EUR",
    lines=(Line("A-100", 1, 1999), Line("B-200", 3, 499)),
    address=Address("Utrecht", "3511"),
    note="leave at the door",
)


def run_steps(workflow: Any, envelopes: list[Envelope[Any]]) -> int:
    for _ in range(INSTANCES):
        state, version = workflow.initial_state, 0
        for enveloped in envelopes:
            taken = step(workflow, state, version, enveloped, begins=version == 0)
            state, version = taken.state, taken.version
    return INSTANCES * len(envelopes)


def core(as_json: bool) -> None:
    """Measure pure steps of the order workflow, and the codec on a message of 200 bytes."""
    from examples.order_processing.story import STORIES  # noqa: PLC0415  only this figure needs the story

    workflow = OrderProcessing()
    rehearsal = Rehearsal(workflow)
    envelopes: list[Envelope[Any]] = []
    for message in STORIES[0].messages:
        envelopes.append(envelope(message))
        rehearsal.take(message)
    codec = Codec()
    codec.register(Order)
    encoded = codec.encode(ORDER)

    def encode() -> int:
        for _ in range(MESSAGES):
            codec.encode(ORDER)
        return MESSAGES

    def decode() -> int:
        for _ in range(MESSAGES):
            codec.decode(encoded.name, encoded.version, encoded.body)
        return MESSAGES

    steps = seconds_each(lambda: run_steps(workflow, envelopes))
    encoding = seconds_each(encode)
    decoding = seconds_each(decode)
    emit(
        as_json,
        [
            f"pure steps      {1 / median(steps):>10,.0f} steps/s   ({len(envelopes)} steps an order, cached state)",
            f"encode          {median(encoding) * 1e6:>10.2f} µs        ({len(encoded.body)} bytes, round trip proven)",
            f"decode          {median(decoding) * 1e6:>10.2f} µs",
            f"                medians of {REPEATS}",
        ],
        bench="core",
        steps_per_s=round(1 / median(steps)),
        encode_us=round(median(encoding) * 1e6, 3),
        decode_us=round(median(decoding) * 1e6, 3),
        body_bytes=len(encoded.body),
        repeats=REPEATS,
    )
