"""What no worker that runs can read, in words: for the doctor of all, and of one instance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mainspring.core.story import duration
from mainspring.engine.fleet.unread import Fleet, Unread
from mainspring.engine.outputs.destinations import placed
from mainspring.port.records import InputRow, OutputClaim, Ref

FIX = (
    "Run a worker of the release that knows it, in its pool; or register it, or let the type that took its place "
    "have the old name as an alias."
)


def told(one: Unread, now_us: int) -> str:
    """Return what the doctor says.

    >>> told(Unread("timer", "Slept", 2, "Trip", 3, 0), 120_000_000)
    'No worker that runs knows the timer Slept@2 of Trip: 3 have waited, the first for 2 min'
    >>> told(Unread("instance", "", 1, "Trip", 1, 0, "Trip/t-1", "Ride: is not registered"), 120_000_000)
    'No worker that runs can read Trip/t-1: Ride: is not registered; its messages have waited for 2 min'
    """
    since = _span(now_us - one.oldest_us)
    if one.kind == "instance":
        others = f" and {one.count - 1:,} more" if one.count > 1 else ""
        its = "its" if one.count == 1 else "their"
        return f"No worker that runs can read {one.example}{others}: {one.why}; {its} messages have waited for {since}"
    what = {"input": f"for {one.workflow}", "timer": f"of {one.workflow}", "output": ""}[one.kind]
    name = f"{'the timer ' if one.kind == 'timer' else ''}{placed(one.type, one.version)} {what}".rstrip()
    have = "1 has waited" if one.count == 1 else f"{one.count:,} have waited, the first"
    return f"No worker that runs knows {name}: {have} for {since}"


def told_of(fleet: Fleet | None, ref: Ref, inputs: Sequence[InputRow], outputs: Sequence[OutputClaim]) -> list[str]:
    """Return what of an instance no worker that runs can read: itself, the next of its inputs, any of its outputs."""
    if fleet is None:
        return []
    found: list[str] = []
    if inputs:
        head, why = inputs[0], fleet.leaves(ref)
        if not fleet.steps(head):
            name = placed(head.type, head.type_version)
            found.append(f"{name} came {_span(fleet.now_us - head.time_us)} ago, and no worker that runs knows it")
        elif why is not None and head.time_us < fleet.before_us:
            found.append(f"no worker that runs can read it: {why}")
    for claim in outputs:
        if not fleet.takes(claim):
            timer = "the timer " if claim.kind == "timer" else ""
            name, ago = placed(claim.type, claim.type_version), _span(fleet.now_us - claim.due_us)
            found.append(f"{timer}{name} was due {ago} ago, and no worker that runs knows it")
    return list(dict.fromkeys(found))


def _span(us: int) -> str:
    return duration(timedelta(seconds=max(us, 0) // 1_000_000))
