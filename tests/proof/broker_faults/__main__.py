"""Kill workers and brokers while parcels go through them, and judge what came out.

Each parcel is a post and two notes behind it. Exit code 1 if one was lost, or weighed or reported twice, or
acknowledged before it was durable, or if notes came out of their order. A broker that this machine has not is left out,
and told so.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.edges.brokers.servers import Unavailable
from tests.proof.broker_faults.drill import Drill, Outcome
from tests.proof.broker_faults.stages import STAGES

HEAD = """\
## Brokers and workers killed

| broker | parcels | killed | time | sent again | came again | complaints |
|---|---|---|---|---|---|---|"""
COMPLAINTS_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.broker_faults", description=__doc__)
    parser.add_argument("--broker", choices=STAGES, action="append", help="only this one; repeatable")
    parser.add_argument("--parcels", type=int, default=5_000, help="how many go through each, with three messages")
    parser.add_argument("--keep", action="store_true", help="keep the files of a run that went well")
    asked = parser.parse_args()
    # Whoever ends it ends its processes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # That a broker is away, its client says at every attempt.
    logging.disable(logging.ERROR)
    outcomes: list[Outcome] = []
    skipped: list[str] = []
    for name in asked.broker or STAGES:
        sys.stderr.write(f"  {name} …\n")
        try:
            outcomes.append(_drill(name, asked.parcels, keep=asked.keep))
        except Unavailable as reason:
            skipped.append(f"{name} was left out: {reason}")
    sys.stdout.write("\n".join([HEAD, *(outcome.row() for outcome in outcomes), "", *skipped]) + "\n")
    return int(any(outcome.complaints for outcome in outcomes) or not outcomes)


def _drill(name: str, parcels: int, *, keep: bool) -> Outcome:
    make, kills = STAGES[name]
    folder = Path(tempfile.mkdtemp(prefix=f"mainspring-{name}-"))
    with make(folder) as stage:
        outcome = asyncio.run(Drill(stage, folder, parcels, kills).run())
    for complaint in outcome.complaints[:COMPLAINTS_SHOWN]:
        sys.stdout.write(f"{outcome.name}: {complaint}\n")
    if outcome.complaints or keep:
        sys.stdout.write(f"the files of {outcome.name} are in {folder}\n")
    else:
        shutil.rmtree(folder)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
