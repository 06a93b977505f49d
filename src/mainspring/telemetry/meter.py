"""The outlet to OpenTelemetry's metrics (extra `otel`): the same instruments, read by whatever exporter is set up."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Final

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from mainspring.telemetry.instruments import Counter, Gauge, Histogram, Instruments, named

SCOPE: Final = "mainspring"


def connect(instruments: Instruments, provider: MeterProvider | None) -> None:
    """Let a meter read the instruments; that of the global provider, where no other is given.

    >>> connect(Instruments(), metrics.NoOpMeterProvider())
    """
    meter = metrics.get_meter(SCOPE, version("mainspring"), provider)
    for instrument in instruments:
        match instrument:
            case Histogram():
                _told(meter, instrument)
            case Counter() | Gauge():
                _read(meter, instrument)


def _read(meter: Meter, instrument: Counter | Gauge) -> None:
    definition = instrument.definition

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, named(definition, labels)) for labels, value in instrument.read()]

    make = meter.create_observable_counter if isinstance(instrument, Counter) else meter.create_observable_gauge
    make(definition.name, [observe], definition.unit, definition.help)


def _told(meter: Meter, instrument: Histogram) -> None:
    definition = instrument.definition
    made = meter.create_histogram(
        definition.name, definition.unit, definition.help, explicit_bucket_boundaries_advisory=instrument.bounds
    )
    instrument.record = made.record
