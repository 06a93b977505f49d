"""What is kept of a running operation while it is observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.telemetry.tracing import Spanned


class Observed:
    """A running operation: its start, its span, and the trace that what comes of it carries on."""

    __slots__ = ("begun_us", "spanned", "trace", "workflow")

    def __init__(self, begun_us: int, spanned: Spanned | None, trace: str | None, workflow: str = "") -> None:
        self.begun_us = begun_us
        self.spanned = spanned
        self.trace = trace
        self.workflow = workflow
