"""The worker: an app as a process of its own, until a signal asks it to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final

import click

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.scraping import exposition
from mainspring.app.tuning import tune_process
from mainspring.cli.ending import CLOSE_SECONDS, LatestEnd, ended, heard_signals, leave, left_with
from mainspring.cli.failures import REFUSED
from mainspring.cli.loading import load_app, shown_url
from mainspring.cli.options import Number, chosen, examples, json_option
from mainspring.cli.output import counted
from mainspring.cli.reload import run_reloading
from mainspring.engine.engine import DRAIN_SECONDS
from mainspring.engine.registry import is_internal
from mainspring.logs import logger
from mainspring.telemetry.logs import JsonLines, Seldom, TextLines
from mainspring.telemetry.scraping import Scraped

LONGEST_DRAIN_SECONDS: Final = 7 * 24 * 3_600
METRICS_TOKEN: Final = "MAINSPRING_METRICS_TOKEN"  # noqa: S105  the name of a variable
LEVELS: Final = ("debug", "info", "warning", "error")

log = logger("mainspring.worker")


@click.command(
    epilog=examples(
        "mainspring worker shop:app",
        "mainspring worker shop:app --pool mail --pool reports --name mail-1",
        "mainspring worker shop:app --reload",
    )
)
@click.argument("address", metavar="[MODULE:APP]", required=False, callback=chosen)
@click.option("--pool", "pools", metavar="NAME", multiple=True, help="Serve only handlers of this pool; repeatable.")
@click.option("--name", metavar="NAME", help="The worker's name.  [default: host:process]")
@click.option(
    "--drain",
    type=Number(0, LONGEST_DRAIN_SECONDS),
    default=DRAIN_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long running handlers may take to finish when it stops.",
)
@click.option("--reload", is_flag=True, help="Restart when a .py file below this directory changes; for development.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Count, and be scraped by Prometheus here: /metrics.  [0: any port]",
)
@click.option("--metrics-host", default="127.0.0.1", show_default=True, help="The address to be scraped at.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="How much to log.")
@json_option
def worker(
    address: str,
    pools: tuple[str, ...],
    name: str | None,
    drain: float,
    reload: bool,
    metrics_port: int | None,
    metrics_host: str,
    log_level: str,
    as_json: bool,
) -> int:
    """Run an app until it is stopped.

    SIGTERM or Ctrl-C lets running handlers finish, gives the rest back, and ends with exit code 0. A second one stops
    at once (exit code 1): what was running runs again elsewhere, with the same idempotency key. Whatever hangs, the
    process has ended 10 s after its drain (exit code 1). A worker that finds the database changed by a newer release
    stops by itself, in order (exit code 1). Start as many workers as you like. Logs go to standard error; with --json
    each line is a document.
    """
    if reload:
        options = [f"--pool={pool}" for pool in pools] + ([f"--name={name}"] if name else [])
        options += [f"--drain={drain}", f"--log-level={log_level}", *(["--json"] if as_json else [])]
        if metrics_port is not None:
            options += [f"--metrics-port={metrics_port}", f"--metrics-host={metrics_host}"]
        command = [sys.executable, "-m", "mainspring.cli", "worker", address, *options]
        return run_reloading(command, Path.cwd(), drain)
    app = load_app(address)
    set_up_logging(log_level, as_json)
    if as_json:
        app.observe(logs=True)
    if metrics_port is not None:
        _be_scraped(app, metrics_host, metrics_port)
    tune_process()
    return left_with(asyncio.run(ended(serve(app, address, pools, name, drain, LatestEnd(drain)))))


def _be_scraped(app: Mainspring, host: str, port: int) -> None:
    app.observe(metrics=True)
    token = os.environ.get(METRICS_TOKEN) or None
    internals_of(app).services.add(Scraped(lambda accept: exposition(app, accept), host, port, token))


async def serve(
    app: Mainspring, address: str, pools: tuple[str, ...], name: str | None, drain: float, latest: LatestEnd
) -> int:
    """Run an app until the first signal, drain it until the second. Return the exit code."""
    asked, urged = asyncio.Event(), asyncio.Event()
    with heard_signals(asked, urged):
        if not await started(app.start(pools=pools or None, name=name), asked):
            return 0
        log.info("%s", described(app, address, pools))
        for pool in unserved(app, pools):
            log.warning("no handler is in the pool %s: nothing of it is carried out here", pool)
        by_itself = asyncio.create_task(app.ended())
        if await done_before(by_itself, asked):
            latest.begin()
            await app.stop()
            await by_itself
            return 0
        by_itself.cancel()
        log.info("stopping: running handlers may finish (%g s); once more to stop at once", drain)
        stopping = asyncio.create_task(app.stop(timedelta(seconds=drain)))
        if not await done_before(stopping, urged):
            log.warning("stopped at once: what was running runs again")
            stopping.cancel()
            await asyncio.wait({stopping}, timeout=CLOSE_SECONDS)
            # Handlers that ignore their cancellation would be waited for.
            leave(REFUSED)
        await stopping
        log.info("stopped")
        return 0


async def started(start: Coroutine[Any, Any, None], asked: asyncio.Event) -> bool:
    """Start an app, unless a signal comes before it has begun: its database may not answer. Return True if it runs."""
    starting = asyncio.create_task(start)
    if not await done_before(starting, asked):
        starting.cancel()
        await asyncio.wait({starting}, timeout=CLOSE_SECONDS)
        return False
    await starting
    return True


async def done_before(task: asyncio.Task[None], event: asyncio.Event) -> bool:
    """Wait for either. Return True if the task was done first."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return task.done()


def described(app: Mainspring, address: str, pools: tuple[str, ...]) -> str:
    """Return what a worker does, in one line.

    >>> described(Mainspring("memory://"), "shop:app", ()).partition(" serves ")[2]
    'shop:app on memory://: no workflows, 0 handlers'
    """
    registry = internals_of(app).registry
    workflows = ", ".join(sorted(name for name in registry.workflows if not is_internal(name))) or "no workflows"
    handlers = counted(len(registry.handlers) + sum(map(len, registry.subscribers.values())), "handler")
    only = f", pools {', '.join(pools)} only" if pools else ""
    return (
        f"process {os.getpid()} serves {address} on {shown_url(internals_of(app).url)}: {workflows}, {handlers}{only}"
    )


def unserved(app: Mainspring, pools: tuple[str, ...]) -> list[str]:
    """Return the pools in which the app has no handler: misspelt, perhaps. Brokers add theirs when the app starts.

    >>> unserved(Mainspring("memory://"), ("mial",))
    ['mial']
    """
    handlers = [
        *internals_of(app).registry.handlers.values(),
        *chain.from_iterable(internals_of(app).registry.subscribers.values()),
    ]
    known = {handler.options.pool for handler in handlers}
    return [pool for pool in pools if pool not in known]


# ---- logs


def set_up_logging(level: str, as_json: bool) -> None:
    """Log to standard error, unless the app's module has set up logging itself."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else TextLines())
    handler.addFilter(Seldom())  # what goes wrong again and again must not fill the disk
    root.addHandler(handler)
    root.setLevel(level.upper())
