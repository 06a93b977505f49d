"""Spans, by OpenTelemetry's API (extra `otel`): whatever exporter is set up gets them.

A message carries its trace as text. The process that continues it makes a span *below* the one that sent it, as long as
the trace is young: then one trace shows a message's whole way, through steps, handlers, other workflows and brokers, in
however many processes. What happens later (a timer after days, a retry after an hour, a message that lay in an inbox)
begins a trace of its own with a *link* to the sender: no trace grows without end, and every one can be followed back.

How old a trace is stands in its text, as a member of the tracestate: `mainspring=` and the second in which its first
message came in, in hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import lru_cache
from importlib.metadata import version
from traceback import format_tb
from typing import Any, Final, TypeAlias

from opentelemetry import context as current
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

from mainspring.errors import StepError, told
from mainspring.errors.kinds import kind_of
from mainspring.logs import Quoted, discretion, logger
from mainspring.telemetry.w3c import TRACESTATE_CHARACTERS

SCOPE: Final = "mainspring"
STAMP: Final = "mainspring="
MICROSECONDS: Final = 1_000_000
ERROR_CHARACTERS: Final = 1_000
STACK_CHARACTERS: Final = 8_000
LINKS: Final = 100
"""Of a span at most: a batch of a handler may have thousands of messages."""

CONTEXTS_KEPT: Final = 1_000
"""Read once: the steps of an instance and the attempts of a step have the same."""

Attributes: TypeAlias = Mapping[str, str | int]

log = logger("mainspring.telemetry")

_TEXT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:;(.*))?", re.ASCII)
_around: ContextVar[Spanned | None] = ContextVar("mainspring_span", default=None)


class Spanned:
    """A span, the trace that what comes of it carries on, and when that trace began."""

    __slots__ = ("begun_seconds", "span", "trace")

    def __init__(self, span: Span, text: str | None, begun_seconds: int) -> None:
        self.span = span
        self.trace = text
        self.begun_seconds = begun_seconds


class Entered:
    """That a span is the current one, until it is left."""

    __slots__ = ("around", "attached")

    def __init__(self, attached: Token[Context], around: Token[Spanned | None]) -> None:
        self.attached = attached
        self.around = around


class Tracing:
    """Makes spans.

    >>> tracing = Tracing(trace.NoOpTracerProvider(), 60)
    >>> sent = tracing.send("send Orders", {}, now_us=0)
    >>> tracing.end(sent, "stepped")
    """

    def __init__(self, provider: trace.TracerProvider | None, young_seconds: float) -> None:
        self._tracer = trace.get_tracer(SCOPE, version("mainspring"), provider)
        self._young_seconds = young_seconds
        self._failed = False

    def send(self, name: str, attributes: Attributes, now_us: int, carried: str | None = None) -> Spanned:
        """Begin a span for a message that comes in: below the trace that it carries, or its sender's current span."""
        if carried is not None:
            return self.process(name, attributes, [(carried, now_us)], now_us, SpanKind.CONSUMER)
        span = self._started(name, None, SpanKind.PRODUCER, attributes, [])
        return self._spanned(span, None, self._begun_here(span, now_us))

    def process(
        self,
        name: str,
        attributes: Attributes,
        carried: Sequence[tuple[str | None, int]],
        now_us: int,
        kind: SpanKind = SpanKind.CONSUMER,
        began: str | None = None,
    ) -> Spanned:
        """Begin a span for what carries messages on, each given by its trace and when it was made.

        One young message: a span below its sender's. Old ones, and several: a root with links. `began` is a trace to
        link to if it is another one: that of the message by which an instance began.
        """
        senders = [sender for text, _ in carried[:LINKS] if (sender := context_of(text)) is not None]
        text, made_us = carried[0]
        begun, now = _begun(text, made_us), now_us // MICROSECONDS
        is_child = len(carried) == len(senders) == 1 and now - begun <= self._young_seconds
        links = [] if is_child else [Link(sender) for sender in senders]
        first = None if began == text else context_of(began)
        if first is not None and all(first.trace_id != sender.trace_id for sender in senders):
            links.append(Link(first, {"mainspring.link": "began"}))
        # A context of its own: whatever is current in this task belongs to another caller.
        parent = trace.set_span_in_context(NonRecordingSpan(senders[0]), Context()) if is_child else Context()
        span = self._started(name, parent, kind, attributes, links)
        return self._spanned(span, text, begun if is_child else now)

    def _started(
        self, name: str, parent: Context | None, kind: SpanKind, attributes: Attributes, links: Sequence[Link]
    ) -> Span:
        try:
            return self._tracer.start_span(name, parent, kind, attributes, links)
        except Exception as error:  # noqa: BLE001  a sampler or a processor may fail; what is traced continues
            self._tell(error)
            return trace.INVALID_SPAN

    def end(self, spanned: Spanned, outcome: str, error: BaseException | None = None, **attributes: str | int) -> None:
        """End a span with what came of it."""
        span = spanned.span
        try:
            if span.is_recording():
                span.set_attribute("mainspring.outcome", outcome)
                for name, value in attributes.items():
                    span.set_attribute(f"mainspring.{name}", value)
                if error is not None:
                    name, text = type(error).__qualname__, _said(error)
                    span.set_attribute("error.type", name)
                    span.set_status(StatusCode.ERROR, text)
                    where = "".join(format_tb(error.__traceback__))[-STACK_CHARACTERS:]
                    # Not `record_exception`: it writes notes, which show message and state, and all of a long text.
                    said = {"exception.type": name, "exception.message": text, "exception.stacktrace": where}
                    span.add_event("exception", said)
            span.end()
        except Exception as failure:  # noqa: BLE001  as above
            self._tell(failure)

    def _tell(self, error: Exception) -> None:
        """Say once that tracing fails: it may do so for every message."""
        if not self._failed:
            self._failed = True
            log.warning("spans cannot be made or ended, which is logged once: %s", Quoted(told(error)), exc_info=error)

    def enter(self, spanned: Spanned) -> Entered:
        """Let a span be the current one in this task: others that are made meanwhile stand below it."""
        attached = current.attach(trace.set_span_in_context(spanned.span, Context()))
        return Entered(attached, _around.set(spanned))

    def leave(self, entered: Entered) -> None:
        """Let it be so no longer."""
        _around.reset(entered.around)
        current.detach(entered.attached)

    @contextmanager
    def below(self, carried: str | None) -> Generator[None]:
        """Let what is sent meanwhile stand below a trace that came from elsewhere, unless a span is current here."""
        parent = context_of(carried)
        if parent is None or trace.get_current_span().get_span_context().is_valid:
            yield
            return
        attached = current.attach(trace.set_span_in_context(NonRecordingSpan(parent)))
        try:
            yield
        finally:
            current.detach(attached)

    def _begun_here(self, span: Span, now_us: int) -> int:
        """Return when the trace of a message that is sent here began: with what made it, if that is ours."""
        around = _around.get()
        if around is not None and around.span.get_span_context().trace_id == span.get_span_context().trace_id:
            return around.begun_seconds
        return now_us // MICROSECONDS

    def _spanned(self, span: Span, carried: str | None, begun_seconds: int) -> Spanned:
        context = span.get_span_context()
        # Without an SDK there is no span: what a message carries is passed on all the same.
        text = text_of(context, begun_seconds) if context.is_valid else carried
        return Spanned(span, text, begun_seconds)


def text_of(context: SpanContext, begun_seconds: int) -> str:
    """Return a span as it is carried: traceparent, and a tracestate with when the trace began.

    >>> text_of(SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1)), 0x6AB)
    '00-00000000000000000000000000000001-0000000000000002-01;mainspring=6ab'
    """
    flags = context.trace_flags & TraceFlags.SAMPLED
    text = f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x};{STAMP}{begun_seconds:x}"
    if not context.trace_state:
        return text
    others = context.trace_state.to_header()
    return f"{text},{others}" if len(others) + len(STAMP) + 20 <= TRACESTATE_CHARACTERS else text


@lru_cache(CONTEXTS_KEPT)
def context_of(text: str | None) -> SpanContext | None:
    """Return the span that a message's trace names; None if it names none.

    >>> found = context_of("00-00000000000000000000000000000001-0000000000000002-01;mainspring=6ab,a=1")
    >>> found.span_id, dict(found.trace_state)
    (2, {'a': '1'})
    >>> context_of("t") is None
    True
    """
    found = None if text is None else _TEXT.fullmatch(text)
    if found is None:
        return None
    trace_id, span_id, flags, state = found.groups()
    others = [member for member in (state or "").split(",") if member and not member.startswith(STAMP)]
    context = SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(flags, 16)),
        trace_state=TraceState.from_header([",".join(others)]) if others else None,
    )
    return context if context.is_valid else None


def _begun(text: str | None, made_us: int) -> int:
    """Return when a trace began, in seconds: not after its message was made, whatever it says of that."""
    made = made_us // MICROSECONDS
    for member in (text or "").partition(";")[2].split(","):
        if member.startswith(STAMP):
            try:
                return min(made, max(0, int(member.removeprefix(STAMP), 16)))
            except ValueError:
                break  # not our stamp, but of the same name
    return made


def _said(error: BaseException) -> str:
    """Return what an error says, without the message and the state that it may show; where a seal hides them, its kind.

    >>> _said(StepError("Orders", "has no case.", "Add one.", message="card 4111", state=None))
    'StepError: Orders has no case. Add one.'
    """
    if discretion.asked:
        return kind_of(error)
    if isinstance(error, StepError):
        return f"{type(error).__name__}: {error.workflow} {error.problem} {error.fix}"[:ERROR_CHARACTERS]
    return told(error, ERROR_CHARACTERS)


def carried_on(text: str | None, call: Any, *arguments: Any) -> Any:
    """Call a function below a trace: in a process where nothing of it is known but its text.

    >>> carried_on(None, len, "abc")
    3
    """
    parent = context_of(text)
    if parent is None:
        return call(*arguments)
    attached = current.attach(trace.set_span_in_context(NonRecordingSpan(parent), Context()))
    try:
        return call(*arguments)
    finally:
        current.detach(attached)
