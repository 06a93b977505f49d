"""The independent checker: holds what clients were told, what stands in the streams and what handlers did together.

Each check is named after the invariant of the design that it judges, and counts what it looked at: a check that looked
at nothing proves nothing, and says so in the report.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from tests.proof.crash.evidence import ENDS, INPUTS, OUTPUTS, Evidence, Recorded
from tests.proof.crash.replay import replay
from tests.proof.crash.workload import Workload


@dataclass(frozen=True)
class Fault:
    """A broken promise."""

    invariant: int
    what: str
    ref: str | None = None
    at_us: int | None = None


@dataclass(frozen=True)
class Verdict:
    """How a check went: what it judged, how much it saw, and what it found."""

    invariant: int
    title: str
    seen: int
    faults: tuple[Fault, ...]


Check = Callable[["Checker"], Iterable[Fault]]


class Checker:
    """Runs the checks over the evidence."""

    def __init__(self, evidence: Evidence, workload: Workload) -> None:
        self.evidence = evidence
        self.workload = workload
        self.seen = 0
        self.outputs = {e.output_id: e for e in evidence.events() if e.event in OUTPUTS}
        self.letters = Counter((letter.ref, letter.message_id) for letter in evidence.dead_letters)
        # Commands that failed for good, and whose failure a case of decide has taken.
        self.handled = {f"{e.ref}/{e.cause}" for e in evidence.events() if e.is_failure_taken}

    def verdicts(self, chosen: Collection[Check] | None = None) -> list[Verdict]:
        """Judge by all checks, or by those that were chosen."""
        found: list[Verdict] = []
        for invariant, title, check in CHECKS:
            if chosen is not None and check not in chosen:
                continue
            self.seen = 0
            faults = tuple(self._faults(invariant, check))
            found.append(Verdict(invariant, title, self.seen, faults))
        return found

    def _faults(self, invariant: int, check: Check) -> Iterable[Fault]:
        try:
            yield from check(self)
        except Exception as error:  # noqa: BLE001  evidence that cannot even be read is a fault like any other
            yield Fault(invariant, f"the evidence cannot be read: {error!r}")

    def places(self, ref: str, id: str) -> int:
        """Return in how many places an input is: stream, inbox, dead letters."""
        waiting = sum(1 for row in self.evidence.inbox if (row.ref, row.message_id) == (ref, id))
        return len(self.evidence.inputs.get((ref, id), ())) + waiting + self.letters[ref, id]


# ---- H: what clients were told


def acknowledged_once(checker: Checker) -> Iterable[Fault]:
    askings = Counter((asked.to, asked.id) for asked in checker.evidence.asked)
    for asked in checker.evidence.asked:
        checker.seen += 1
        letters = checker.letters[asked.to, asked.id]
        # What is late is answered and kept at each asking: as many dead letters as askings count as one place.
        places = checker.places(asked.to, asked.id) - letters + bool(letters)
        if letters > askings[asked.to, asked.id]:
            yield Fault(1, f"{asked.id} was asked once and has {letters} dead letters", asked.to, asked.at_us)
        if asked.answer == "ok" and places != 1:
            yield Fault(1, f"{asked.id} was acknowledged and is in {places} places", asked.to, asked.at_us)
        elif places > 1:
            yield Fault(
                1, f"{asked.id} was answered with {asked.answer} and is in {places} places", asked.to, asked.at_us
            )


def nothing_unasked(checker: Checker) -> Iterable[Fault]:
    asked = {(asked.to, asked.id) for asked in checker.evidence.asked}
    tasks = {event.output_id for event in checker.evidence.events() if event.event == "Asked"}
    for event in checker.evidence.events():
        if event.event not in INPUTS:
            continue
        checker.seen += 1
        if event.kind == "answer" and event.input_id.removesuffix("/answer") in tasks:
            continue
        if event.cause is None and event.input_id not in checker.outputs and (event.ref, event.input_id) not in asked:
            yield Fault(1, f"{event.input_id} was asked by nobody", event.ref, event.time_us)


def same_id_same_answer(checker: Checker) -> Iterable[Fault]:
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for asked in checker.evidence.asked:
        known = first.setdefault((asked.to, asked.id), (asked.type, asked.body))
        checker.seen += 1
        if known == (asked.type, asked.body):
            if asked.answer == "refused":
                yield Fault(4, f"{asked.id} was asked again as it was, and refused", asked.to, asked.at_us)
        elif asked.answer == "ok":
            yield Fault(4, f"{asked.id} was acknowledged with another body", asked.to, asked.at_us)
        for event in checker.evidence.inputs.get((asked.to, asked.id), ()):
            if (event.type, (event.body or b"").decode()) != known:
                yield Fault(4, f"{asked.id} stands in the stream with another body", asked.to, asked.at_us)


def accepted_order(checker: Checker) -> Iterable[Fault]:
    """What was acknowledged before the next was sent comes first."""
    by_instance: defaultdict[str, list[tuple[int, int, int, str]]] = defaultdict(list)
    known: set[tuple[str, str]] = set()
    for asked in checker.evidence.asked:
        events = checker.evidence.inputs.get((asked.to, asked.id), [])
        # Of an input that was asked twice, the first asking counts; it may have been taken then without an answer.
        if events and (asked.to, asked.id) not in known and asked.answer == "ok" and asked.told_line is not None:
            by_instance[asked.to].append((asked.line, asked.told_line, events[0].version, asked.id))
        known.add((asked.to, asked.id))
    for ref, inputs in by_instance.items():
        inputs.sort()
        for line, _, version, id in inputs:
            checker.seen += 1
            late = [other for _, told, v, other in inputs if told < line and v > version]
            if late:
                yield Fault(8, f"{late[0]} was acknowledged before {id} was sent, and decided after it", ref)


def inbox_order(checker: Checker) -> Iterable[Fault]:
    """What was seen waiting in the inbox is decided in the order of its positions."""
    for sample in checker.evidence.samples:
        last: dict[str, tuple[int, str]] = {}
        for ref, id, _ in sample["inbox"]:
            events = checker.evidence.inputs.get((ref, id))
            if not events:
                continue
            checker.seen += 1
            version, earlier = last.get(ref, (0, ""))
            if events[0].version < version:
                yield Fault(8, f"{earlier} waited before {id} and was decided after it", ref, sample["at_us"])
            last[ref] = (events[0].version, id)


# ---- L: the streams


def versions(checker: Checker) -> Iterable[Fault]:
    evidence = checker.evidence
    if evidence.orphans:
        yield Fault(2, f"{evidence.orphans} events belong to no instance")
    for ref, (version, _, _) in evidence.instances.items():
        checker.seen += 1
        found = [event.version for event in evidence.streams.get(ref, [])]
        if found != list(range(1, version + 1)):
            yield Fault(2, f"versions should be 1..{version} and are {_shown(found)}", ref)
        positions = [event.position for event in evidence.streams.get(ref, [])]
        if positions != sorted(positions):
            yield Fault(7, "versions were not committed in their order", ref)


def prefixes(checker: Checker) -> Iterable[Fault]:
    now = {(e.ref, e.version): (e.event, crc32(e.body or b"")) for e in checker.evidence.events()}
    for sample in checker.evidence.samples:
        for ref, version, event, checksum in sample["events"]:
            checker.seen += 1
            if now.get((ref, version)) != (event, checksum):
                text = f"version {version} was {event} at the kill of cycle {sample['cycle']} and is not any more"
                yield Fault(2, text, ref, sample["at_us"])


def whole_steps(checker: Checker) -> Iterable[Fault]:
    for sample in checker.evidence.samples:
        checker.seen += len(sample["events"])
        for ref, version, count, last in sample["half_done"]:
            text = f"at a kill its row said version {version}, its stream had {count} events up to {last}"
            yield Fault(5, text, ref, sample["at_us"])
        for ref, version, _ in sample["outbox"]:
            if f"{ref}/{version}" not in checker.outputs:
                text = f"at a kill the outbox had version {version}, which is no output of the stream"
                yield Fault(5, text, ref, sample["at_us"])


def causes(checker: Checker) -> Iterable[Fault]:
    """Every output names the input that caused it: where it arrived, and to its handler."""
    caused_by: dict[str, str] = {}
    for ref, stream in checker.evidence.streams.items():
        cause = None
        for event in stream:
            # What was undone is the cause of what is undone next.
            if event.event in INPUTS or event.event == "Compensated":
                cause = event.input_id
            elif event.event in OUTPUTS:
                if cause is None:
                    yield Fault(5, f"version {event.version} was decided without an input", ref, event.time_us)
                caused_by[event.output_id] = cause or ""
    for event in checker.evidence.events():
        if event.message_id not in caused_by:
            continue
        checker.seen += 1
        sender, _, _ = event.message_id.rpartition("/")
        if event.kind != "timer" and event.context.get("sender") != sender:
            text = f"{event.message_id} says it was sent by {event.context.get('sender')}"
            yield Fault(5, text, event.ref, event.time_us)
        if event.context.get("causation_id") != caused_by[event.message_id]:
            text = (
                f"{event.message_id} was caused by {caused_by[event.message_id]} and says it was by "
                f"{event.context.get('causation_id')}"
            )
            yield Fault(5, text, event.ref, event.time_us)
    for line in checker.evidence.effects:
        if "call" in line and line["call"] in caused_by and line["causation"] != caused_by[line["call"]]:
            cause = caused_by[line["call"]]
            text = f"a handler was told that {line['call']} was caused by {line['causation']}, not by {cause}"
            yield Fault(5, text, line["call"].rpartition("/")[0], line["at_us"])


def folds(checker: Checker) -> Iterable[Fault]:
    for ref, stream in checker.evidence.streams.items():
        checker.seen += len(stream)
        complaints, state = replay(checker.workload, stream)
        for version, what in complaints:
            yield Fault(6, f"version {version}: {what}", ref)
        recorded = checker.evidence.instances[ref][2]
        if recorded != state:
            yield Fault(6, f"its row says {recorded}, its stream folds to {state}", ref)


def one_committer(checker: Checker) -> Iterable[Fault]:
    for ref, stream in checker.evidence.streams.items():
        checker.seen += len(stream)
        for version, count in Counter(event.version for event in stream).items():
            if count > 1:
                yield Fault(7, f"version {version} was committed {count} times", ref)


def ends(checker: Checker) -> Iterable[Fault]:
    for ref, stream in checker.evidence.streams.items():
        end = next((event for event in stream if event.event in ENDS), None)
        if end is None:
            continue
        checker.seen += 1
        for event in stream[stream.index(end) + 1 :]:
            if event.event != "Kept":
                yield Fault(10, f"{event.event} at version {event.version} came after the end", ref, event.time_us)
        if checker.evidence.instances[ref][1] != end.event.lower():
            yield Fault(10, f"its stream has {end.event}, its row says {checker.evidence.instances[ref][1]}", ref)


def late_inputs(checker: Checker) -> Iterable[Fault]:
    for asked in checker.evidence.asked:
        if asked.status != "dead letter":
            continue
        checker.seen += 1
        end = next((e for e in checker.evidence.streams.get(asked.to, ()) if e.event in ENDS), None)
        if end is None:
            yield Fault(10, f"{asked.id} was called late, and its instance never ended", asked.to, asked.at_us)
        if not checker.letters[asked.to, asked.id]:
            yield Fault(10, f"{asked.id} was late and is not kept", asked.to, asked.at_us)
    for letter in checker.evidence.dead_letters:
        stream = checker.evidence.streams.get(letter.ref, [])
        if letter.output_version is None and not any(event.event in ENDS for event in stream):
            yield Fault(
                10, f"{letter.message_id} is a dead letter of an instance that goes on: {letter.reason}", letter.ref
            )


# ---- the outputs, and E: what handlers did


def carried_out(checker: Checker) -> Iterable[Fault]:
    """At rest every recorded output was carried out once, cancelled, dead-lettered, or its failure was taken."""
    evidence = checker.evidence
    results = Counter((e.ref, e.cause) for e in evidence.events() if e.kind in ("result", "timer"))
    made = Counter(line["effect"] for line in evidence.effects if "effect" in line) + Counter(evidence.payments)
    for owed in evidence.outbox:
        yield Fault(3, f"version {owed.version} ({owed.kind}) is still owed", owed.ref)
    for output in checker.outputs.values():
        checker.seen += 1
        letters = checker.letters[output.ref, output.output_id]
        failed = letters + (output.output_id in checker.handled)
        text = f"{output.event} {output.type} at version {output.version}"
        if output.event == "Scheduled":
            yield from _timer(checker, output, results[output.ref, output.version])
        elif output.event == "Replied":
            scheme, _, to = str(output.detail.get("reply_to")).partition(":")
            # What a caller outside was told, its ledger knows.
            if scheme == "instance" and checker.places(to, output.output_id) != 1:
                yield Fault(
                    3, f"{text} arrived {checker.places(to, output.output_id)} times", output.ref, output.time_us
                )
        elif output.type in checker.workload.takers:
            for to in checker.workload.takes(output):
                if (count := checker.places(to, output.output_id)) != 1:
                    yield Fault(3, f"{text} arrived {count} times at {to}", output.ref, output.time_us)
        elif output.type in checker.workload.answered:
            count = results[output.ref, output.version]
            if count != 1:
                yield Fault(11 if count > 1 else 3, f"{text} has {count} results", output.ref, output.time_us)
            if failed + made[output.output_id] != 1:
                yield Fault(3, f"{text}: {made[output.output_id]} effects, {failed} failures", output.ref)
        elif made[output.output_id] + failed != 1:
            yield Fault(3, f"{text}: {made[output.output_id]} effects, {failed} failures", output.ref)


def _timer(checker: Checker, output: Recorded, fired: int) -> Iterable[Fault]:
    stream = checker.evidence.streams[output.ref]
    behind = [event for event in stream if event.version > output.version]
    key = output.detail.get("key")
    stopped = next(
        (
            event
            for event in behind
            if event.event in ENDS or (event.event == "ScheduleCancelled" and event.detail.get("key") == key)
        ),
        None,
    )
    text = f"the timer {output.type} of version {output.version}"
    if fired > 1:
        yield Fault(9, f"{text} fired {fired} times", output.ref, output.time_us)
    if not fired and stopped is None:
        yield Fault(3, f"{text} neither fired nor was cancelled", output.ref, output.time_us)
    for event in behind:
        if event.kind != "timer" or event.cause != output.version:
            continue
        if stopped is not None and event.version > stopped.version:
            yield Fault(
                9, f"{text} fired after {stopped.event} at version {stopped.version}", output.ref, event.time_us
            )
        due_us = output.time_us + output.detail["after_us"]
        if event.time_us < due_us - checker.evidence.clock_error_us:
            yield Fault(9, f"{text} fired {(due_us - event.time_us) / 1e3:.1f} ms early", output.ref, event.time_us)
        if event.body != output.body:
            yield Fault(9, f"{text} came back with another body", output.ref, event.time_us)


def timers(checker: Checker) -> Iterable[Fault]:
    """By the due time that the outbox had at a kill: the store's own clock."""
    fired = {(e.ref, e.cause): e for e in checker.evidence.events() if e.kind == "timer"}
    for sample in checker.evidence.samples:
        for ref, version, due_us in sample["outbox"]:
            event = fired.get((ref, version))
            if event is None:
                continue
            checker.seen += 1
            if event.time_us < due_us - checker.evidence.clock_error_us:
                yield Fault(9, f"the timer of version {version} was due at {due_us} and fired at {event.time_us}", ref)


def effects(checker: Checker) -> Iterable[Fault]:
    """Every effect belongs to a recorded output, is made once, and not called for after its result is recorded.

    Only who was stopped beyond its lease may call late: it cannot know yet that others have done its work.
    """
    for key, count in Counter(line["effect"] for line in checker.evidence.effects if "effect" in line).items():
        checker.seen += 1
        if count > 1:
            yield Fault(3, f"the effect of {key} was made {count} times", key.rpartition("/")[0])
    brief, error_us = checker.evidence.brief, checker.evidence.clock_error_us
    recorded: dict[str, int] = {}
    for event in checker.evidence.events():
        if event.kind == "result":  # the first: another that came after it proves nothing
            recorded.setdefault(f"{event.ref}/{event.cause}", event.time_us + error_us)
    for line in checker.evidence.effects:
        key = line.get("call") or line.get("effect")
        if key is None:
            continue
        ref = key.rpartition("/")[0]
        output = checker.outputs.get(key)
        if output is None or output.event != "Sent":
            yield Fault(3, f"a handler was called for {key}, which is no recorded output", ref, line["at_us"])
        elif "call" in line and line["type"] != output.type:
            yield Fault(11, f"a handler of {line['type']} was called for {key}, a {output.type}", ref, line["at_us"])
        elif "call" in line and line["generation"] not in brief and line["at_us"] > recorded.get(key, line["at_us"]):
            yield Fault(11, f"a handler was called for {key} after its result was recorded", ref, line["at_us"])


def calls(checker: Checker) -> Iterable[Fault]:
    """Within one worker a command is called again only after it failed; a call lost in a crash costs no attempt."""
    by_key: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in checker.evidence.effects:
        if "effect" not in line:
            by_key[line.get("call") or line["failed"]].append(line)
    for key, lines in by_key.items():
        checker.seen += 1
        ref, failures, running = key.rpartition("/")[0], 0, None
        for line in lines:
            if "failed" in line:
                failures, running = max(failures, line["attempt"]), None
                continue
            if running == line["generation"] and running not in checker.evidence.brief:
                yield Fault(11, f"{key} was called twice at once by one worker", ref, line["at_us"])
            if line["attempt"] > failures + 1:
                text = f"{key} was called for attempt {line['attempt']} after {failures} failures"
                yield Fault(12, text, ref, line["at_us"])
            if line["attempt"] > checker.workload.caps[line["type"]]:
                yield Fault(12, f"{key} was called for attempt {line['attempt']}", ref, line["at_us"])
            running = line["generation"]


def payments(checker: Checker) -> Iterable[Fault]:
    """What a handler wrote in the transaction of its result is there once where that is recorded, else not at all."""
    evidence = checker.evidence
    recorded = {f"{e.ref}/{e.cause}" for e in evidence.events() if e.kind == "result"}
    paid = Counter(evidence.payments)
    commands = {id for id, output in checker.outputs.items() if output.type in checker.workload.paying}
    for command in commands | paid.keys():
        checker.seen += 1
        expected = int(command in commands and command in recorded)
        if paid[command] != expected:
            text = f"{command} was paid {paid[command]} times and should be {expected} times, by its recorded result"
            yield Fault(11, text, command.rpartition("/")[0])
    for sample in evidence.samples:
        for command in sample["half_paid"]:
            yield Fault(11, f"at a kill {command} was paid and still owed", command.rpartition("/")[0], sample["at_us"])


def dead_letters(checker: Checker) -> Iterable[Fault]:
    for (ref, id), count in checker.letters.items():
        if id in checker.outputs and count > 1:
            yield Fault(12, f"{id} has {count} dead letters", ref)
    for letter in checker.evidence.dead_letters:
        output = checker.outputs.get(letter.message_id)
        if output is None:
            continue
        checker.seen += 1
        if letter.message_id in checker.handled:
            yield Fault(12, f"{letter.message_id} is a dead letter, and its failure was taken", letter.ref)
        if letter.body != output.body or letter.type != output.type:
            yield Fault(12, f"the dead letter of {letter.message_id} is not what was sent", letter.ref)
        if letter.attempts != checker.workload.caps.get(letter.type):
            yield Fault(12, f"{letter.message_id} was given up after {letter.attempts} attempts", letter.ref)
    for output in checker.outputs.values():
        hopeless = output.type in checker.workload.hopeless
        checker.seen += hopeless
        if hopeless and not checker.letters[output.ref, output.output_id] and output.output_id not in checker.handled:
            yield Fault(12, f"{output.output_id} cannot work, and nobody knows of it", output.ref, output.time_us)


def at_rest(checker: Checker) -> Iterable[Fault]:
    evidence = checker.evidence
    for row in evidence.inbox:
        yield Fault(17, f"{row.message_id} still waits in the inbox", row.ref)
    for ref, (_, status, state) in evidence.instances.items():
        if ref.partition("/")[0] in checker.workload.come_to_rest:
            checker.seen += 1
            if status != "completed":
                yield Fault(17, f"it is {status} in {state}, and nothing happens any more", ref)


def logs(checker: Checker) -> Iterable[Fault]:
    checker.seen = 1
    if "Traceback" in checker.evidence.log:
        start = checker.evidence.log.index("Traceback")
        yield Fault(0, f"a process logged an unexpected error:\n{checker.evidence.log[start : start + 3_000]}")


CHECKS: Final[tuple[tuple[int, str, Check], ...]] = (
    (1, "acknowledged inputs are there once, unknown ones at most once", acknowledged_once),
    (1, "nothing is there that nobody asked for", nothing_unasked),
    (2, "versions are 1..n", versions),
    (2, "what was read at a kill is a prefix of the end", prefixes),
    (3, "every recorded output was carried out, cancelled, dead-lettered, or its failure taken", carried_out),
    (3, "every effect belongs to a recorded output and was made once", effects),
    (4, "the same id gets the same answer", same_id_same_answer),
    (5, "steps are whole at every kill", whole_steps),
    (5, "every output names its cause", causes),
    (6, "streams fold to the recorded states, decide gives what was recorded", folds),
    (7, "one committer per version", one_committer),
    (8, "decided in the order of acknowledgement", accepted_order),
    (8, "decided in the order of the inbox", inbox_order),
    (9, "timers fired when due, once, not after cancelling", timers),
    (10, "nothing is decided after the end", ends),
    (10, "late inputs are answered and kept", late_inputs),
    (11, "no command is called twice at once or after its result", calls),
    (11, "what a handler wrote with its result is there once, and not without it", payments),
    (12, "attempts within the cap, then one dead letter, or a failure that was taken", dead_letters),
    (17, "all that should end came to rest", at_rest),
    (0, "no process logged an unexpected error", logs),
)


def _shown(versions: list[int]) -> str:
    return str(versions) if len(versions) < 30 else f"{str(versions[:30])[:-1]}, …]"
