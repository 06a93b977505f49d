"""Somebody who does what the tutorial says, in a folder and an environment of their own."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from tests.project.newcomer.merging import merged
from tests.project.newcomer.pages import Typed, Written, blocks

PATIENCE_S = 300
PRETENDED = re.compile(r"asyncio\.sleep\([\d.]+\)")
# What a second reader sees otherwise: moments, durations, and digests of code.
PASSING = [
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?"), "<moment>"),
    (re.compile(r"\b\d\d:\d\d:\d\d\.\d+"), "<moment>"),
    (re.compile(r"\b\d[\d,]*(\.\d+)? ?(µs|us|ms|s|min)\b( \d+ s\b)?"), "<duration>"),
    (re.compile(r"<duration> ago|\bnow\b"), "<just now>"),
    (re.compile(r"\b[0-9,]+ a second\b"), "<speed>"),
    (re.compile(r"\b[0-9a-f]{20}-\d+\b"), "<id>"),
    (re.compile(r"\bfingerprint [0-9a-f]{16}"), "fingerprint <digest>"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
]


@dataclass
class Newcomer:
    """Has a folder, and finds programs in `programs` first."""

    folder: Path
    programs: Path
    differences: list[str] = field(default_factory=list[str])

    def follow(self, page: Path, only: Collection[str] | None = None) -> str:
        """Do what a page says. Return it with what was really printed; what differs is remembered.

        All that is written is written; of what is typed perhaps `only` some.
        """
        text = page.read_text()
        moved = 0
        for block in blocks(text):
            match block:
                case Written():
                    self._write(block)
                case Typed(command) if only is not None and command not in only:
                    pass
                case Typed(command, printed, (start, end)):
                    seen = self.type(command)
                    self._compare(f"{page.name}: {command}", printed, seen)
                    text = text[: start + moved] + seen + text[end + moved :]
                    moved += len(seen) - len(printed)
        return text

    def _write(self, block: Written) -> None:
        path = self.folder / block.name
        path.write_text(merged(path.read_text(), block.text) if block.changed else block.text)

    def type(self, command: str) -> str:
        """Type a command, and return what it prints."""
        # A handler that pretends to work for a second gives a reader time to kill its worker. A machine that is held up
        # for that second would kill it too late, so it has all the time there; and none where nobody is waiting for it.
        self._pretend_to_work(seconds=60 if "kill -9" in command else 0.01)
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST", "MAINSPRING", "COV", "PYTHON"))
        }
        done = subprocess.run(  # noqa: S603  what stands in the tutorial
            ["bash", "-c", command],  # noqa: S607  whichever there is, as for a reader
            cwd=self.folder,
            env=environment
            | {
                "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
                "MAINSPRING_APP": "hotel:app",
                "COLUMNS": "120",
                "NO_COLOR": "1",
                # Plugins that are here for others: a newcomer has none of them, and each process would import them.
                "PYTEST_ADDOPTS": "-p no:schemathesis -p no:xdist -p no:anyio -p no:hypothesispytest",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.stdout and done.stdout.rstrip("\n") + "\n"

    def _pretend_to_work(self, *, seconds: float) -> None:
        for path in self.folder.glob("*.py"):
            text = path.read_text()
            if text != (changed := PRETENDED.sub(f"asyncio.sleep({seconds:g})", text)):
                path.write_text(changed)

    def _compare(self, title: str, printed: str, seen: str) -> None:
        expected, found = steady(printed).splitlines(), steady(seen).splitlines()
        if expected != found:
            lines = difflib.unified_diff(expected, found, "on the page", "printed", lineterm="")
            self.differences.append("\n".join([title, *lines]))


def steady(text: str) -> str:
    """Return what is printed without what differs from run to run.

    >>> steady("1 passed in 0.02s at 2026-01-01 09:00:00.000")
    '1 passed in <duration> at <moment>'
    >>> steady("1,024 ms") == steady("3 µs")
    True
    """
    for pattern, word in PASSING:
        text = pattern.sub(word, text)
    return text
