"""What makes no progress, in words: what is paused, held back by workers, lost with them, or unreadable to all."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from mainspring.analysis.export.viewed_store import paused
from mainspring.analysis.stuck.awaited import awaited_of
from mainspring.core.story import duration
from mainspring.engine.claiming.lone_trials import MAX_LOST, SUSPECTS_LOOKED_AT
from mainspring.engine.fleet.standing import HungCalls, OpenBreaker, TakenThreads, read
from mainspring.engine.fleet.unread import Fleet, Unread, fleet_of, unread_of
from mainspring.engine.handlers.runners import held_by
from mainspring.engine.operations.pauses import Pause
from mainspring.engine.recording.destinations import placed
from mainspring.engine.recording.stored_values import instance_id, moment
from mainspring.engine.registry import Registry
from mainspring.port.records import FAN_OUT, InputRow, OutputClaim, Ref
from mainspring.port.store import Store
from mainspring.port.suspects import SUSPECT, Suspect
from mainspring.port.workers import WorkerRow
from mainspring.views import OpenChild

UNREAD_FIX = (
    "Run a worker of the release that knows it, in its pool; or register it, or let the type that took its place "
    "have the old name as an alias."
)


def unread_told(one: Unread, now_us: int) -> str:
    """Return what the doctor says.

    >>> unread_told(Unread("timer", "Slept", 2, "Trip", 3, 0), 120_000_000)
    'No worker that runs knows the timer Slept@2 of Trip: 3 have waited, the first for 2 min'
    >>> unread_told(Unread("instance", "", 1, "Trip", 1, 0, "Trip/t-1", "Ride: is not registered"), 120_000_000)
    'No worker that runs can read Trip/t-1: Ride: is not registered; its messages have waited for 2 min'
    """
    since = span(now_us - one.oldest_us)
    if one.kind == "instance":
        others = f" and {one.count - 1:,} more" if one.count > 1 else ""
        its = "its" if one.count == 1 else "their"
        return f"No worker that runs can read {one.example}{others}: {one.why}; {its} messages have waited for {since}"
    what = {"input": f"for {one.workflow}", "timer": f"of {one.workflow}", "output": ""}[one.kind]
    name = f"{'the timer ' if one.kind == 'timer' else ''}{placed(one.type, one.version)} {what}".rstrip()
    have = "1 has waited" if one.count == 1 else f"{one.count:,} have waited, the first"
    return f"No worker that runs knows {name}: {have} for {since}"


def told_of(fleet: Fleet | None, ref: Ref, inputs: Sequence[InputRow], outputs: Sequence[OutputClaim]) -> list[str]:
    """Return what no live worker can read of an instance: itself, the next of its inputs, any of its outputs."""
    if fleet is None:
        return []
    found: list[str] = []
    if inputs:
        head, why = inputs[0], fleet.leaves(ref)
        if not fleet.steps(head):
            name = placed(head.type, head.type_version)
            found.append(f"{name} came {span(fleet.now_us - head.time_us)} ago, and no worker that runs knows it")
        elif why is not None and head.time_us < fleet.before_us:
            found.append(f"no worker that runs can read it: {why}")
    for claim in outputs:
        if not fleet.takes(claim):
            timer = "the timer " if claim.kind == "timer" else ""
            name, ago = placed(claim.type, claim.type_version), span(fleet.now_us - claim.due_us)
            found.append(f"{timer}{name} was due {ago} ago, and no worker that runs knows it")
    return list(dict.fromkeys(found))


def span(us: int) -> str:
    """Return a length of time in words; one that clocks have made negative as none."""
    return duration(timedelta(seconds=max(us, 0) // 1_000_000))


FIX = "Look at what it calls. What waits goes on by itself when calls go well again."

THREADS = "the threads for plain functions"

KEEP = "they were given up, and keep a thread each"


async def held_back(store: Store) -> dict[str, str]:
    """Return why due commands wait, by destination, as live workers reported it."""
    now_us = store.now_us()
    return told_by([row for row in await store.workers() if row.ends_us > now_us], now_us)


async def not_going_on(store: Store) -> list[str]:
    """Return all that makes no progress now, of any instance: paused, held back, lost, or read by no worker."""
    pauses = [str(pause) for pause in await paused(store)]
    lost = [text for texts in (await suspected(store)).values() for text in texts]
    strange = [unread_told(one, store.now_us()) for one in await unread_of(store)]
    return [*pauses, *(await held_back(store)).values(), *lost, *strange]


async def held_among(
    store: Store,
    ref: Ref,
    inputs: Sequence[InputRow],
    outputs: Sequence[OutputClaim],
    children: Sequence[OpenChild] = (),
    registry: Registry | None = None,
) -> list[str]:
    """Return why what an instance waits for makes no progress: it is paused, held back, or no worker can read it."""
    if not inputs and not outputs and not children:
        return []
    held, pauses = await held_back(store), await paused(store)
    own = paused_among(pauses, ref, inputs, outputs, store.now_us())
    below = await paused_below(store, pauses, children, registry)
    told = [held[type] for type in sorted({claim.type for claim in outputs}) if type in held]
    lost = (await suspected(store)).get(ref, [])
    return own + below + lost + told + told_of(await fleet_of(store), ref, inputs, outputs)


def told_by(workers: Sequence[WorkerRow], now_us: int) -> dict[str, str]:
    """Return what these workers report of the destinations that they hold back."""
    breakers: dict[str, list[OpenBreaker]] = {}
    hung: dict[str, list[HungCalls]] = {}
    taken: list[TakenThreads] = []
    for row in workers:
        standing = read(row.standing)
        for breaker in standing.breakers:
            breakers.setdefault(breaker.destination, []).append(breaker)
        for calls in standing.hung:
            hung.setdefault(calls.destination, []).append(calls)
        taken += [] if standing.threads is None else [standing.threads]
    told: dict[str, str] = {}
    if taken:
        told[THREADS] = _taken(taken, len(workers), now_us)
    for destination in sorted(breakers.keys() | hung.keys()):
        texts = [_breaker(breakers[destination], len(workers), now_us)] if destination in breakers else []
        texts += [_hung(hung[destination], len(workers), now_us)] if destination in hung else []
        told[destination] = "; ".join(texts)
    return told


def _breaker(found: Sequence[OpenBreaker], workers: int, now_us: int) -> str:
    """Return the report on a destination's breaker, which each worker has for itself.

    >>> found = [OpenBreaker("Charge", 0, 5, "TimeoutError", 60_000_000, 41)]
    >>> for part in _breaker(found, 1, 40_000_000).split("; ", 1):
    ...     print(part)
    Charge is held back by an open breaker since 00:00 UTC (TimeoutError, 5 in a row)
    41 commands wait; the next probe in 20 s
    >>> print(_breaker([OpenBreaker("Charge", 0, 5, "TimeoutError", 60_000_000, fails_fast=True)], 1, 0).split(" (")[0])
    Charge fails at once, as it was told to, by an open breaker since 00:00 UTC
    """
    worst = max(found, key=lambda breaker: breaker.failures)
    where = _where(len(found), workers)
    since = _since(min(breaker.since_us for breaker in found), now_us)
    wait_us = min(breaker.probe_us for breaker in found) - now_us
    probe = f"in {span(wait_us)}" if wait_us >= 1_000_000 else "now"
    why = f"{worst.error}, {worst.failures:,} in a row"
    held = "fails at once, as it was told to," if worst.fails_fast else "is held back"
    return (
        f"{worst.destination} {held} by an open breaker{where} since {since} ({why}); "
        f"{_waiting(sum(breaker.waiting for breaker in found))}; the next probe {probe}"
    )


def _hung(found: Sequence[HungCalls], workers: int, now_us: int) -> str:
    """Return the report on calls that hang.

    >>> print(_hung([HungCalls("Charge", 0, 2)], 1, 0))
    2 calls of Charge hang since 00:00 UTC (they were given up, and keep a thread each)
    >>> print(_hung([HungCalls("Charge", 0, 128, True, 7)], 1, 0).split("; ", 1)[1])
    it is held back until some return; 7 commands wait
    """
    count = sum(calls.count for calls in found)
    since = _since(min(calls.since_us for calls in found), now_us)
    calls = "call" if count == 1 else "calls"
    hang, keep = ("hangs", "it was given up, and keeps a thread") if count == 1 else ("hang", KEEP)
    text = f"{count:,} {calls} of {found[0].destination} {hang}{_where(len(found), workers)} since {since} ({keep})"
    held = [calls for calls in found if calls.held]
    if not held:
        return text
    where = _where(len(held), workers)
    return f"{text}; it is held back{where} until some return; {_waiting(sum(calls.waiting for calls in held))}"


def _taken(found: Sequence[TakenThreads], workers: int, now_us: int) -> str:
    """Return the report on thread pools in which no thread becomes free.

    >>> print(_taken([TakenThreads(0, 9, {"charge": 30, "mail": 2})], 1, 0))
    No thread for plain functions has become free since 00:00 UTC, and 9 calls wait: charge has 30, mail 2
    """
    since = _since(min(threads.since_us for threads in found), now_us)
    waiting = sum(threads.waiting for threads in found)
    calls = "1 call waits" if waiting == 1 else f"{waiting:,} calls wait"
    holders = sum((Counter(threads.holders) for threads in found), Counter[str]())
    who = held_by(dict(holders.most_common()))
    return (
        f"No thread for plain functions has become free{_where(len(found), workers)} since {since}, and {calls}: {who}"
    )


def _where(found: int, workers: int) -> str:
    return f" in {found} of {workers} workers" if workers > 1 else ""


def _waiting(count: int) -> str:
    return f"{count:,} {'command waits' if count == 1 else 'commands wait'}"


def _since(time_us: int, now_us: int) -> str:
    """Return a time in its shortest readable form."""
    day = "%Y-%m-%d " if moment(time_us).date() != moment(now_us).date() else ""
    return f"{moment(time_us):{day}%H:%M} UTC"


INSTANCES_LOOKED_AT: Final = 50
EVENTS_LOOKED_AT: Final = 1_000
WAITING_LOOKED_AT: Final = 100


def paused_among(
    pauses: Sequence[Pause], ref: Ref, inputs: Sequence[InputRow], outputs: Sequence[OutputClaim], now_us: int
) -> list[str]:
    """Return which pauses hold up an instance: its workflow's, and those of the handlers that it waits for."""
    late = any(claim.kind == "timer" and claim.due_us <= now_us for claim in outputs)
    commands = {claim.type for claim in outputs if claim.kind == "send"}
    replies = {claim.destination for claim in outputs if claim.kind != "send"}

    def holds(pause: Pause) -> bool:
        if pause.kind == "handler":
            return pause.name in commands
        return f"reply:{pause.name}" in replies or (pause.name == ref.workflow and (bool(inputs) or late))

    return [str(pause) for pause in pauses if holds(pause)]


async def paused_below(
    store: Store, pauses: Sequence[Pause], children: Iterable[OpenChild], registry: Registry | None
) -> list[str]:
    """Return which pauses keep children, or theirs, from going on, each with the first of them that was found.

    Not all of them are looked at: one that waits for a pause speaks for its siblings.
    """
    found: dict[str, Ref] = {}
    seeking, left = deque(_refs(children) if pauses else ()), INSTANCES_LOOKED_AT
    while seeking and left:
        ref, left = seeking.popleft(), left - 1
        inputs = await store.inbox(ref, 1)
        outputs = [
            claim
            for timers in (False, True)
            for claim in await store.outputs(ref, timers=timers, limit=WAITING_LOOKED_AT)
        ]
        for pause in paused_among(pauses, ref, inputs, outputs, store.now_us()):
            found.setdefault(pause, ref)
        (loaded,) = await store.load([ref], 0)
        if loaded is not None:
            seeking += _refs((await awaited_of(store, loaded.row, registry, EVENTS_LOOKED_AT)).children)
    return [f"it waits for {_named(ref)}, and that for a pause: {pause}" for pause, ref in found.items()]


def _named(ref: Ref) -> str:
    return "a fan-out" if ref.workflow == FAN_OUT else str(ref)


def _refs(children: Iterable[OpenChild]) -> list[Ref]:
    known = (instance_id(child.instance) for child in children if child.instance is not None)
    return [Ref(own.workflow, own.id) for own in known]


SUSPECTED_FIX: Final = "Find out why the workers ended: out of memory, a crash, or a loop that never ends."


async def suspected(store: Store) -> dict[Ref, list[str]]:
    """Return the report on work that may take workers down, by its instances; what was lost most first."""
    found: dict[Ref, list[str]] = {}
    for suspect in await store.suspects(SUSPECTS_LOOKED_AT):
        found.setdefault(Ref(suspect.workflow, suspect.instance), []).append(suspect_told(suspect))
    return found


def suspect_told(suspect: Suspect) -> str:
    """Return what is known of it.

    >>> suspect_told(Suspect("Orders", "o-1", "Charge", 3, 2))
    'Charge (Orders/o-1/3) was lost with 2 workers; it waits to be tried alone'
    >>> suspect_told(Suspect("Orders", "o-1", "Charge", 3, 4, aside=False))
    'Charge (Orders/o-1/3) takes workers down: 4 were lost with it, 2 of them tried nothing else; it is in a worker now'
    """
    now = "it waits to be tried alone" if suspect.aside else "it is in a worker now"
    if suspect.lost <= SUSPECT:
        return f"{suspect.name} was lost with {suspect.lost} workers; {now}"
    alone = min(suspect.lost - SUSPECT, MAX_LOST)
    lost = f"{suspect.lost} were lost with it, {alone} of them tried nothing else"
    return f"{suspect.name} takes workers down: {lost}; {now}"
