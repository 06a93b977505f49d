"""`python -m tests.project.newcomer`: follow the tutorial and write what is printed into it. Read what differs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.project.newcomer.newcomer import Newcomer
from tests.project.newcomer.pages import CHAPTERS


def main() -> None:
    argparse.ArgumentParser(prog="python -m tests.project.newcomer", description=__doc__).parse_args()
    with TemporaryDirectory() as folder:
        newcomer = Newcomer(Path(folder), Path(sys.executable).parent)
        for chapter in CHAPTERS:
            chapter.write_text(newcomer.follow(chapter))
    sys.stdout.write("\n\n".join([*newcomer.differences, f"{len(newcomer.differences)} differences\n"]))


if __name__ == "__main__":
    main()
