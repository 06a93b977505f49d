"""`python -m tests.edges.fuzzing`: many inputs for every reader, and figures."""

from __future__ import annotations

import argparse
import sys

from tests.edges.fuzzing.fuzz import HEAD, fuzz
from tests.edges.fuzzing.readers import readers


def main() -> int:
    with readers() as known:
        parser = argparse.ArgumentParser(prog="python -m tests.edges.fuzzing", description=__doc__)
        parser.add_argument("--inputs", type=int, default=20_000, help="for each reader")
        parser.add_argument("--seed", type=int, default=0, help="another one makes other inputs")
        parser.add_argument("--only", nargs="+", choices=[reader.name for reader in known], help="just these")
        asked = parser.parse_args()
        chosen = [reader for reader in known if not asked.only or reader.name in asked.only]
        found = []
        for reader in chosen:
            found.append(fuzz(reader, asked.inputs, asked.seed))
            sys.stdout.write(f"{found[-1].line()}\n")
            sys.stdout.flush()
    faults = [fault for each in found for fault in each.faults]
    tried = sum(each.tried for each in found)
    outcomes = sum(len(each.outcomes) for each in found)
    head = f"## Fuzzing: {tried:,} inputs, {len(found)} readers, {outcomes:,} distinct outcomes, {len(faults)} faults"
    rows = [each.line() for each in found]
    sys.stdout.write("\n".join([head, "", HEAD, *rows, *(f"- {fault}" for fault in faults), ""]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
