"""Exit codes that mean something, and errors as one line."""

from __future__ import annotations

import os
from typing import Final

import click

from mainspring.errors import MainspringError, NoSuchInstanceError, NoSuchTaskError

DEBUG: Final = "MAINSPRING_DEBUG"
REFUSED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3

EXIT_CODES: Final = {
    0: "done, and nothing is wrong",
    REFUSED: "refused, or something is wrong",
    USAGE: "the command was not understood, or the app cannot be loaded",
    NOT_FOUND: "there is no such instance, task or dead letter",
}


class MisuseError(click.ClickException):
    """What was written names nothing that there is, or cannot be read. Unlike a UsageError it is one line.

    >>> MisuseError("no").exit_code
    2
    """

    exit_code = USAGE


class RefusedError(click.ClickException):
    """What was asked for cannot be done now.

    >>> RefusedError("no").exit_code
    1
    """

    exit_code = REFUSED


class NotFoundError(click.ClickException):
    """There is no such thing.

    >>> NotFoundError("no").exit_code
    3
    """

    exit_code = NOT_FOUND


def debugging() -> bool:
    """Tell whether errors are to be shown with their tracebacks."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def told(error: MainspringError) -> click.ClickException:
    """Return an error as the one line and the exit code that the command ends with.

    >>> told(NoSuchInstanceError("Counter/c-9")).exit_code
    3
    """
    line = one_line(str(error))
    return NotFoundError(line) if isinstance(error, NoSuchInstanceError | NoSuchTaskError) else RefusedError(line)


def one_line(text: str) -> str:
    r"""Return a text of several lines as one.

    >>> one_line("no case.\n  message: 1")
    'no case. message: 1'
    """
    return " ".join(line.strip() for line in text.splitlines() if line.strip())
