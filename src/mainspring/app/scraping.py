"""An app's metrics, to be scraped: as a page, or for a registry that the program has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.app.internals import Internals, internals_of
from mainspring.app.observing import VARIABLE
from mainspring.errors import OperationError
from mainspring.telemetry.instruments import Instruments

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from mainspring.app.app import Mainspring


async def exposition(app: Mainspring, accept: str = "") -> tuple[bytes, str]:
    """Return the metrics page of a running app, and its content type."""
    internals = internals_of(app)
    instruments = _counted(internals)
    from mainspring.telemetry.prometheus import exposition as exposed  # noqa: PLC0415  an extra

    await internals.looks.look()
    return exposed(instruments, accept)


def collector(internals: Internals) -> Collector:
    """Return an app's metrics, for a registry of prometheus_client."""
    instruments = _counted(internals)
    from mainspring.telemetry.prometheus import InstrumentsCollector  # noqa: PLC0415  an extra

    return InstrumentsCollector(instruments)


def _counted(internals: Internals) -> Instruments:
    telemetry = internals.telemetry
    if telemetry is None or telemetry.instruments is None or not telemetry.exposes:
        advice = f"app.observe(metrics=True), or {VARIABLE}=metrics, turns it on."
        raise OperationError("Metrics", "are not counted here", advice)
    return telemetry.instruments
