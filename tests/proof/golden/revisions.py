"""The sources of earlier commits, as git has them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import IO

from tests.support.paths import ROOT


class NoHistoryError(Exception):
    """There is no git, no repository, or no such commit here; the reason is the message."""


def checked_out(revision: str, folder: Path) -> Path:
    """Put the sources of a commit into a folder, and return where they are."""
    try:
        archived = subprocess.run(  # noqa: S603  whichever git there is
            ["git", "archive", revision, "src"],  # noqa: S607
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise NoHistoryError(f"there is no git: {error}") from error
    if archived.returncode:
        raise NoHistoryError(f"git has no {revision} here: {archived.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def start(
    sources: Path | None, module: str, *arguments: str, stdout: int | IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Run a module of these tests with the sources of a commit; None is the present one."""
    environment = os.environ if sources is None else os.environ | {"PYTHONPATH": str(sources)}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stdout)  # noqa: S603  our own module
