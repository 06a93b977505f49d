"""What tests let processes do. A module of its own: each process imports it, and so it imports little."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from mainspring import DoNotRetryError
from tests.engine.jobs import Done, Work

FOLDER = "MAINSPRING_TEST_FOLDER"


def note(text: str) -> int:
    """Write a line with this process's number, and return how many there are now."""
    path = Path(os.environ[FOLDER]) / "notes"
    with path.open("a") as file:
        file.write(f"{os.getpid()} {text}\n")
    return path.read_text().count("\n")


def noted(command: Work) -> Done:
    note(f"part {command.part}")
    return Done(command.id, command.part)


def hangs_at_first(command: Work) -> Done:
    if note(f"part {command.part}") == 1:
        time.sleep(600)  # hangs, until its process is ended
    return Done(command.id, command.part)


def hangs(command: Work) -> Done:
    note("hangs")
    time.sleep(600)  # hangs, until its process is ended
    return Done(command.id, command.part)


def with_files(command: Work) -> Done:
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            note(f"file {each.readlink()}")
    return Done(command.id, command.part)


def many(commands: list[Work]) -> list[Done | Exception]:
    note(f"batch of {len(commands)}")
    return [ValueError("odd") if each.part == 1 else Done(each.id, each.part) for each in commands]


class OddError(Exception):
    """Cannot be pickled as it is: it keeps other arguments than it takes."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


class OpenError(Exception):
    """Holds what no other process can have."""

    def __init__(self) -> None:
        super().__init__("a lock")
        self.lock = threading.Lock()


def odd(_: Work) -> NoReturn:
    note("odd")
    raise OddError(7, "no")


def does(command: Any) -> Any:
    return command()


def raises_odd() -> NoReturn:
    raise OddError(7, "no")


def raises_open() -> NoReturn:
    raise OpenError


def exits() -> NoReturn:
    sys.exit(3)


def dies() -> NoReturn:
    os._exit(3)


def refuses() -> NoReturn:
    raise DoNotRetryError("never")


def returns_a_lock() -> Any:
    return threading.Lock()


def shadowed(command: Work) -> Done:  # pyright: ignore[reportRedeclaration]  that is the point
    raise NotImplementedError


shadowed_one = shadowed


def shadowed(command: Work) -> Done:
    return Done(command.id, command.part)
