"""How an app starts and stops: everything is opened in one order, and closed in the reverse one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Final

from mainspring.app.internals import Internals
from mainspring.app.purging import purge_forever, retentions
from mainspring.app.schedules import check_schedules, declare_schedules
from mainspring.engine.engine import DRAIN_SECONDS, Engine
from mainspring.engine.startup_checks import check_store, check_wiring

DRAIN: Final = timedelta(seconds=DRAIN_SECONDS)


async def start(app: Internals, *, work: bool, pools: Iterable[str] | None, name: str | None) -> None:
    """Open the store and begin to work, or only to send and to read."""
    app.check_not_running("Stop it first, or make another one.")
    registry, runtime = app.registry, app.runtime
    app.services.prepare()
    registry.add_publication()
    registry.add_fan_out()
    registry.add_pauses()
    if work:
        check_wiring(registry, pools)
        if pools is None:
            check_schedules(app)
    exits = AsyncExitStack()
    try:
        store = app.new_store()
        if work:
            check_store(registry, store)
        await store.open()
        exits.push_async_callback(store.close)
        if work:
            await app.resources.open(exits)
        engine = Engine(store, registry, runtime, app.resources.opened)
        worker = name or f"{socket.gethostname()}:{os.getpid()}"
        await engine.start(work=work, name=worker, pools=None if pools is None else frozenset(pools))
    except BaseException:
        await exits.aclose()
        raise
    app.running, app.exits = engine, exits
    app.looks.begin()
    if work and (kept := retentions(registry, app.retention)):
        runtime.spawn(purge_forever(store, runtime, registry, kept), "mainspring-purge")
    if work:
        try:
            await declare_schedules(app)
            await app.services.start()
        except BaseException:
            await stop(app, DRAIN)
            raise


async def stop(app: Internals, drain: timedelta) -> None:
    """Finish what runs, release the rest, and close."""
    engine, exits = app.running, app.exits
    app.exits = None  # so that it is not stopped twice
    if engine is None or exits is None:
        return
    try:
        try:
            await app.services.stop()
        finally:
            await engine.stop(drain.total_seconds())
    finally:
        # Only now: until it is drained, a handler that runs may still send.
        app.running = None
        app.resources.opened.clear()
        try:
            await exits.aclose()
            await app.runtime.end_processes()
        finally:
            app.runtime.close()
