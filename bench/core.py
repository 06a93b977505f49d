"""What a pure step and a codec round trip cost, with no store behind them."""

from __future__ import annotations

from typing import Any

from bench.measure import REPEATS, Figures, median, seconds_each
from bench.workflows import Order, order
from examples.order_processing.story import STORIES
from mainspring import Kind
from mainspring.codec import Codec
from mainspring.core.messages import Envelope
from mainspring.core.step import step
from mainspring.testing import envelope

INSTANCES = 5_000
MESSAGES_PER_INSTANCE = 4


def core(instances: int = INSTANCES, repeats: int = REPEATS) -> Figures:
    """Measure pure steps of the order workflow, and the codec on a message of 200 bytes."""
    workflow, envelopes = _story()
    messages = instances * MESSAGES_PER_INSTANCE
    codec = Codec()
    codec.register(Order)
    placed = order(1)
    encoded = codec.encode(placed)

    def steps() -> int:
        for _ in range(instances):
            state, version = workflow.initial_state, 0
            for enveloped in envelopes:
                taken = step(workflow, state, version, enveloped, begins=version == 0)
                state, version = taken.state, taken.version
        return instances * len(envelopes)

    def encode() -> int:
        for _ in range(messages):
            codec.encode(placed)
        return messages

    def decode() -> int:
        for _ in range(messages):
            codec.decode(encoded.name, encoded.version, encoded.body)
        return messages

    return {
        "bench": "core",
        "steps_per_s": round(1 / median(seconds_each(steps, repeats))),
        "encode_us": round(median(seconds_each(encode, repeats)) * 1e6, 3),
        "decode_us": round(median(seconds_each(decode, repeats)) * 1e6, 3),
        "body_bytes": len(encoded.body),
        "repeats": repeats,
    }


def _story() -> tuple[Any, list[Envelope[Any]]]:
    """Return the first order story's workflow and its inputs, after checking that the workflow takes them."""
    story = STORIES[0]
    story.rehearse()
    return story.workflow, [envelope(taken.message, kind=taken.kind or Kind.COMMAND) for taken in story.inputs()]
