"""One page on how it went; for each fault the cycle, the invariant and the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.proof.crash.checker import Fault, Verdict
from tests.proof.crash.evidence import Evidence, Recorded
from tests.proof.histories.judge import Judged

FAULTS_SHOWN = 10
BODY_CHARACTERS = 90


@dataclass
class Run:
    """What a loop did."""

    store: str
    seed: int
    kills: int = 0
    client_kills: int = 0
    stops: int = 0
    seconds: float = 0.0
    quiet_seconds: float | None = None
    exits: int = 0
    """How many workers ended by themselves: they should not, whatever happens to the store."""
    server: str = ""
    """What happened to the server, if there was one."""


def report(evidence: Evidence, verdicts: list[Verdict]) -> str:
    """Return the page."""
    return "\n".join([*_summary(evidence), "", *_table(verdicts), *_faults(evidence, verdicts)])


def section(run: Run, evidence: Evidence, verdicts: list[Verdict], histories: Judged) -> str:
    """Return how it went in a few lines of Markdown."""
    answers = Counter(asked.answer for asked in evidence.asked)
    faults = Counter(fault.invariant for verdict in verdicts for fault in verdict.faults)
    made = sum("effect" in line for line in evidence.effects) + len(evidence.payments)
    blind = sum(not verdict.seen for verdict in verdicts)
    relieved = evidence.log.count("this worker was relieved")
    broken = ", ".join(f"{count} of invariant {number}" for number, count in sorted(faults.items())) or "none"
    quiet = "never" if run.quiet_seconds is None else f"{run.quiet_seconds:.1f} s after the last fault"
    rows = (
        ("seed", f"{run.seed}, {run.seconds:.0f} s"),
        ("workers killed", f"{run.kills:,}"),
        ("workers stopped beyond their lease", f"{run.stops:,}, {relieved:,} of them went on under a new key"),
        ("clients killed", f"{run.client_kills:,}"),
        *((("server", run.server),) if run.server else ()),
        ("inputs", ", ".join(f"{count:,} {answer}" for answer, count in answers.most_common())),
        ("effects", f"{made:,}; {_lost_calls(evidence):,} calls were lost in a kill and made again"),
        ("histories of clients", str(histories)),
        ("violations", f"{broken}, by {len(verdicts) - blind} checks of {sum(v.seen for v in verdicts):,} facts"),
        ("quiet", f"{quiet}; {run.exits} workers ended by themselves"),
    )
    head = [f"## Kill loop on {run.store}", "", "| | |", "|---|---|"]
    return "\n".join([*head, *(f"| {name} | {told} |" for name, told in rows)])


def _summary(evidence: Evidence) -> Iterator[str]:
    answers = Counter(asked.answer for asked in evidence.asked)
    statuses = Counter(asked.status for asked in evidence.asked if asked.answer == "ok")
    events = sum(map(len, evidence.streams.values()))
    calls = [line for line in evidence.effects if "call" in line]
    failures = sum("failed" in line for line in evidence.effects)
    made = sum("effect" in line for line in evidence.effects)
    commands = len({line["call"] for line in calls})
    yield f"told:  {', '.join(f'{count:,} {answer}' for answer, count in answers.most_common())}"
    yield f"       of the ok: {', '.join(f'{count:,} {status}' for status, count in statuses.most_common())}"
    letters = len(evidence.dead_letters)
    yield f"there: {len(evidence.instances):,} instances, {events:,} events, {letters:,} dead letters"
    lost = _lost_calls(evidence)
    yield f"done:  {commands:,} commands, {made:,} effects, {len(calls):,} calls"
    yield f"       of the calls: {failures:,} failed, {lost:,} lost in a kill and made again"


def _lost_calls(evidence: Evidence) -> int:
    """Return how many calls did not come back: another one for the same command followed without a failure."""
    lost = 0
    running: set[str] = set()
    for line in evidence.effects:
        if "failed" in line:
            running.discard(line["failed"])
        elif "call" in line:
            lost += line["call"] in running
            running.add(line["call"])
    return lost


def _table(verdicts: list[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        outcome = f"{len(verdict.faults)} FAULTS" if verdict.faults else "ok" if verdict.seen else "nothing to see"
        number = f"{verdict.invariant:>2}" if verdict.invariant else "  "
        yield f"{number}  {verdict.title:<72} {verdict.seen:>9,}  {outcome}"


def _faults(evidence: Evidence, verdicts: list[Verdict]) -> Iterator[str]:
    faults = [fault for verdict in verdicts for fault in verdict.faults]
    told: set[str] = set()
    for fault in faults[:FAULTS_SHOWN]:
        yield ""
        yield f"invariant {fault.invariant}{_cycle(evidence, fault)}: {fault.ref or ''} {fault.what}"
        if fault.ref is not None and fault.ref not in told:
            told.add(fault.ref)
            yield from map(_line, evidence.streams.get(fault.ref, []))
    if len(faults) > FAULTS_SHOWN:
        yield f"\nand {len(faults) - FAULTS_SHOWN} more"


def _cycle(evidence: Evidence, fault: Fault) -> str:
    if fault.at_us is None:
        return ""
    after = next((sample["cycle"] for sample in evidence.samples if sample["at_us"] >= fault.at_us), None)
    return ", after the last kill" if after is None else f", in cycle {after}"


def _line(row: Recorded) -> str:
    body = (row.body or b"").decode()[:BODY_CHARACTERS]
    cause = f"of {row.cause}" if row.cause is not None else row.message_id or str(row.detail.get("key") or "")
    cells = (f"{row.version:>5}", f"{row.time_us}", f"{row.kind or '':<8}", f"{row.event:<18}", f"{row.type or '':<11}")
    return "  ".join((*cells, f"{cause:<24}", body)).rstrip()
