"""`manage.py mainspring worker`: mainspring's own command line, for the app that the settings name."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand  # pyright: ignore[reportMissingTypeStubs]  it has none

ADDRESS: Final = "mainspring.frameworks.django.worker:app"


class Command(BaseCommand):
    """Hands over to mainspring's own command line, in the same process, so that signals reach it."""

    help = "Run a command of mainspring for MAINSPRING_APP: worker, stats, studio, doctor, …"

    def run_from_argv(self, argv: list[str]) -> None:
        """Take all that follows as it is: the options are mainspring's, not Django's."""
        self.execute(words=argv[2:] or ["--help"])

    def execute(self, *_args: Any, **given: Any) -> None:
        """Become that command."""
        # Before the command, where every command takes --app.
        arguments = [sys.executable, "-m", "mainspring.cli", "--app", ADDRESS, *given["words"]]
        paths = [str(Path(sys.path[0]).resolve()), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        sys.stdout.flush()
        os.execve(sys.executable, arguments, environment)  # noqa: S606  ourselves
