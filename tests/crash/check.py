"""`python -m tests.crash.check FOLDER`: judge a run's files once more. Exit code 1 if a promise was broken."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.crash.checker import Checker
from tests.crash.evidence import read
from tests.crash.files import Place
from tests.crash.report import report


def main(folder: Path) -> int:
    evidence = read(Place(folder))
    verdicts = Checker(evidence).verdicts()
    sys.stdout.write(f"{report(None, evidence, verdicts)}\n")
    return int(any(verdict.faults for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
