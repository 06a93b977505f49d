"""Exit codes that mean something, and errors as one line."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from mainspring.errors import MainspringError, NoSuchInstanceError, NoSuchNameError, NoSuchTaskError, visible

DEBUG: Final = "MAINSPRING_DEBUG"
REFUSED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3

EXIT_CODES: Final = {
    0: "done, and nothing is wrong",
    REFUSED: "refused, or something is wrong",
    USAGE: "the command was not understood, or the app cannot be loaded",
    NOT_FOUND: "there is no such instance, task, dead letter, handler, workflow, schedule, read model, source or reply",
}


class ToldError(click.ClickException):
    r"""Says what is wrong in one line, in which nothing can hide or play with the terminal.

    >>> ToldError("no \x1b[31mway").message
    'no \\x1b[31mway'
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class MisuseError(ToldError):
    """What was written names nothing that there is, or cannot be read. Unlike a UsageError it is one line.

    >>> MisuseError("no").exit_code
    2
    """

    exit_code = USAGE


class RefusedError(ToldError):
    """What was asked for cannot be done now.

    >>> RefusedError("no").exit_code
    1
    """

    exit_code = REFUSED


class NotFoundError(ToldError):
    """There is no such thing.

    >>> NotFoundError("no").exit_code
    3
    """

    exit_code = NOT_FOUND


@contextmanager
def writing(path: Path) -> Generator[None]:
    """Report in one line why a file or a directory cannot be written."""
    try:
        yield
    except OSError as error:
        raise RefusedError(f"{path} cannot be written: {error.strerror or error}.") from None


def debugging() -> bool:
    """Return True if errors are to be shown with their tracebacks."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def told(error: MainspringError) -> click.ClickException:
    """Return an error as the one line and the exit code that the command ends with.

    >>> told(NoSuchInstanceError("Counter/c-9")).exit_code
    3
    """
    line, missing = str(error), isinstance(error, NoSuchInstanceError | NoSuchNameError | NoSuchTaskError)
    return NotFoundError(line) if missing else RefusedError(line)


def one_line(text: str) -> str:
    r"""Return a text of several lines as one, with what cannot be seen made visible.

    >>> one_line("no case.\n  message: 1")
    'no case. message: 1'
    """
    line = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return visible(line)
