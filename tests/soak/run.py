"""Runs the parts and writes the page."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

import apsw

from tests.soak.parts import Part

SECTION_LINES: Final = 40
LAST_LINES: Final = 30


@dataclass(frozen=True)
class Ran:
    """How a part went."""

    part: Part
    command: list[str]
    code: int
    seconds: float
    output: str

    @property
    def failed(self) -> bool:
        return self.code != 0

    def section(self) -> list[str]:
        """Return its lines of the report. Of one that failed, those are its last ones and how to repeat it."""
        lines = self.output.splitlines()
        begins = next((at for at, line in reversed(list(enumerate(lines))) if line.startswith("## ")), None)
        if not self.failed:
            return [f"## {self.part.name}", ""] if begins is None else lines[begins:][:SECTION_LINES]
        told = ["```", *lines[-LAST_LINES:], "```"]
        return [f"## {self.part.name}: FAILED (exit code {self.code})", "", f"Again: `{self.again}`", "", *told]

    @property
    def again(self) -> str:
        return f"python {' '.join(self.command)}"


def run(parts: Iterable[Part], *, short: bool, tell: Callable[[str], None]) -> Iterator[Ran]:
    """Run parts one after the other, also behind one that fails. What they tell as they go is passed on."""
    for part in parts:
        command = part.command(short=short)
        tell(f"— {part.name}: python {' '.join(command)}")
        began = time.monotonic()
        lines: list[str] = []
        told = [sys.executable, *command]
        with subprocess.Popen(told, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  our own parts
            for line in process.stdout or ():
                lines.append(line)
                tell(f"    {line.rstrip()}")
        ran = Ran(part, command, process.returncode, time.monotonic() - began, "".join(lines))
        tell(f"— {part.name}: {'FAILED' if ran.failed else 'ok'} after {ran.seconds:,.0f} s")
        yield ran


def page(runs: list[Ran]) -> str:
    """Return the report."""
    failed = sum(ran.failed for ran in runs)
    seconds = sum(ran.seconds for ran in runs)
    verdict = f"**{failed} of {len(runs)} parts failed.**" if failed else f"All {len(runs)} parts held."
    head = [
        f"# Soak of mainspring {version('mainspring')}",
        "",
        f"{verdict} {seconds / 60:,.0f} minutes on {_machine()}.",
        "",
        "| part | outcome | minutes |",
        "|---|---|---:|",
        *(f"| {r.part.name} | {'FAILED' if r.failed else 'ok'} | {r.seconds / 60:.1f} |" for r in runs),
    ]
    sections = [["", *ran.section()] for ran in runs]
    return "\n".join([*head, *(line.rstrip() for section in sections for line in section)]) + "\n"


def _machine() -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{platform.system()} {platform.machine()}, {python}, SQLite {apsw.sqlite_lib_version()}"
