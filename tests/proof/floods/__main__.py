"""`python -m tests.proof.floods`: every flood for some seconds, and figures."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from tests.proof.floods.attacks import KINDS
from tests.proof.floods.flood import FILES, HEAD, Flood, run

MANY_FILES: Final = 8_192
FLOODS: Final = (
    ("header", 4, MANY_FILES),
    ("slow_headers", 1_500, MANY_FILES),
    ("slow_headers", 1_500, FILES),
    ("slow_headers", 1_500, 128),
    ("slow_bodies", 1_500, MANY_FILES),
    ("silent", 200, MANY_FILES),
    ("busy", 1_200, MANY_FILES),
    ("requests", 50, MANY_FILES),
    ("nonsense", 50, MANY_FILES),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.floods", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each goes on")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="just these")
    asked = parser.parse_args()
    floods = [Flood(kind, asked.seconds, number, files) for kind, number, files in FLOODS if kind in asked.only]
    rows: list[str] = []
    faults: list[str] = []
    for flood in floods:
        seen = run(flood)
        rows.append(seen.line())
        faults += [f"{flood}: {fault}" for fault in seen.faults]
        sys.stdout.write(f"{seen.line()}\n")
        sys.stdout.flush()
    told = [f"Violation: {fault}" for fault in faults]
    sys.stdout.write("\n".join(["", f"## Floods, {asked.seconds:g} s each", "", HEAD, *rows, "", *told, ""]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
