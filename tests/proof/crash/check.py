"""`python -m tests.proof.crash.check FOLDER`: judge a run's files once more. Exit code 1 if a promise was broken."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import json

from tests.proof.crash import saga_checks
from tests.proof.crash.checker import Checker, Fault, Verdict
from tests.proof.crash.evidence import Evidence, read
from tests.proof.crash.files import Place
from tests.proof.crash.journey import JOURNEY
from tests.proof.crash.report import Run, report, section
from tests.proof.crash.seen import judge_histories
from tests.proof.histories.judge import Judged

UNDECIDED_SHARE = 0.05
"""Of more undecided histories than this the check says nothing, and that is a fault of its own."""


def judged(place: Place, evidence: Evidence, histories: Judged) -> list[Verdict]:
    """Judge journeys, errands, and what clients saw of slates."""
    of_journeys = Checker(evidence.of(JOURNEY.workflows), JOURNEY).verdicts()
    of_errands = saga_checks.verdicts(saga_checks.read_case(place, evidence))
    return [*of_journeys, *of_errands, of_histories(histories)]


def of_histories(histories: Judged) -> Verdict:
    """Return the verdict on what clients saw. What is undecided is no fault, and is not passed either: see the row."""
    faults = [Fault(20, what, to) for to, what in histories.violations]
    if len(histories.undecided) > UNDECIDED_SHARE * histories.instances:
        faults.append(Fault(20, f"{len(histories.undecided)} of {histories.instances} histories are undecided"))
    title = "what clients saw of an instance is explained by one order of its steps"
    return Verdict(20, title, histories.operations, tuple(faults))


def main(folder: Path) -> int:
    place = Place(folder)
    run = json.decode(place.run.read_bytes(), type=Run)
    evidence = read(place)
    histories = judge_histories(place)
    verdicts = judged(place, evidence, histories)
    sys.stdout.write(f"{report(evidence, verdicts)}\n\n{section(run, evidence, verdicts, histories)}\n")
    return int(any(verdict.faults for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
