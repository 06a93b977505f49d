"""Plants small mistakes in the code, one at a time, and tells which of them the tests do not notice."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants.equivalents import FILE, equivalents, stale
from tests.mutants.mutations import Mutant, module_at, mutants_of, sampled
from tests.mutants.report import Report
from tests.mutants.run import try_all
from tests.mutants.session import LEAST_SECONDS
from tests.support.paths import ROOT

TEXT: Final = """\
Each mutant is the program with one small mistake in it, of the kind that people make: a boundary, a lost `not`, a line
left out. The tests of a package's own folder should fail with it. What they do not notice is shown as a diff: write the
test that does, where that behaviour is tested, or, where the mutant does just the same as the program, add it with the
reason to tests/mutants/equivalents.toml.

  python -m tests.mutants                     all of core, codec and styles
  python -m tests.mutants core.saga core.step only these modules
  python -m tests.mutants --sample 0.05       one mutant in twenty, others with another --seed
  python -m tests.mutants --list core.saga    the mutants, without trying them
  python -m tests.mutants chosen --help       mistakes chosen by hand, over the other packages

The exit status is 1 when a mutant survives that is not in equivalents.toml, or when an entry there is wrong.
"""


@dataclass(frozen=True)
class Package:
    """Some code, and the folder of tests that answers for it."""

    source: Path
    tests: Path

    def mutants(self, names: Sequence[str]) -> list[Mutant]:
        found: list[Mutant] = []
        for path in sorted(self.source.glob("*.py")):
            module = module_at(path)
            if not names or any(f".{module.name}.".find(f".{name}.") >= 0 for name in names):
                found += mutants_of(module)
        return found


PACKAGES: Final = tuple(
    Package(ROOT / "src" / "mainspring" / name, ROOT / "tests" / "unit" / name) for name in ("core", "codec", "styles")
)


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments say, and return the exit status."""
    if arguments[:1] == ["chosen"]:
        # The other tool, which needs none of this one.
        return importlib.import_module("tests.mutants.chosen").main(arguments[1:])
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        epilog=TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="module", help="as in core, core.saga or codec.wire; all unless given"
    )
    parser.add_argument("--sample", type=float, default=1.0, metavar="FRACTION", help="try only this share of them")
    parser.add_argument("--seed", type=int, default=1, help="which ones a sample has (1)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument(
        "--least-seconds", type=float, default=LEAST_SECONDS, help=f"what each may take at least ({LEAST_SECONDS:.0f})"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    parser.add_argument("--source", type=Path, help="another folder of code, to be tried on the tests in --tests")
    parser.add_argument("--tests", type=Path, help="the folder of tests for --source")
    parser.add_argument("--equivalents", type=Path, default=FILE, help="another list of mutants that do the same")
    options = parser.parse_args(arguments)
    packages = PACKAGES
    if options.source is not None:
        if options.tests is None:
            parser.error("--source needs --tests")
        packages = (Package(options.source.resolve(), options.tests.resolve()),)
    return _run(packages, options)


def _run(packages: Sequence[Package], options: argparse.Namespace) -> int:
    began = time.monotonic()
    listed = equivalents(options.equivalents)
    every, tried = list[Mutant](), []
    for package in packages:
        mutants = package.mutants(options.names)
        every += mutants
        if options.sample < 1:
            mutants = sampled(mutants, options.sample, options.seed)
        if options.list:
            sys.stdout.writelines(f"{mutant}\n\n" for mutant in mutants)
        elif mutants:
            tried += try_all(mutants, package.tests, options.jobs, options.least_seconds)
    if not every:
        sys.stderr.write(f"there is no module called {', '.join(options.names)}\n")
        return 2
    if options.list:
        return 0
    report = Report(tried, listed, stale(listed.values(), every), time.monotonic() - began)
    sys.stdout.writelines(f"{line}\n" for line in report.lines())
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
