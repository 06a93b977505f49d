"""Runs, each in a process and a folder of its own: no run sees another's memory or file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec import json, structs

from bench.catalogue import BENCHES
from bench.measure import Figures, fsync_ms
from bench.servers import own_schema
from bench.settings import Settings


def measured(name: str, settings: Settings) -> Figures:
    """Make one run in this process, and return its figures."""
    settings.apply()
    return {**BENCHES[name].run(settings), "fsync_ms": fsync_ms(settings.path)}


def one_round(name: str, settings: Settings) -> Figures:
    """Make one run in a process of its own, in a fresh folder inside the settings' one."""
    with (
        tempfile.TemporaryDirectory(prefix="mainspring-bench-", dir=settings.folder) as folder,
        own_schema(structs.replace(settings, folder=folder)) as own,
    ):
        done = subprocess.run(  # noqa: S603  this very package
            [sys.executable, "-m", "bench.rounds", name, json.encode(own).decode()],
            stdout=subprocess.PIPE,
            check=False,
            cwd=Path(__file__).parent.parent,
        )
    if done.returncode != 0:
        raise SystemExit(f"{name} failed with exit code {done.returncode}: see above.")
    return json.decode(done.stdout.splitlines()[-1], type=Figures)


def main(name: str, settings: str) -> None:
    figures = measured(name, json.decode(settings, type=Settings))
    sys.stdout.write(json.encode(figures).decode() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
