"""Does what was promised hold in a database of the golden app? From its streams and the handlers' effects alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

HANDLED: Final = frozenset({"Pack", "TakeSeat", "FreeSeat"})
ENDED: Final = frozenset({"completed", "failed", "cancelled"})
Instances = dict[str, Any]


def faults(found: Instances, effects: Iterable[str], told: Iterable[tuple[str, str]] = ()) -> list[str]:
    """Return what is wrong in a database at rest. `told` are identities and message ids that clients know as taken."""
    return [
        *_gaps(found),
        *_lost(found, told),
        *_doubled(found),
        *_undone(found, Counter(effects)),
        *_unanswered(found),
        *_unfinished(found),
        *_uncounted(found),
    ]


def differences(expected: Instances, found: Instances) -> list[str]:
    """Return where streams or states are not as an earlier commit has read them. What it did not know is left out."""
    wrong = [f"{ref} is gone" for ref in expected if ref not in found]
    for ref, was in expected.items():
        now = found.get(ref, was)
        wrong += [f"{ref} has {now[k]} as {k}, and had {was[k]}" for k in ("status", "state") if was[k] != now[k]]
        for then, row in zip(was["stream"], now["stream"], strict=False):
            if {name: row.get(name) for name in then} != then:
                wrong.append(f"{ref} {then['version']} reads {row}, and read {then}")
        if len(was["stream"]) != len(now["stream"]):
            wrong.append(f"{ref} has {len(now['stream'])} events, and had {len(was['stream'])}")
    return wrong


def prefixes(expected: Instances, found: Instances) -> list[str]:
    """Return which streams do not begin as they did before."""
    cut = {
        ref: was | {"stream": found[ref]["stream"][: len(was["stream"])]}
        for ref, was in expected.items()
        if ref in found
    }
    return differences(expected, cut)


def _gaps(found: Instances) -> Iterator[str]:
    for ref, instance in found.items():
        versions = [row["version"] for row in instance["stream"]]
        if versions != list(range(1, instance["version"] + 1)):
            yield f"{ref} is at version {instance['version']} and has {versions}"


def _lost(found: Instances, told: Iterable[tuple[str, str]]) -> Iterator[str]:
    for ref, id in told:
        rows = found.get(ref, {"stream": ()})["stream"]
        times = sum(row.get("message_id") == id for row in rows)
        if times != 1:
            yield f"{ref} has {id} {times} times, and a client was told that it was taken"


def _doubled(found: Instances) -> Iterator[str]:
    for ref, instance in found.items():
        ids = Counter(row["message_id"] for row in instance["stream"] if "message_id" in row)
        for id, times in ids.items():
            if times > 1:
                yield f"{ref} has {id} {times} times"


def _undone(found: Instances, effects: Counter[str]) -> Iterator[str]:
    owed = {key for key, _ in _sent(found)}
    for key, row in _sent(found):
        if effects[key] != 1 and not (effects[key] == 0 and _called_off(found, key, row)):
            yield f"{key} was carried out {effects[key]} times"
    for key in effects.keys() - owed:
        yield f"{key} was carried out, and is not recorded"


def _unanswered(found: Instances) -> Iterator[str]:
    """Each command that a handler carried out has one result in the stream."""
    for key, row in _sent(found):
        ref = key.rpartition("/")[0]
        results = [
            other["version"]
            for other in found[ref]["stream"]
            if other.get("cause") == row["version"] and other.get("kind") == "result"
        ]
        if len(results) != 1 and not (not results and _called_off(found, key, row)):
            yield f"{key} has the results {results}"


def _called_off(found: Instances, key: str, row: dict[str, Any]) -> bool:
    """Tell whether a command may not have been carried out at all: it can be undone, and what it was part of is."""
    stream = found[key.rpartition("/")[0]]["stream"]
    return "compensate" in row.get("detail", "") and any(other["event"] == "Compensating" for other in stream)


def _unfinished(found: Instances) -> Iterator[str]:
    for ref, instance in found.items():
        if ref.startswith(("Order/", "Trip/")) and instance["status"] not in ENDED:
            yield f"{ref} is {instance['status']} in {instance['state']}"


def _uncounted(found: Instances) -> Iterator[str]:
    """What was published was heard of, and what was asked was replied to, once each."""
    rows = [row for instance in found.values() for row in instance["stream"]]
    kinds = Counter((row["event"], row.get("type")) for row in rows)
    heard = sum(row["event"] in ("InitiatedBy", "Received") for row in found.get("Tally/all", {"stream": ()})["stream"])
    if heard != kinds["Published", "Shipped"]:
        yield f"{kinds['Published', 'Shipped']} orders were shipped, and {heard} are known"
    if kinds["Sent", "Reserve"] != kinds["Replied", "Reserved"]:
        yield f"{kinds['Sent', 'Reserve']} were asked for, and {kinds['Replied', 'Reserved']} replied to"


def _sent(found: Instances) -> Iterator[tuple[str, dict[str, Any]]]:
    for ref, instance in found.items():
        for row in instance["stream"]:
            if row["event"] == "Sent" and row["type"] in HANDLED:
                yield f"{ref}/{row['version']}", row
