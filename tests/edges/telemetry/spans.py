"""A real OpenTelemetry SDK, whose spans and numbers stay in memory."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Spans:
    """What was exported, to be looked at by name."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def of(self, type: str, name: str = "step") -> list[ReadableSpan]:
        """Return the spans about a type of message whose name begins so, in the order of their ends."""
        return [
            span
            for span in self.all
            if span.name.startswith(name) and (span.attributes or {}).get("mainspring.message.type") == type
        ]

    def one(self, type: str, name: str = "step") -> ReadableSpan:
        [span] = self.of(type, name)
        return span


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def trace_ids(spans: Iterable[ReadableSpan]) -> set[int]:
    return {span.context.trace_id for span in spans if span.context is not None}


def is_below(child: ReadableSpan, parent: ReadableSpan) -> bool:
    return child.parent is not None and child.parent.span_id == id_of(parent)


def links_to(span: ReadableSpan) -> set[int]:
    """Return the spans that one is linked to."""
    return {link.context.span_id for link in span.links}
