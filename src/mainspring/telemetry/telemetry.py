"""What is to be reported of an app, and through what."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack

from mainspring.errors import SettingError
from mainspring.telemetry.instruments import Instruments

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from mainspring.telemetry.tracing import Tracing

YOUNG: Final = timedelta(minutes=1)
LONGEST_YOUNG: Final = timedelta(days=1)
PARTS: Final = ("traces", "metrics", "meter", "logs")


class Parts(TypedDict, total=False):
    """What of an app is reported; see `Telemetry`.

    >>> Parts(metrics=True)
    {'metrics': True}
    """

    traces: bool | TracerProvider
    metrics: bool
    meter: bool | MeterProvider
    logs: bool
    young: timedelta


class Telemetry:
    """What is reported of an app: each part is off unless it is asked for.

    `traces` makes spans, with OpenTelemetry's global provider or the one given. `metrics` counts, for Prometheus;
    `meter` lets OpenTelemetry's metrics read the same. `logs` gives log lines inside handlers the fields of the current
    message. What happens to a message within `young` of its coming in is one trace; what happens later begins another,
    linked to it.

    >>> Telemetry(metrics=True).tracing is None
    True
    """

    def __init__(self, **parts: Unpack[Parts]) -> None:
        self.logs = self.exposes = self.meters = False
        self.instruments: Instruments | None = None
        self.tracing: Tracing | None = None
        self.add(**parts)

    def add(
        self,
        *,
        traces: bool | TracerProvider = False,
        metrics: bool = False,
        meter: bool | MeterProvider = False,
        logs: bool = False,
        young: timedelta = YOUNG,
    ) -> Self:
        """Turn more of it on; what is on already stays so."""
        if not (traces or metrics or meter or logs):
            raise SettingError("What is to be observed", "nothing", f"Turn on one of {', '.join(PARTS)}.")
        if type(young) is not timedelta or not timedelta(0) <= young <= LONGEST_YOUNG:
            raise SettingError("young", young, f"Use a timedelta of {LONGEST_YOUNG.days} day at most.")
        if traces:
            self.tracing = _tracing(traces, young)
        if metrics:
            _check_prometheus()
        if metrics or meter:
            self.instruments = self.instruments or Instruments()
            if meter and not self.meters:
                _connect(self.instruments, meter)
        self.logs = self.logs or logs
        self.exposes = self.exposes or metrics
        self.meters = self.meters or bool(meter)
        return self


def _tracing(provider: Any, young: timedelta) -> Tracing:
    with _extra("traces", "otel"):
        from mainspring.telemetry.tracing import Tracing  # noqa: PLC0415  an extra
    return Tracing(None if provider is True else provider, young.total_seconds())


def _connect(instruments: Instruments, provider: Any) -> None:
    with _extra("meter", "otel"):
        from mainspring.telemetry.meter import connect  # noqa: PLC0415  an extra
    connect(instruments, None if provider is True else provider)


def _check_prometheus() -> None:
    with _extra("metrics", "metrics"):
        import_module("mainspring.telemetry.prometheus")


@contextmanager
def _extra(part: str, extra: str) -> Generator[None]:
    """Say which extra brings what is not installed."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("opentelemetry", "prometheus_client"):
            raise
        raise SettingError(part, True, f"It needs {missing.name}: install mainspring[{extra}].") from missing
