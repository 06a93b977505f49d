"""What is counted, read through both outlets: a real Prometheus parser, and a real OpenTelemetry SDK."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from mainspring import Breaker, Mainspring, Retry
from mainspring.app.internals import internals_of
from mainspring.app.scraping import exposition
from mainspring.engine.handlers.handler import Handler, HandlerOptions
from mainspring.engine.runtime import Runtime
from mainspring.errors import OperationError, SettingError, WiringError
from mainspring.port.records import EDGE, Stats
from mainspring.stores.memory import MemoryStore
from mainspring.telemetry.instruments import SERIES, Counter, Definition, Gauge, Histogram, Instruments
from mainspring.testing.clock import VirtualClock
from tests.edges.telemetry.order_of_every_kind import (
    DAYS,
    Charge,
    Charged,
    Orders,
    PlaceOrder,
    Reserve,
    Reserved,
    Stock,
    charge,
    shop,
)
from tests.support.running import run
from tests.support.waiting import until

# Prometheus sorts labels by name; here they are in the order of their definition.
LABELS = {instrument.definition.family: instrument.definition.labels for instrument in Instruments()}
DEAD_LETTERS_MADE = "mainspring_dead_letters_made_total"
Samples = dict[tuple[str, tuple[str, ...]], float]


def samples(text: bytes) -> Samples:
    """Return what was scraped, by name and labels."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            names = (*LABELS[family.name], *(["le"] if "le" in sample.labels else []))
            found[sample.name, tuple(sample.labels[name] for name in names)] = sample.value
    return found


async def scraped(app: Mainspring) -> Samples:
    return samples((await exposition(app))[0])


def app_instruments(app: Mainspring) -> Instruments:
    telemetry = internals_of(app).telemetry
    assert telemetry is not None
    assert telemetry.instruments is not None
    return telemetry.instruments


def stepped(app: Mainspring) -> float:
    return dict(app_instruments(app).steps.read()).get(("Orders", "stepped"), 0)


def told_by(reader: InMemoryMetricReader) -> dict[tuple[str, tuple[Any, ...]], float]:
    """Return what OpenTelemetry's exporter would send, by name and attributes; of a histogram, how many values."""
    found: dict[tuple[str, tuple[Any, ...]], float] = {}
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    value: Any = getattr(point, "value", None)
                    found[metric.name, tuple((point.attributes or {}).values())] = (
                        getattr(point, "count", 0) if value is None else value
                    )
    return found


def test_an_order_is_counted_on_its_whole_way() -> None:
    clock = VirtualClock()
    app = shop(Mainspring("memory://", runtime=Runtime(clock), store=MemoryStore(clock)))
    app.observe(metrics=True)

    async def main() -> None:
        async with app:
            receipt = await app.send(PlaceOrder("o-1"), id="m-1")
            await app.send(PlaceOrder("o-1"), id="m-1")
            await until(lambda: stepped(app) == 3)
            waiting = await scraped(app)
            clock.advance(DAYS.total_seconds() + 2)
            await receipt.result()
            ended = await scraped(app)

        assert waiting["mainspring_inputs_total", ("Orders", "stepped")] == 1
        assert waiting["mainspring_inputs_total", ("Orders", "duplicate")] == 1
        assert waiting["mainspring_steps_total", ("Orders", "stepped")] == 3
        assert waiting["mainspring_steps_total", ("Stock", "stepped")] == 1
        assert waiting["mainspring_step_duration_seconds_count", ("Orders",)] == 3
        assert waiting["mainspring_handler_attempts_total", ("charge", "succeeded")] == 1
        assert waiting["mainspring_handler_duration_seconds_count", ("charge",)] == 1
        assert waiting["mainspring_instances_began_total", ("Orders",)] == 1
        assert waiting["mainspring_commit_refusals_total", ("duplicate",)] == 1
        assert waiting["mainspring_instances", ("Orders", "running")] == 1
        assert waiting["mainspring_timers", ()] == 1
        assert waiting["mainspring_workers", ()] == 1
        assert ("mainspring_instances_ended_total", ("Orders", "completed")) not in waiting
        assert ended["mainspring_instances_ended_total", ("Orders", "completed")] == 1
        assert ended["mainspring_instances", ("Orders", "completed")] == 1
        assert ended["mainspring_timer_lag_seconds_sum", ("Orders",)] == 2
        assert ended["mainspring_timers", ()] == 0
        units = ended["mainspring_commit_units_sum", ()]
        assert units >= 5
        assert ended["mainspring_commit_duration_seconds_count", ()] <= units

    run(main)


def test_failures_are_counted_by_handler_and_workflow() -> None:
    app = shop(Mainspring("memory://"), wired=False)

    @app.handler(retry=Retry(first=timedelta(milliseconds=1), max_attempts=3), breaker=Breaker(failures=3))
    async def charge(command: Charge) -> Charged:
        raise ConnectionError("the bank is closed")

    app.observe(metrics=True)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            await until(lambda: bool(app_instruments(app).suspensions.read()))
            found = await scraped(app)
        name = charge.__qualname__
        assert found["mainspring_handler_attempts_total", (name, "failed")] == 3
        assert found["mainspring_handler_retries_total", (name,)] == 2
        assert found["mainspring_dead_letters_made_total", ("Orders",)] == 1
        assert found["mainspring_dead_letters", ()] == 1
        assert found["mainspring_instances_suspended_total", ("Orders",)] == 1
        assert found["mainspring_instances", ("Orders", "suspended")] == 1
        assert found["mainspring_breaker_open", (name,)] == 1

    run(main)


def test_what_is_paused_is_told() -> None:
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True)

    async def main() -> None:
        async with app:
            await app.pauses.pause(Charge)
            assert (await scraped(app))["mainspring_paused", ("handler:Charge",)] == 1
            await app.pauses.resume(Charge)
            assert ("mainspring_paused", ("handler:Charge",)) not in await scraped(app)

    run(main)


def test_what_alerts_wait_for_is_told_before_there_is_any() -> None:
    """A counter that appears with its first count has no increase: the first dead letter would alarm nobody."""
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True)

    async def main() -> None:
        async with app:
            found = await scraped(app)
            assert found["mainspring_lease_takeovers_total", ()] == 0
            made = {labels[0]: count for (name, labels), count in found.items() if name == DEAD_LETTERS_MADE}
            assert made.keys() >= {"Orders", "Stock", EDGE}
            assert set(made.values()) == {0}

    run(main)


def test_opentelemetry_reads_what_prometheus_reads() -> None:
    reader = InMemoryMetricReader()
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True, meter=MeterProvider([reader]))

    async def main() -> None:
        async with app:
            await app.send_many([PlaceOrder(f"o-{n}") for n in range(3)])
            await until(lambda: stepped(app) == 9)
            one, other = await scraped(app), told_by(reader)
        assert other["mainspring.steps", ("Orders", "stepped")] == 9
        for instrument in app_instruments(app):
            definition = instrument.definition
            suffix = "_count" if definition.kind == "histogram" else ""
            for labels, _ in instrument.read():
                if definition.name != "mainspring.depths.age":
                    assert one[definition.prometheus + suffix, labels] == other[definition.name, labels]
        assert len(other) >= 20

    run(main)


def test_a_meter_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    app = shop(Mainspring("memory://"))
    app.observe(metrics=True, meter=MeterProvider([]))

    def broken(value: float, attributes: Any) -> None:
        raise RuntimeError("the exporter has no room")

    app_instruments(app).commit_duration.record = broken

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            await until(lambda: stepped(app) == 3)
            assert (await scraped(app))["mainspring_commit_duration_seconds_count", ()] >= 1

    run(main)
    assert sum("not told to the meter any more" in record.message for record in caplog.records) == 1


def test_the_database_is_looked_at_once_for_many_who_scrape_and_not_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, looks = VirtualClock(), list[int]()
    app = shop(Mainspring("memory://", runtime=Runtime(clock), store=MemoryStore(clock)))
    app.observe(metrics=True)

    async def main() -> None:
        async with app:
            stats = internals_of(app).engine.store.stats

            async def counted() -> Stats:
                looks.append(clock.now_us())
                await asyncio.sleep(0)
                if len(looks) == 3:
                    raise ConnectionError("the database is away")
                return await stats()

            monkeypatch.setattr(internals_of(app).engine.store, "stats", counted)
            await asyncio.gather(*(scraped(app) for _ in range(10)))
            assert len(looks) == 1
            clock.advance(4)
            assert (await scraped(app))["mainspring_depths_age_seconds", ()] == 4
            assert len(looks) == 1
            clock.advance(2)
            await scraped(app)
            assert len(looks) == 2
            clock.advance(60)
            away = await scraped(app)
            assert len(looks) == 3
            assert away["mainspring_depths_age_seconds", ()] == 60
            assert away["mainspring_inbox", ()] == 0

    run(main)


def test_what_nobody_here_takes_is_told_by_its_type() -> None:
    store = MemoryStore(VirtualClock())
    before = shop(Mainspring("memory://", store=store), wired=False)
    before.external(Charge)
    after = shop(Mainspring("memory://", store=store), wired=False)
    after.observe(metrics=True)

    async def main() -> None:
        async with before:
            await before.send(PlaceOrder("o-1"))
        await after.start(work=False)
        try:
            found = await scraped(after)
        finally:
            await after.stop()
        assert found["mainspring_orphans", ("Charge",)] == 1

    run(main)


def test_what_no_running_worker_knows_is_told_by_its_type_after_a_minute() -> None:
    clock = VirtualClock()
    store = MemoryStore(clock)
    before = shop(Mainspring("memory://", runtime=Runtime(clock), store=store), wired=False)
    before.external(Charge)
    before.observe(metrics=True)

    async def main() -> None:
        async with before:
            await before.send(PlaceOrder("o-1"))
            assert ("mainspring_unread", ("Charge",)) not in await scraped(before)

            async def told() -> bool:
                clock.advance(1)
                return (await scraped(before)).get(("mainspring_unread", ("Charge",))) == 1

            await until(told)

    run(main)


class Impatient(Orders):
    expected_within = timedelta(hours=1)


def test_an_instance_that_runs_longer_than_its_workflow_expects_is_told() -> None:
    clock = VirtualClock()
    app = Mainspring("memory://", runtime=Runtime(clock), store=MemoryStore(clock))
    app.add(Impatient(), Stock())
    app.handler(charge)
    app.observe(metrics=True)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            assert (await scraped(app))["mainspring_instances_overdue", ("Impatient",)] == 0
            clock.advance(3_601)
            assert (await scraped(app))["mainspring_instances_overdue", ("Impatient",)] == 1

    run(main)


def test_names_units_and_labels_are_as_both_conventions_ask() -> None:
    definitions = [instrument.definition for instrument in Instruments()]
    assert len({definition.prometheus for definition in definitions}) == len(definitions)
    for definition in definitions:
        assert re.fullmatch(r"mainspring(\.[a-z_]+)+", definition.name)
        assert re.fullmatch(r"s|1|\{[a-z]+\}", definition.unit)
        assert definition.prometheus.endswith("_total") == (definition.kind == "counter")
        assert ("_seconds" in definition.prometheus) == (definition.unit == "s")
        assert not {"instance", "id", "message_id"} & set(definition.labels)
        assert definition.help.endswith(".")


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
def test_series_beyond_the_limit_are_counted_together(kind: Any) -> None:
    definition = Definition("mainspring.some", kind, "1", ("name",), "…")
    labels = [(str(number),) for number in range(SERIES + 5)]
    if kind == "gauge":
        gauge = Gauge(definition)
        gauge.set(dict.fromkeys(labels, 1))
        values = dict(gauge.read())
    elif kind == "counter":
        counter = Counter(definition)
        for label in labels:
            counter.add(label)
        values = dict(counter.read())
    else:
        histogram = Histogram(definition, (1.0,))
        for label in labels:
            histogram.observe(0.5, label)
        values = {label: sum(cell.counts) for label, cell in histogram.read()}
    assert len(values) == SERIES + 1
    assert values["other",] == 5


def test_a_registry_of_a_program_reads_what_the_app_counts() -> None:
    app, registry = shop(Mainspring("memory://")), CollectorRegistry()
    app.observe(metrics=True)
    registry.register(app.prometheus_collector())

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"), id="m-1")

    run(main)
    assert registry.get_sample_value("mainspring_inputs_total", {"workflow": "Orders", "outcome": "stepped"}) == 1


def test_an_app_that_counts_nothing_says_how_to_turn_it_on() -> None:
    with pytest.raises(OperationError, match=r"app\.observe\(metrics=True\)"):
        Mainspring("memory://").prometheus_collector()

    async def main() -> None:
        async with shop(Mainspring("memory://")) as app:
            with pytest.raises(OperationError, match=r"app\.observe\(metrics=True\), or MAINSPRING_TELEMETRY=metrics"):
                await exposition(app)

    run(main)


def test_the_environment_turns_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_TELEMETRY", " metrics, logs ")
    telemetry = internals_of(Mainspring("memory://")).telemetry
    assert telemetry is not None
    assert (telemetry.tracing, telemetry.exposes, telemetry.logs) == (None, True, True)
    monkeypatch.setenv("MAINSPRING_TELEMETRY", "tracing")
    with pytest.raises(SettingError, match="It knows no tracing: name some of traces, metrics, meter, logs"):
        Mainspring("memory://")


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({}, "Turn on one of traces, metrics, meter, logs"),
        ({"logs": True, "young": timedelta(days=-1)}, "young is"),
        ({"logs": True, "young": 60}, "young is 60"),
    ],
)
def test_what_makes_no_sense_is_refused(parts: Any, problem: str) -> None:
    with pytest.raises(SettingError, match=problem):
        Mainspring("memory://").observe(**parts)


def test_a_running_app_is_not_observed_any_more() -> None:
    async def main() -> None:
        async with shop(Mainspring("memory://")) as app:
            with pytest.raises(WiringError, match="before it starts"):
                app.observe(logs=True)

    run(main)


@pytest.mark.parametrize(
    ("part", "package", "extra"),
    [
        ("traces", "opentelemetry", "otel"),
        ("meter", "opentelemetry", "otel"),
        ("metrics", "prometheus_client", "metrics"),
    ],
)
def test_a_missing_extra_is_named(part: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys  # noqa: PLC0415  only to make a package missing

    for name in list(sys.modules):
        if name.partition(".")[0] == package or name.startswith("mainspring.telemetry."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # pyright: ignore[reportArgumentType]  as Python marks what is not there
    with pytest.raises(SettingError, match=rf"install mainspring\[{extra}\]"):
        Mainspring("memory://").observe(**{part: True})  # pyright: ignore[reportArgumentType]  a name of each


def test_a_reply_to_another_service_that_its_instance_was_cancelled_over_is_counted_and_settled() -> None:
    begun = asyncio.Event()
    app = Mainspring("memory://")
    app.add(Stock())
    app.observe(metrics=True)

    async def bring(reply: Reserved) -> None:
        begun.set()
        await asyncio.Event().wait()

    internals_of(app).registry.reply_handlers["warehouse"] = Handler(bring, HandlerOptions(name="bring"))

    async def nothing_left() -> bool:
        return (await app.stats()).outbox == 0

    async def main() -> None:
        async with app:
            intake, entry = internals_of(app).engine.intake, internals_of(app).registry.workflows["Stock"]
            asked = intake.envelop(Reserve("r-1"), entry, reply_to="endpoint:warehouse:Orders/o-1")
            assert asked is not None
            await intake.answered(asked)
            await begun.wait()
            await app.instance(Stock, "stock-of-r-1").cancel()
            await until(nothing_left)
            assert (await scraped(app))["mainspring_handler_attempts_total", ("bring", "cancelled")] == 1

    run(main)
