"""A small story on a temporary file: what a process looks like when it is over."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.viewing import event_view
from mainspring.cli.options import examples, json_option
from mainspring.cli.output import write_json
from mainspring.cli.show import write_stream
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.port.records import EventRow, Ref
from mainspring.testing.samples import Count, Counter

COUNTER = Ref("Counter", "c-1")

MORE = """\
Every input and every decision is in the stream, so the second app went on where the first one ended.

The workflow: mainspring/testing/samples.py, two pure functions in 20 lines.
More: `make demo` in a checkout of mainspring runs the examples with hundreds of instances, and kills a worker midway.\
"""


@click.command(epilog=examples("mainspring demo", "mainspring demo --json"))
@json_option
def demo(as_json: bool) -> None:
    """Show a small process that survives a restart, on a temporary file."""
    with TemporaryDirectory(prefix="mainspring-demo-") as folder:
        url = f"sqlite:///{Path(folder) / 'demo.db'}"
        if not as_json:
            click.echo("A counter that completes at three. Two messages are sent, then the app is closed.")
        asyncio.run(_count(url, 2))
        if not as_json:
            click.echo("A new app opens the same file, and gets the third.\n")
        result = asyncio.run(_count(url, 1))
        rows, app = asyncio.run(_read(url))
    if as_json:
        write_json({"instance": str(COUNTER), "stream": [event_view(COUNTER, row) for row in rows]})
        return
    write_stream(COUNTER, internals_of(app).registry.workflows[COUNTER.workflow], rows)
    click.echo(f"\nresult: {result!r}\n\n{MORE}")


def _app(url: str) -> Mainspring:
    app = Mainspring(url)
    app.add(Counter())
    return app


async def _count(url: str, times: int) -> Any:
    async with _app(url) as app:
        receipts = [await app.send(Count(COUNTER.id)) for _ in range(times)]
        row = await receipts[-1].row()
        return await receipts[-1].result() if row.status == "completed" else None


async def _read(url: str) -> tuple[list[EventRow], Mainspring]:
    app = _app(url)
    await app.start(work=False)
    try:
        return await whole_stream(internals_of(app).engine.store, COUNTER), app
    finally:
        await app.stop()
