"""`python -m tests.proof.golden.examples`: replay the histories of the examples; with `--write`, keep them anew.

A process of its own, since the examples' app gives its messages names that nobody else should find.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import Final

from examples.demo.app import app_of
from examples.demo.drive import demo
from examples.demo.page import page
from mainspring.app.internals import internals_of
from mainspring.testing import HistoryChanged, replay_histories, save_histories

FOLDER: Final = Path(__file__).parent / "histories"
INSTANCES: Final = 48
KEPT: Final = 3


async def write(folder: Path) -> None:
    """Run the demo, with a worker that is killed in the middle, and keep some streams of each workflow."""
    code = await demo(folder, INSTANCES, page(StringIO(), "never", {}))
    if code:
        raise SystemExit("the demo has failed")
    app = app_of(folder)
    await app.start(work=False)
    try:
        for name, entry in internals_of(app).registry.workflows.items():
            if not name.startswith("mainspring."):
                cls = type(entry.workflow)
                kept = await save_histories(app, FOLDER / f"{name}.json", workflow=cls, limit=KEPT)
                sys.stdout.write(f"{name}: {kept}\n")
    finally:
        await app.stop()


def replay(folder: Path) -> int:
    """Replay all of them, say how many inputs each has, and return the exit code."""
    app = app_of(folder)
    names = {name for name in internals_of(app).registry.workflows if not name.startswith("mainspring.")}
    missing = names - {path.stem for path in FOLDER.glob("*.json")}
    if missing:
        sys.stderr.write(f"no history of {', '.join(sorted(missing))}\n")
        return 1
    for path in sorted(FOLDER.glob("*.json")):
        try:
            sys.stdout.write(f"{path.stem}: {replay_histories(app, path)}\n")
        except HistoryChanged as changed:
            sys.stderr.write(f"{changed}\n")
            return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.golden.examples", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep new histories, where a change was meant")
    with tempfile.TemporaryDirectory(prefix="mainspring-golden-") as folder:
        if parser.parse_args().write:
            asyncio.run(write(Path(folder)))
            return 0
        return replay(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
