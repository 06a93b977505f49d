"""What is there to judge, read with plain SQL: no module of the engine or the store has a hand in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from zlib import crc32

from msgspec import json

from tests.proof.crash.files import Place, now_us, read_lines
from tests.proof.crash.tables import Tables, tables

INPUTS: Final = frozenset({"InitiatedBy", "Received"})
OUTPUTS: Final = frozenset({"Sent", "Published", "Replied", "Scheduled"})
ENDS: Final = frozenset({"Completed", "Failed", "Cancelled"})
SAMPLED_EVENTS: Final = 300
# Times in the streams of a server are its clock as a process knows it: wrong by half the way there and back, at most,
# which processes write down. This much beside it is what clocks go apart until the next look.
CLOCK_ERROR_US: Final = 100_000

_EVENTS = """
SELECT i.workflow || '/' || i.id, e.version, e.position, e.event, e.type, e.body, e.detail, e.kind, e.message_id,
    e.cause, e.context, e.state, e.time_us, e.attempt
FROM events AS e JOIN instances AS i ON i.key = e.instance ORDER BY e.instance, e.version, e.position
"""
_ORPHANS = "SELECT count(*) FROM events WHERE instance NOT IN (SELECT key FROM instances)"
_DEAD_LETTERS = """
SELECT workflow || '/' || instance, message_id, kind, type, body, attempts, output_version, reason FROM dead_letters
"""
_INBOX = "SELECT workflow || '/' || instance, message_id, position, type, body FROM inbox ORDER BY position"
_OUTBOX = """
SELECT i.workflow || '/' || i.id, o.version, o.kind, o.due_us, o.attempts
FROM outbox AS o LEFT JOIN instances AS i ON i.key = o.instance
"""
_PAYMENTS = "SELECT command FROM payments"
# Paid, and still owed: the one was committed without the other.
_HALF_PAID = """
SELECT p.command FROM payments AS p JOIN (
    SELECT i.workflow || '/' || i.id || '/' || o.version AS command
    FROM outbox AS o JOIN instances AS i ON i.key = o.instance WHERE o.destination = 'Pay'
) AS owed ON owed.command = p.command
"""
# Below are the keys of instances that inputs wait for and that have not begun.
_INSTANCES = "SELECT workflow || '/' || id, version, status, state FROM instances WHERE key > 0"

# At a kill: the newest events, so that a later read can be compared; and what must hold at every moment.
_NEWEST = """
SELECT i.workflow || '/' || i.id, e.version, e.event, e.body
FROM (SELECT * FROM events ORDER BY position DESC LIMIT ?1) AS e JOIN instances AS i ON i.key = e.instance
"""
_HALF_DONE = """
SELECT i.workflow || '/' || i.id, i.version, count(e.version), max(e.version)
FROM instances AS i JOIN events AS e ON e.instance = i.key
WHERE i.key IN (SELECT instance FROM (SELECT instance FROM events ORDER BY position DESC LIMIT ?1) AS n)
GROUP BY i.key HAVING i.version <> count(e.version) OR i.version <> max(e.version)
"""


def _plain(id: str) -> str:
    """Return an id as its sender knows it: in the database a derived one bears a mark."""
    return id.removeprefix("\u00a0")


@dataclass(frozen=True)
class Recorded:
    """One event of a stream, as it stands in the table."""

    ref: str
    version: int
    position: int
    event: str
    type: str | None
    body: bytes | None
    detail: dict[str, Any]
    kind: str | None
    message_id: str | None
    cause: int | None
    context: dict[str, Any]
    state: str | None
    time_us: int
    attempt: int | None

    @property
    def output_id(self) -> str:
        """The id that an output at this place has."""
        return f"{self.ref}/{self.version}"

    @property
    def is_failure_taken(self) -> bool:
        """Whether it says that a case of decide has taken the failure of a command."""
        return self.event == "Received" and self.kind == "result" and self.type == "SendFailed"

    @property
    def input_id(self) -> str:
        """The id of an input; where none is stored it follows from the output that it answers."""
        if self.message_id is not None:
            return self.message_id
        own = f"{self.ref}/{self.cause}"
        return own if self.kind == "timer" else f"{own}/1"


@dataclass(frozen=True)
class DeadLetter:
    ref: str
    message_id: str
    kind: str
    type: str
    body: bytes
    attempts: int
    output_version: int | None
    reason: str


@dataclass(frozen=True)
class Waiting:
    """A row of the inbox."""

    ref: str
    message_id: str
    position: int
    type: str
    body: bytes


@dataclass(frozen=True)
class Owed:
    """A row of the outbox."""

    ref: str | None
    version: int
    kind: str
    due_us: int
    attempts: int


@dataclass(frozen=True)
class Asked:
    """An input as the client saw it: when it asked, what it was told, and when. Times are lines of the ledger."""

    id: str
    to: str
    type: str
    body: str
    line: int
    at_us: int
    answer: str = "unknown"
    status: str | None = None
    told_line: int | None = None


@dataclass
class Evidence:
    """All of it."""

    streams: dict[str, list[Recorded]]
    instances: dict[str, tuple[int, str, str | None]]
    dead_letters: list[DeadLetter]
    inbox: list[Waiting]
    outbox: list[Owed]
    asked: list[Asked]
    effects: list[dict[str, Any]]
    samples: list[dict[str, Any]]
    payments: list[str]
    orphans: int = 0
    log: str = ""
    clock_error_us: int = 0
    brief: frozenset[int] = frozenset()
    """Workers with a brief lease. They were stopped beyond it, so what they held was given to others meanwhile."""
    inputs: dict[tuple[str, str], list[Recorded]] = field(default_factory=dict[tuple[str, str], list[Recorded]])

    def __post_init__(self) -> None:
        found: defaultdict[tuple[str, str], list[Recorded]] = defaultdict(list)
        for event in self.events():
            if event.event in INPUTS or event.event in ("Kept", "Skipped"):
                found[event.ref, event.input_id].append(event)
        self.inputs = dict(found)

    def of(self, workflows: Collection[str]) -> Evidence:
        """Return what is known of the instances of some workflows."""

        def judged(ref: str | None) -> bool:
            return ref is not None and ref.partition("/")[0] in workflows

        def rows(sample: dict[str, Any], name: str) -> list[Any]:
            return [row for row in sample[name] if judged(row[0])]

        sampled = ("events", "half_done", "outbox", "inbox")
        return replace(
            self,
            streams={ref: stream for ref, stream in self.streams.items() if judged(ref)},
            instances={ref: row for ref, row in self.instances.items() if judged(ref)},
            dead_letters=[letter for letter in self.dead_letters if judged(letter.ref)],
            inbox=[row for row in self.inbox if judged(row.ref)],
            outbox=[row for row in self.outbox if judged(row.ref)],
            asked=[asked for asked in self.asked if judged(asked.to)],
            effects=[
                line for line in self.effects if judged(line.get("call") or line.get("effect") or line.get("failed"))
            ],
            samples=[{**sample, **{name: rows(sample, name) for name in sampled}} for sample in self.samples],
        )

    def events(self) -> Iterator[Recorded]:
        return (event for stream in self.streams.values() for event in stream)


def read(place: Place, *, pays: bool = True) -> Evidence:
    """Read a run's files and tables; without a table of payments where nobody pays."""
    with tables(place) as found:
        if found is None:
            raise LookupError(f"no process has made its tables in {place.url}")
        return Evidence(
            streams=_streams(found),
            instances={ref: (version, status, state) for ref, version, status, state in found.rows(_INSTANCES)},
            dead_letters=[DeadLetter(ref, _plain(id), *row) for ref, id, *row in found.rows(_DEAD_LETTERS)],
            inbox=[Waiting(ref, _plain(id), *row) for ref, id, *row in found.rows(_INBOX)],
            outbox=[Owed(*row) for row in found.rows(_OUTBOX)],
            asked=read_ledger(place),
            effects=read_lines(place.effects),
            samples=read_lines(place.samples),
            payments=[command for (command,) in found.rows(_PAYMENTS)] if pays else [],
            orphans=found.rows(_ORPHANS)[0][0],
            log=place.log.read_text() if place.log.exists() else "",
            clock_error_us=0 if place.url.startswith("sqlite:") else _clock_error_us(place),
            brief=frozenset(line["brief"] for line in read_lines(place.stops) if "brief" in line),
        )


def _clock_error_us(place: Place) -> int:
    """Return by how much two processes may differ about the server's time: it took seconds to ask on a busy machine."""
    return CLOCK_ERROR_US + 2 * max((line["clock_error_us"] for line in read_lines(place.clocks)), default=0)


def _streams(found: Tables) -> dict[str, list[Recorded]]:
    streams: defaultdict[str, list[Recorded]] = defaultdict(list)
    for ref, version, position, event, type, body, detail, kind, id, cause, context, *rest in found.rows(_EVENTS):
        details = json.decode(detail) if detail else {}
        contexts = json.decode(context) if context else {}
        own = None if id is None else _plain(id)
        streams[ref].append(
            Recorded(ref, version, position, event, type, body, details, kind, own, cause, contexts, *rest)
        )
    return dict(streams)


def read_ledger(place: Place) -> list[Asked]:
    """Return each asking with its answer. A client that asks again writes a new line, so a pair is an asking.

    Two clients may ask the same at once: what one has not been told yet, another one may take for lost.
    """
    asked: list[Asked] = []
    open: dict[tuple[str, str], int] = {}
    for number, line in enumerate(read_lines(place.ledger)):
        if "ask" in line:
            open[line.get("client", ""), line["ask"]] = len(asked)
            asked.append(Asked(line["ask"], line["to"], line["type"], line["body"], number, line["at_us"]))
        else:
            index = open.pop((line.get("client", ""), line["told"]))
            first = asked[index]
            asked[index] = Asked(
                first.id,
                first.to,
                first.type,
                first.body,
                first.line,
                first.at_us,
                line["answer"],
                line.get("status"),
                number,
            )
    return asked


def sample(place: Place, cycle: int, *, pays: bool = True) -> dict[str, Any] | None:
    """Return what stands in the database at a kill, in short; None before there is one."""
    with tables(place) as found:
        if found is None:
            return None
        newest = found.rows(_NEWEST, SAMPLED_EVENTS)
        return {
            "cycle": cycle,
            "at_us": now_us(),
            "events": [[ref, version, event, crc32(body or b"")] for ref, version, event, body in newest],
            "half_done": [list(row) for row in found.rows(_HALF_DONE, SAMPLED_EVENTS)],
            "outbox": [[ref, version, due_us] for ref, version, _, due_us, _ in found.rows(_OUTBOX)],
            "half_paid": [command for (command,) in found.rows(_HALF_PAID)] if pays else [],
            "inbox": [[ref, id, position] for ref, id, position, _, _ in found.rows(_INBOX)],
        }


def quiet(place: Place, come_to_rest: Collection[str]) -> bool:
    """Tell whether nothing waits and every instance of those workflows has ended."""
    unfinished = "SELECT DISTINCT workflow FROM instances WHERE status NOT IN ('completed', 'failed')"
    queries = ("SELECT count(*) FROM inbox", "SELECT count(*) FROM outbox")
    with tables(place) as found:
        return (
            found is not None
            and all(found.rows(query)[0][0] == 0 for query in queries)
            and not any(workflow in come_to_rest for (workflow,) in found.rows(unfinished))
        )
