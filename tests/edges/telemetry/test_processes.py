"""One order followed through three processes on PostgreSQL, of which one is killed; and what is not there when off."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mainspring import Mainspring
from tests.edges.telemetry.order_of_every_kind import Charge, Ordered, PlaceOrder, shop
from tests.edges.telemetry.spans import Spans, id_of, trace_ids
from tests.support.paths import ROOT
from tests.support.postgres.server import postgres_url

SECONDS = 60

OFF = """
import asyncio, sys
from mainspring import Mainspring
from mainspring.testing.samples import Count, Counter

async def main():
    app = Mainspring("memory://")
    app.add(Counter())
    async with app:
        await app.send_many([Count("c-1")] * 3)

asyncio.run(main())
print(sorted({name.partition(".")[0] for name in sys.modules} & {"opentelemetry", "prometheus_client"}))
"""


@contextmanager
def worker(url: str, file: Path, way: str) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(  # noqa: S603  our own
        [sys.executable, "-m", "tests.edges.telemetry.worker_process", url, str(file), way],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def heard(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"it ended before it said {word}")


def exported(file: Path, name: str, type: str) -> dict[str, Any]:
    spans = [json.loads(line) for line in file.read_text().splitlines()]
    [found] = [s for s in spans if s["name"] == name and s["attributes"].get("mainspring.message.type") == type]
    return found


def test_an_order_is_followed_through_processes_and_past_the_death_of_one(tmp_path: Path) -> None:
    url, file, spans = postgres_url(tmp_path), tmp_path / "spans.jsonl", Spans()
    client = shop(Mainspring(url), wired=False)
    client.external(Charge, Ordered)
    client.observe(traces=spans.provider)

    async def send() -> None:
        await client.start(work=False)
        try:
            with spans.provider.get_tracer("a web app").start_as_current_span("POST /orders"):
                await client.send(PlaceOrder("o-1"), id="checkout-1")
        finally:
            await client.stop()

    asyncio.run(send())
    with worker(url, file, "hangs") as first:
        heard(first, "charging")
    with worker(url, file, "works") as second:
        heard(second, "done")

    [trace_id] = trace_ids(spans.all)
    names = [
        ("handle Charge", "Charge"),
        ("step Orders", "Charged"),
        ("step Stock", "Reserve"),
        ("step Orders", "Reserved"),
    ]
    way = [exported(file, *name) for name in names]
    assert {span["context"]["trace_id"] for span in way} == {f"0x{trace_id:032x}"}
    # The attempt was read from the database by a process that knows the message's sender from there.
    before = [f"0x{id_of(spans.one('PlaceOrder', 'send')):016x}", *(span["context"]["span_id"] for span in way)]
    assert [span["parent_id"] for span in way] == before[:-1]
    assert {span["attributes"]["messaging.message.conversation_id"] for span in way} == {"checkout-1"}


def test_neither_client_is_imported_where_it_is_off() -> None:
    done = subprocess.run([sys.executable, "-c", OFF], capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603  ours

    assert done.stdout == "[]\n"
