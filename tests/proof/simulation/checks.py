"""Checks of what holds for every workflow, over the log of all commits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import json

from mainspring.engine.operations.pauses import PAUSES
from mainspring.port.ids import plain
from mainspring.port.records import ENDED
from tests.proof.crash.checker import Fault
from tests.proof.crash.evidence import INPUTS, Recorded
from tests.proof.crash.journey import CAPS, WORKFLOWS
from tests.proof.simulation import contracts
from tests.proof.simulation.app import RETRY, Seen
from tests.proof.simulation.evidence import committed
from tests.proof.simulation.replay import TYPES, Fold
from tests.proof.simulation.workflows import OWN

if TYPE_CHECKING:
    from tests.proof.simulation.world import World

ENDS: Final = frozenset({"Completed", "Failed", "Cancelled", "Terminated"})
AFTER_THE_END: Final = frozenset({"Kept", "Skipped", "Resent", "Retried"})
HANDLED: Final = frozenset(
    {"Reserve", "Unreserve", "Fetch", "Weigh", "Bill", "Proofread", "Leg", "Wobble", "Despair", "Wave", "Pay"}
)


class Case:
    """A run to be judged."""

    def __init__(self, world: World, seen: Counter[str]) -> None:
        self.world = world
        self.check = ""
        self._seen = seen
        self.streams = committed(world)
        self.rows = {str(ref): row for ref, row in world.database.rows.items()}
        self.outputs = {
            f"{c.unit.workflow}/{c.unit.instance}/{output.version}": output
            for c in world.database.commits
            for output in c.unit.outputs
        }
        self.letters = Counter(plain(letter.message_id) for letter in world.database.letters)
        self.asked = {
            (asked.to, asked.id): json.decode(asked.body, type=TYPES[asked.type])
            for asked in reversed(world.clients.asked)
            if asked.answer != "refused"
        }
        self.folded: dict[str, Fold] = {}
        waited = _waited(world)
        for ref, stream in self.streams.items():
            workflow = {**WORKFLOWS, **OWN}.get(ref.partition("/")[0])
            if workflow is not None:
                known = {
                    **waited.get(ref, {}),
                    **{id: message for (to, id), message in self.asked.items() if to == ref},
                }
                versions = contracts.VERSIONS if ref.startswith("Contract/") else None
                began = workflow if versions is None else versions[_began_under(world, ref)]
                self.folded[ref] = Fold(began, [event for _, event in stream], known, versions)

    def version(self, ref: str) -> int:
        """Return the version of its definition under which an instance is by its stream."""
        migrated = [event.detail["version"] for _, event in self.streams[ref] if event.event == "Migrated"]
        return migrated[-1] if migrated else _began_under(self.world, ref)

    def saw(self, count: int = 1) -> None:
        """Count what was looked at: a check that looked at nothing proves nothing."""
        self._seen[self.check] += count

    def of(self, workflow: str) -> Iterable[tuple[str, list[Recorded]]]:
        """Return the streams of a workflow's instances."""
        for ref, stream in self.streams.items():
            if ref.startswith(f"{workflow}/"):
                yield ref, [event for _, event in stream]


def _began_under(world: World, ref: str) -> int:
    """Return the version under which an instance began."""
    return next(
        commit.unit.definition_version or 1
        for commit in world.database.commits
        if f"{commit.unit.workflow}/{commit.unit.instance}" == ref and commit.unit.events
    )


def _waited(world: World) -> dict[str, dict[str, Any]]:
    """Return the messages that waited in inboxes, by instance and id; a stream that is not kept does not tell them."""
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for commit in world.database.commits:
        for row in commit.unit.accepts:
            if row.workflow == "Gauge":
                id = plain(row.message_id)
                found[f"{row.workflow}/{row.instance}"][id] = json.decode(row.body, type=TYPES[row.type])
    return found


def quiet(case: Case) -> Iterable[Fault]:
    case.saw()
    for open in case.world.unquiet:
        yield Fault(17, f"it did not become quiet: {open}")


def complaints(case: Case) -> Iterable[Fault]:
    case.saw()
    for complaint in case.world.complaints:
        yield Fault(0, complaint)


def log_is_stream(case: Case) -> Iterable[Fault]:
    """Versions are committed one after the other, each once, and what is read is what was committed."""
    now = {str(ref): {row.version: row for row in rows} for ref, rows in case.world.database.streams().items()}
    for ref, stream in case.streams.items():
        case.saw(len(stream))
        versions = [event.version for _, event in stream]
        if versions != list(range(1, len(versions) + 1)):
            yield Fault(2, f"versions were committed as {versions}", ref)
        kept = now.get(ref, {})
        if not ref.startswith("Gauge/") and sorted(kept) != sorted(versions):
            yield Fault(2, f"versions {sorted(versions)} were committed, and {sorted(kept)} are there", ref)
        if any(
            (kept[e.version].event, kept[e.version].body) != (e.event, e.body) for _, e in stream if e.version in kept
        ):
            yield Fault(2, "an event is not what was committed", ref)


def inbox_order(case: Case) -> Iterable[Fault]:
    """Inputs that waited are decided in the order in which they were accepted."""
    last: dict[str, int] = {}
    for commit in case.world.database.commits:
        ref, position = f"{commit.unit.workflow}/{commit.unit.instance}", commit.unit.consumes
        if position is None:
            continue
        case.saw()
        if position < last.get(ref, 0):
            yield Fault(8, f"the input at {position} was decided after that at {last[ref]}", ref, commit.at_us)
        last[ref] = max(position, last.get(ref, 0))


def folds(case: Case) -> Iterable[Fault]:
    """Decide on the state before an input yields what was recorded after it, and the recorded state is the folded."""
    for ref, fold in case.folded.items():
        case.saw(len(fold.states))
        for version, what in fold.complaints:
            yield Fault(6, f"version {version}: {what}", ref)
        last = type(list(fold.states.values())[-1]).__name__
        if case.rows[ref].state != last and case.rows[ref].purged_us is None:
            yield Fault(6, f"its row says {case.rows[ref].state}, its stream folds to {last}", ref)


def snapshots(case: Case) -> Iterable[Fault]:
    """Every state that was stored is the fold of the stream up to it."""
    for commit in case.world.database.commits:
        ref, snapshot = f"{commit.unit.workflow}/{commit.unit.instance}", commit.unit.snapshot
        # What the older code knew is less than what the newer one folds.
        if snapshot is None or ref not in case.folded or ref.startswith("Score/"):
            continue
        case.saw()
        # One that is taken at a migration is what the new version folds to before it.
        migrated = any(event.event == "Migrated" for event in commit.unit.events)
        state = case.folded[ref].states[snapshot.version + migrated]
        if json.decode(snapshot.body) != json.decode(json.encode(state)):
            yield Fault(6, f"version {snapshot.version} folds to {state}, and {snapshot.body!r} is stored", ref)


def timers(case: Case) -> Iterable[Fault]:
    """A timer is never early by the database's clock, has its effect once, and never after its cancellation."""
    for ref, stream in case.streams.items():
        for set_us, timer in stream:
            if timer.event != "Scheduled":
                continue
            case.saw()
            behind = [(at, event) for at, event in stream if event.version > timer.version]
            fired = [(at, e) for at, e in behind if e.kind == "timer" and e.cause == timer.version]
            key = timer.detail["key"]
            stops = (e.version for _, e in behind if _stops(e, key))
            stopped = next(stops, None)
            text = f"the timer {timer.type} of version {timer.version}"
            if len(fired) > 1:
                yield Fault(9, f"{text} fired {len(fired)} times", ref)
            for at_us, event in fired:
                if at_us < set_us + timer.detail["after_us"]:
                    yield Fault(9, f"{text} fired early", ref, at_us)
                if stopped is not None and event.version > stopped and event.event in INPUTS:
                    yield Fault(9, f"{text} fired at {event.version}, after it was cancelled at {stopped}", ref, at_us)
            if not fired and stopped is None:
                yield Fault(3, f"{text} neither fired nor was cancelled", ref)


def _stops(event: Recorded, key: str) -> bool:
    if event.event == "TaskClosed":
        return key == f"task:{event.detail['key']}"
    ends = event.event in ENDS or event.event == "Compensating"
    return ends or (event.event == "ScheduleCancelled" and event.detail["key"] == key)


def ends(case: Case) -> Iterable[Fault]:
    """Nothing is decided after the end, and the row says which end it was."""
    for ref, whole in case.streams.items():
        # What is paused ends with its last pause, and begins anew with the next.
        lives = [place for place, (_, event) in enumerate(whole) if event.event == "Began"]
        stream = whole[lives[-1] :] if ref.startswith(f"{PAUSES}/") and lives else whole
        end = next((event for _, event in stream if event.event in ENDS), None)
        if end is None:
            if case.rows[ref].status in ENDED:
                yield Fault(10, f"its row says {case.rows[ref].status}, and its stream has no end", ref)
            continue
        case.saw()
        for at_us, event in stream:
            if event.version > end.version and event.event not in AFTER_THE_END:
                yield Fault(10, f"{event.event} at version {event.version} came after {end.event}", ref, at_us)
        if case.rows[ref].status != end.event.lower() and not _failed_by_cancelling(case, ref, end):
            yield Fault(10, f"its stream has {end.event}, its row says {case.rows[ref].status}", ref)


def _failed_by_cancelling(case: Case, ref: str, end: Recorded) -> bool:
    return end.event == "Failed" and case.rows[ref].status == "cancelled"


def results(case: Case) -> Iterable[Fault]:
    """One recorded result for each command, child and fan-out; one more where an operator retried a dead letter."""
    retried = Counter(case.world.database.restored)
    for ref, stream in case.streams.items():
        answers = Counter(e.cause for _, e in stream if e.kind == "result")
        for version, count in answers.items():
            case.saw()
            if count > 1 + retried[f"{ref}/{version}"]:
                yield Fault(11, f"what was sent at version {version} has {count} results", ref)


def failures(case: Case) -> Iterable[Fault]:
    """What failed for good is a dead letter, or its failure was taken, and never both; nobody retries it too late."""
    restored = set(case.world.database.restored)
    for ref, stream in case.streams.items():
        told = {e.cause: e.event for _, e in stream if e.type == "SendFailed" and e.kind == "result"}
        for at_us, event in stream:
            key = event.output_id
            if event.event not in ("Sent", "Resent") or event.type not in HANDLED:
                continue
            case.saw()
            if told.get(event.version) == "Received" and case.letters[key]:
                yield Fault(12, f"{key} is a dead letter, and its failure was taken", ref, at_us)
            if told.get(event.version) == "Kept" and not case.letters[key] and key not in restored:
                yield Fault(12, f"nobody has taken the failure of {key}, and it is no dead letter", ref, at_us)
    for key, why in case.world.database.restored_late:
        yield Fault(12, f"{key} was retried although {why}", key.rpartition("/")[0])


def effects(case: Case) -> Iterable[Fault]:
    """Every effect and every call belongs to a recorded output, and every effect is made once."""
    made = Counter(line["effect"] for line in case.world.outside.lines if "effect" in line)
    for key, count in made.items():
        case.saw()
        if count > 1:
            yield Fault(3, f"the effect of {key} was made {count} times")
    for line in case.world.outside.lines:
        key = line.get("call") or line.get("effect")
        if key is not None and key not in case.outputs and key.rpartition("/")[0] not in case.outputs:
            yield Fault(3, f"a handler was called for {key}, which is no recorded output", None, line["at_us"])


def calls(case: Case) -> Iterable[Fault]:
    """Attempts stay within the cap, and each but the first follows a failure; a call that was lost costs none."""
    failures: defaultdict[str, int] = defaultdict(int)
    for line in case.world.outside.lines:
        if "failed" in line:
            failures[line["failed"]] = max(failures[line["failed"]], line["attempt"])
        elif "call" in line:
            case.saw()
            key, attempt = line["call"], line["attempt"]
            cap = CAPS.get(line["type"], RETRY.max_attempts)
            if attempt > cap:
                yield Fault(12, f"{key} was called for attempt {attempt}, and {cap} are allowed", None, line["at_us"])
            # Of several who subscribed, one that failed, or that could not be remembered, costs all of them an attempt.
            if key in case.outputs and attempt > failures[key] + 1:
                text = f"{key} was called for attempt {attempt} after {failures[key]} failures"
                yield Fault(12, text, None, line["at_us"])


def carried_out(case: Case) -> Iterable[Fault]:
    """At rest every command was carried out, refused, dead-lettered, or cancelled with its instance."""
    outside = case.world.outside
    for ref, stream in case.streams.items():
        # Ended from outside, or undone: what nobody had begun is cancelled.
        cut = any(e.event in ("Cancelled", "Terminated", "Compensating") for _, e in stream)
        answered = {e.cause for _, e in stream if e.kind == "result"}
        for at_us, event in stream:
            if event.event != "Sent" or event.type not in HANDLED or ref.startswith("Journey/"):
                continue
            case.saw()
            key = event.output_id
            done = key in outside.made or key in outside.refused or case.letters[key]
            if not done and not cut:
                yield Fault(3, f"{event.type} at version {event.version} was not carried out", ref, at_us)
            if not cut and event.version not in answered and event.type != "Unreserve":
                yield Fault(3, f"{event.type} at version {event.version} has no result", ref, at_us)


def causes(case: Case) -> Iterable[Fault]:
    """Every output names the input that it was decided for."""
    for ref, stream in case.streams.items():
        events = {event.version: event for _, event in stream}
        last = 0
        for version, event in events.items():
            if event.event in (*INPUTS, "Compensated") or event.detail.get("cancelled"):
                last = version
            elif event.event in ("Sent", "Published", "Replied", "Scheduled", "ChildStarted", "FannedOut", "Asked"):
                case.saw()
                if event.cause not in (last, None) or (event.cause is None and "undoes" not in event.detail):
                    yield Fault(5, f"version {version} was decided for {last} and names {event.cause}", ref)


def projection(case: Case) -> Iterable[Fault]:
    """The projection is the fold of the feed up to its checkpoint, and that is its end."""
    projected = case.world.database.projected("seen")
    followed = [fed for fed in case.world.database.fed if fed[1].workflow in ("Journey", "Holiday", "Project")]
    if projected is None:
        if followed:
            yield Fault(16, "the projection was never begun")
        return
    live, kept = projected
    if followed and followed[-1][0] > live.position:
        yield Fault(17, f"the projection is at {live.position}, and the feed at {followed[-1][0]}")
    expected: dict[str, Seen] = {}
    for position, ref, row in followed:
        if position <= live.position:
            known = expected.get(str(ref), Seen(0, 0))
            expected[str(ref)] = Seen(known.events + 1, row.version)
    found = {key: json.decode(document.body or b"", type=Seen) for key, document in kept.items()}
    case.saw(len(expected))
    for key in expected.keys() | found.keys():
        if expected.get(key) != found.get(key):
            yield Fault(16, f"the projection has {found.get(key)}, the feed folds to {expected.get(key)}", key)
