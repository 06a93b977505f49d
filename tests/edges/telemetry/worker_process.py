"""`python -m tests.edges.telemetry.worker_process URL FILE hangs|works`: a worker that writes its spans to a file.

It says `charging` when its handler has begun, and `done` when the last step of an order was taken.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from mainspring import Mainspring
from tests.edges.telemetry.order_of_every_kind import Charge, Charged, Ordered, shop


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def line_of(span: ReadableSpan) -> str:
    return json.dumps(json.loads(span.to_json(indent=None))) + "\n"


async def main(url: str, file: Path, way: str) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=file.open("a"), formatter=line_of)))
    app = shop(Mainspring(url), wired=False)

    @app.handler
    async def charge(command: Charge) -> Charged:
        say("charging")
        if way == "hangs":
            await asyncio.Event().wait()
        return Charged(command.id)

    @app.subscribe
    async def ordered(event: Ordered) -> None:
        say("done")

    app.observe(traces=provider)
    async with app:
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
