"""The outlet to Prometheus (extra `metrics`): the instruments as a collector, and as the text that is scraped."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mainspring.telemetry.instruments import Cell, Counter, Gauge, Histogram, Instrument, Instruments


class InstrumentsCollector(Collector):
    """Instruments for a registry of prometheus_client: one's own, or that of an app that has others beside them.

    >>> instruments = Instruments()
    >>> instruments.steps.add(("Orders", "stepped"))
    >>> [metric.name for metric in InstrumentsCollector(instruments).collect() if metric.samples]
    ['mainspring_steps']
    """

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments

    def collect(self) -> Iterator[Metric]:
        """Yield their current values."""
        for instrument in self._instruments:
            yield _metric(instrument)

    def describe(self) -> list[Metric]:
        """Yield nothing at registration: gauges may have to be measured first."""
        return []


def _metric(instrument: Instrument) -> Metric:
    definition = instrument.definition
    name, help, labels = definition.family, definition.help, definition.labels
    match instrument:
        case Counter():
            counter = CounterMetricFamily(name, help, labels=labels)
            for values, count in instrument.read():
                counter.add_metric(values, count)
            return counter
        case Gauge():
            gauge = GaugeMetricFamily(name, help, labels=labels)
            for values, value in instrument.read():
                gauge.add_metric(values, value)
            return gauge
        case Histogram():
            histogram = HistogramMetricFamily(name, help, labels=labels)
            for values, cell in instrument.read():
                histogram.add_metric(values, _buckets(instrument, cell), cell.sum)
            return histogram


def _buckets(histogram: Histogram, cell: Cell) -> list[tuple[str, float]]:
    """Return how many values were up to each bound: all that were up to those below count, too."""
    bounds = [*(str(bound) for bound in histogram.bounds), "+Inf"]
    # Copied at once: it is read in another thread than it counts in.
    total, buckets = 0, list[tuple[str, float]]()
    for bound, count in zip(bounds, list(cell.counts), strict=True):
        total += count
        buckets.append((bound, total))
    return buckets


def exposition(instruments: Instruments, accept: str = "") -> tuple[bytes, str]:
    """Return the instruments as they are scraped, and the content type; OpenMetrics for clients that accept it.

    >>> instruments = Instruments()
    >>> instruments.takeovers.add()
    >>> b"mainspring_lease_takeovers_total 1.0" in exposition(instruments)[0]
    True
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(InstrumentsCollector(instruments))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
