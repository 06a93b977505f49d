"""`python -m tests.proof.crash.check FOLDER`: judge a run's files once more. Exit code 1 if a promise was broken."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import json

from tests.proof.crash import saga_checks
from tests.proof.crash.checker import Checker, Verdict
from tests.proof.crash.evidence import Evidence, read
from tests.proof.crash.files import Place
from tests.proof.crash.journey import JOURNEY
from tests.proof.crash.report import Run, report, section


def judged(place: Place, evidence: Evidence) -> list[Verdict]:
    """Judge journeys and errands."""
    of_journeys = Checker(evidence.of(JOURNEY.workflows), JOURNEY).verdicts()
    return [*of_journeys, *saga_checks.verdicts(saga_checks.read_case(place, evidence))]


def main(folder: Path) -> int:
    place = Place(folder)
    run = json.decode(place.run.read_bytes(), type=Run)
    evidence = read(place)
    verdicts = judged(place, evidence)
    sys.stdout.write(f"{report(evidence, verdicts)}\n\n{section(run, evidence, verdicts)}\n")
    return int(any(verdict.faults for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
