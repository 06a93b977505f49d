"""One run of the tests, and what came of it."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.steady import delays, load, plugin
from tests.support.paths import ROOT

ENDS_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Conditions:
    """Under which a run happens."""

    number: int
    loaded: bool
    order_seed: int | None
    hash_seed: int
    late_seed: int | None = None

    def __str__(self) -> str:
        order = "file order" if self.order_seed is None else f"random order {self.order_seed}"
        late = "" if self.late_seed is None else f", late answers {self.late_seed}"
        return f"{'loaded' if self.loaded else 'quiet'}, {order}, PYTHONHASHSEED={self.hash_seed}{late}"


@dataclass
class Result:
    """What came of one test in one run."""

    outcome: str = "passed"
    seconds: float = 0.0
    text: str = ""


@dataclass
class Run:
    """What came of one run."""

    conditions: Conditions
    code: int
    seconds: float
    cpu_seconds: float
    tests: dict[str, Result] = field(default_factory=dict[str, Result])

    def count(self, outcome: str) -> int:
        return sum(test.outcome == outcome for test in self.tests.values())

    def __str__(self) -> str:
        figures = f"{self.count('passed')} passed, {self.count('failed')} failed, {self.count('skipped')} skipped"
        return f"{figures}, {self.seconds:.0f} s ({self.cpu_seconds:.0f} s CPU), exit code {self.code}"


def conditions(runs: int, loaded: int, seed: int, *, late: bool = False) -> Iterator[Conditions]:
    """Vary from run to run: load is spread over them evenly, every second one is in random order."""
    chance = random.Random(seed)  # noqa: S311  an order, no secret
    for number in range(1, runs + 1):
        under_load = number * loaded // runs > (number - 1) * loaded // runs
        order = chance.randrange(1, 1_000_000)
        hash_seed = chance.randrange(1, 1_000_000)
        # The hash seed is another one in each run, and serves for delays as well.
        late_seed = hash_seed if late else None
        yield Conditions(number, under_load, order if number % 2 == 0 else None, hash_seed, late_seed)


def run(given: Conditions, tests: Sequence[str], folder: Path) -> Run:
    """Run the tests once; what they print is kept in a file."""
    results, log = folder / f"{given.number}.jsonl", folder / f"{given.number}.log"
    results.write_text("")
    environment = os.environ | {"PYTHONHASHSEED": str(given.hash_seed), plugin.FILE: str(results)}
    for name, chosen in ((plugin.ORDER, given.order_seed), (delays.SEED, given.late_seed)):
        environment[name] = "" if chosen is None else str(chosen)
    processes = ["--numprocesses", "auto", "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", "-p", "tests.steady.plugin", *processes, *tests]
    begun, cpu = time.monotonic(), _cpu_seconds()
    with load.busy() if given.loaded else nullcontext(), log.open("wb") as output:
        code = _code(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output))  # noqa: S603  ours
        seconds, cpu = time.monotonic() - begun, _cpu_seconds() - cpu
    return Run(given, code, seconds, cpu, _read(results))


def _code(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code; whoever ends the command ends the run in order, with the servers that its tests have."""
    try:
        return process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait(ENDS_SECONDS)
        raise


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read(results: Path) -> dict[str, Result]:
    tests: dict[str, Result] = {}
    for line in results.read_text().splitlines():
        phase = json.loads(line)
        test = tests.setdefault(phase["test"], Result())
        test.seconds += phase["seconds"]
        # A failure stands, whatever its later phases say.
        if phase["outcome"] != "passed" and test.outcome != "failed":
            test.outcome = phase["outcome"]
        test.text += phase.get("text", "")
    return tests
