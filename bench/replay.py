"""Replay: the state of an instance from its stream alone."""

from __future__ import annotations

import asyncio
import time

from bench import apps
from bench.measure import Figures, median, rss_mb
from bench.settings import Settings
from bench.w1 import PATIENCE
from bench.w3 import EVENTS_BEFORE, EVENTS_PER_CALL
from bench.workflows import BeginChain, Calling, ChainWithoutSnapshots
from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.core.fold import fold
from mainspring.port.records import Ref

MORE_TIMES = 10


def run(settings: Settings) -> Figures:
    """Read, decode and fold a stream of n events that has no snapshot, in an app that was just opened."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    calls = max(1, -(-(settings.n - EVENTS_BEFORE) // EVENTS_PER_CALL))
    app, _ = apps.chain(settings.url, ChainWithoutSnapshots())
    async with app:
        receipt = await app.send(BeginChain(apps.CHAIN_ID, calls))
        await receipt.result(timeout=PATIENCE)
        if not settings.durable:
            return await _replay(app, calls)
    # Another app on the same file: it knows nothing but what is written there.
    app, _ = apps.chain(settings.url, ChainWithoutSnapshots())
    await app.start(work=False)
    try:
        return await _replay(app, calls)
    finally:
        await app.stop()


async def _replay(app: Mainspring, calls: int) -> Figures:
    instance = app.instance(ChainWithoutSnapshots, apps.CHAIN_ID)
    events = EVENTS_BEFORE + EVENTS_PER_CALL * calls
    took: list[float] = []
    for _ in range(1 + MORE_TIMES):
        begun = time.perf_counter()
        state = await instance.state()
        took.append(time.perf_counter() - begun)
        assert state == Calling(calls, calls)
    loaded = (await internals_of(app).engine.store.load([Ref("ChainWithoutSnapshots", apps.CHAIN_ID)]))[0]
    assert loaded is not None
    assert loaded.snapshot is None
    assert len(loaded.events) == events
    return {
        "events": events,
        "replay_ms": round(took[0] * 1e3, 2),
        "again_ms": round(median(took[1:]) * 1e3, 2),
        **await _parts(app),
        "rss_mb": rss_mb(),
    }


async def _parts(app: Mainspring) -> Figures:
    """Return where the time goes: reading rows, making events of them, folding."""
    entry = internals_of(app).registry.workflows["ChainWithoutSnapshots"]
    begun = time.perf_counter()
    ref = Ref("ChainWithoutSnapshots", apps.CHAIN_ID)
    loaded = (await internals_of(app).engine.store.load([ref]))[0]
    read = time.perf_counter()
    assert loaded is not None
    events = entry.recorder.folded(ref, loaded.events)
    decoded = time.perf_counter()
    fold(entry.workflow, entry.workflow.initial_state, events)
    folded = time.perf_counter()
    return {
        "read_ms": round((read - begun) * 1e3, 2),
        "decode_ms": round((decoded - read) * 1e3, 2),
        "fold_ms": round((folded - decoded) * 1e3, 2),
    }
