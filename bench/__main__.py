"""`python -m bench core` measures the pure core and the codec."""

import argparse

from bench.core import core


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures mainspring. Figures are medians of repeated runs; compare only figures of one run.",
    )
    benches = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    for name, run in (("core", core),):
        bench = benches.add_parser(name, help=run.__doc__, description=run.__doc__)
        bench.add_argument("--json", action="store_true", help="print one JSON line, with the machine's facts")
        bench.set_defaults(run=run)
    arguments = parser.parse_args()
    arguments.run(arguments.json)


if __name__ == "__main__":
    main()
