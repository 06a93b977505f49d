"""Answers that come late: what a busy machine does to a test once in a thousand runs, done to every test at once.

Only what may happen anywhere happens: a store, a thread, a socket or a timer is late, never early, and what one thread
or one connection sends stays in order. A test that fails by it rests on a kind scheduler.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import threading
import time
from asyncio import base_events, selector_events
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import thread as executors
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

from mainspring.stores.memory import MemoryStore
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.sqlite import SqliteStore
from mainspring.testing.simulation.machine import SimulatedStore

SEED: Final = "MAINSPRING_STEADY_DELAYS"
"""A seed, if answers are to come late."""
PART: Final = 0.12
"""How many are late."""
MOST_SECONDS: Final = 0.03

_SELECTING: Final = selector_events.BaseSelectorEventLoop
_inside: ContextVar[bool] = ContextVar("inside", default=False)
"""Set while a store calls verbs of its own: between those it may rest on nobody coming in between."""
_chance = random.Random()  # noqa: S311  delays, no secret


def install(seed: str) -> None:
    """Let stores, threads, sockets and timers of this process answer late from now on."""
    _chance.seed(f"{seed} {os.environ.get('PYTEST_XDIST_WORKER', '')}")
    for store in (MemoryStore, SqliteStore, PostgresStore):
        for name, verb in inspect.getmembers(store, inspect.iscoroutinefunction):
            if not name.startswith("_") and name not in ("open", "close"):
                setattr(store, name, _late(verb, before=store is PostgresStore))
    base_events.BaseEventLoop.call_soon_threadsafe = _call_soon_threadsafe  # pyright: ignore[reportAttributeAccessIssue]
    base_events.BaseEventLoop.call_at = _call_at  # pyright: ignore[reportAttributeAccessIssue]
    selector_events.BaseSelectorEventLoop._process_events = _process_events  # pyright: ignore[reportAttributeAccessIssue]  # noqa: SLF001
    executors._WorkItem.run = _run_item  # pyright: ignore[reportAttributeAccessIssue]  # noqa: SLF001


def _delay() -> float:
    return _chance.random() * MOST_SECONDS if _chance.random() < PART else 0.0


def _late(verb: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    """Return a verb of a store that answers late; where calls need no order, it also begins late."""

    @wraps(verb)
    async def late(store: Any, *given: Any, **named: Any) -> Any:
        # A simulation moves its clock when nothing is left to do, or has a loop of its own: all is late by its word.
        simulated = isinstance(store, SimulatedStore) or not isinstance(asyncio.get_running_loop(), _SELECTING)
        if _inside.get() or simulated:
            return await verb(store, *given, **named)
        if before:
            await asyncio.sleep(_delay())  # to be late is all that is wanted here
        token = _inside.set(True)
        try:
            return await verb(store, *given, **named)
        finally:
            _inside.reset(token)
            await asyncio.sleep(_delay())  # as above

    return late


# ---- threads

_at = base_events.BaseEventLoop.call_at
_threadsafe = base_events.BaseEventLoop.call_soon_threadsafe
_process = selector_events.BaseSelectorEventLoop._process_events  # pyright: ignore[reportAttributeAccessIssue]  # noqa: SLF001
_run = executors._WorkItem.run  # noqa: SLF001

# What a thread has sent a loop and is still on its way, in order.
_sent: dict[tuple[int, int], deque[Callable[[], object]]] = defaultdict(deque)


def _call_soon_threadsafe(loop: Any, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
    line = _sent[id(loop), threading.get_ident()]
    seconds = _delay()
    if not seconds and not line:
        return _threadsafe(loop, callback, *args, context=context)
    handle = asyncio.Handle(callback, args, loop, context)
    line.append(lambda: None if handle.cancelled() else handle._run())  # noqa: SLF001  as the loop does
    _threadsafe(loop, lambda: _at(loop, loop.time() + seconds, lambda: line.popleft()() if line else None))
    return handle


def _run_item(item: Any, *given: Any) -> None:  # 3.14 gives more
    time.sleep(_delay())  # a thread that is not scheduled
    _run(item, *given)


# ---- timers and sockets


def _call_at(loop: Any, when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
    return _at(loop, when + _delay(), callback, *args, context=context)


def _process_events(loop: Any, events: list[Any]) -> None:
    """Leave some for later: the selector names them again as long as nobody has read them."""
    own, now = loop._ssock, time.monotonic()  # noqa: SLF001  by it the loop is woken from other threads
    held: dict[int, float] = loop.__dict__.setdefault("_held_until", {})
    taken: list[Any] = []
    for event in events:
        key = event[0]
        if key.fileobj is not own and key.fd not in held and (seconds := _delay()):
            held[key.fd] = now + seconds
        if held.get(key.fd, 0.0) <= now:
            held.pop(key.fd, None)
            taken.append(event)
    if events and not taken:
        time.sleep(0.0005)  # else the loop would turn without rest until the first is let through
    _process(loop, taken)
