"""Older code beside today's: where it is, and the states that it folds the same streams to.

Two versions of a module cannot be loaded into one process. So the old code runs in one of its own, which gets the
events of a stream and answers with the states; it opens no database.

    a folder, or a revision, which is written into a folder for as long as it is needed
        ─▶ OldCode ─▶ OldStates ══ events ═▶ old_process ══ states, as they would be stored ═▶ a walk
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import msgspec
from msgspec import Struct

from mainspring.analysis.what_if.comparison import Comparison
from mainspring.analysis.what_if.contrast import Stored
from mainspring.errors import OperationError
from mainspring.port.records import EventRow, InstanceRow

EVENTS_PER_QUESTION: Final = 200
"""So many states are on their way at a time at most."""
ANSWER_SECONDS: Final = 120.0
END_SECONDS: Final = 10.0
GIT_SECONDS: Final = 120.0
LENGTH_BYTES: Final = 4


class OldCode(Struct, frozen=True):
    """Where old code lies. `path` is where its process looks for modules; from below `instead_of` none may come."""

    name: str
    folder: str
    address: str
    path: tuple[str, ...]
    instead_of: str


class Part(Struct, frozen=True):
    """The next events of a stream; `row` with the first of them, and `ends` with the last."""

    events: Sequence[EventRow]
    row: InstanceRow | None = None
    ends: bool = False


class Past(Struct, frozen=True):
    """The states behind the steps of a part, by their versions; `why` says what kept the old code from its end."""

    states: dict[int, Stored] = {}
    why: str | None = None


class Answer(Struct, frozen=True):
    """What the old code makes of some parts, one each; `failed` says that nothing can be asked at all."""

    pasts: list[Past] = []
    failed: str | None = None


@contextmanager
def old_code(old: str, address: str) -> Generator[OldCode]:
    """Find old code and check that it can be loaded: a folder that stands for the current one, or a revision of git.

    A revision is written into a folder that is removed afterwards. `address` is `module:app`, as it is called there.
    """
    here = Path.cwd().resolve()
    if Path(old).is_dir():
        yield _loadable(old, address, here, Path(old).resolve(), here)
        return
    root = _git(here, old, "rev-parse", "--show-toplevel")
    if root is None:
        raise _unknown(old, f"{here} lies in no git checkout", "Name the folder of the old code")
    commit = _git(here, old, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{old}^{{commit}}")
    if commit is None:
        raise _unknown(old, f"git knows no such revision in {root}", "Fetch it, or name another one or a folder")
    with tempfile.TemporaryDirectory(prefix="mainspring-old-") as place:
        tree = Path(place).resolve() / "tree"
        # Not `git archive`, which leaves out what .gitattributes say; and with an index of its own, so that neither the
        # checkout nor its index is touched.
        index = {"GIT_INDEX_FILE": str(Path(place) / "index")}
        for command in (["read-tree", commit], ["checkout-index", "--all", f"--prefix={tree}/"]):
            if _git(Path(root), old, *command, env=index) is None:
                raise _unknown(old, f"git {command[0]} has failed", "Look at what it says above")
        yield _loadable(old, address, Path(root).resolve(), tree, here)


def _loadable(name: str, address: str, root: Path, old_root: Path, here: Path) -> OldCode:
    """Return old code that stands in `old_root` for all below `root`, if an app can be loaded from it."""
    folder = old_root / here.relative_to(root)
    if not folder.is_dir():
        raise _unknown(name, f"it has no folder {here.relative_to(root)}", "Go to the directory of the app")
    path = [str(folder), *_mapped(root, old_root)]
    old = OldCode(name, str(folder), address, tuple(dict.fromkeys(path)), str(root))
    OldStates(old).close()
    return old


def _mapped(root: Path, old_root: Path) -> Generator[str]:
    """Yield where Python looks for modules, with the old code instead of today's; libraries stay where they are."""
    for entry in sys.path:
        place = Path(entry).resolve()
        yield str(old_root / place.relative_to(root)) if is_below(place, root) and not is_library(place) else entry


def is_below(place: Path, folder: Path) -> bool:
    """Return True if a file lies in a folder.

    >>> is_below(Path("/shop/src/a.py"), Path("/shop"))
    True
    """
    return folder in (place, *place.parents)


def is_library(place: Path) -> bool:
    """Return True if something belongs to Python or to what was installed, and not to the code that is compared.

    >>> is_library(Path(os.__file__))
    True
    """
    return any(is_below(place, Path(folder).resolve()) for folder in sysconfig.get_paths().values())


def _git(place: Path, old: str, *arguments: str, env: dict[str, str] | None = None) -> str | None:
    """Return what git answers, None if it refuses."""
    try:
        done = subprocess.run(  # noqa: S603  only what is written here, and a revision behind --end-of-options
            ["git", "-C", str(place), *arguments],  # noqa: S607  the one that the user has
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if arguments[0] == "rev-parse" else None,
            text=True,
            env={**os.environ, **(env or {})},
            timeout=GIT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise _unknown(old, "there is no git here", "Name the folder of the old code") from None
    except subprocess.TimeoutExpired:
        raise _unknown(old, f"git took more than {GIT_SECONDS:.0f} s", "Name the folder of the old code") from None
    return done.stdout.strip() if done.returncode == 0 else None


def _unknown(old: str, why: str, do: str) -> OperationError:
    return OperationError(old, f"is no old code that could be compared with: {why}", f"{do}.")


class OldStates:
    """The states that old code comes to, asked for from a process of its own, which ends with its caller."""

    def __init__(self, old: OldCode) -> None:
        self._old = old
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", "-m", "mainspring.analysis.what_if.old_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=old.folder,
            # Nothing is written into a folder that is not ours.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        self._answers = msgspec.msgpack.Decoder(Answer)
        try:
            self._ask(old)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def pasts(self, parts: Sequence[Part]) -> list[Past]:
        """Return what the old code makes of some parts, at most EVENTS_PER_QUESTION events in all."""
        return self._ask(parts).pasts

    def close(self) -> None:
        """End the process."""
        process = self._process
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_SECONDS)

    def _ask(self, question: Sequence[Part] | OldCode) -> Answer:
        process = self._process
        assert process.stdin is not None  # noqa: S101  for the type checker
        assert process.stdout is not None  # noqa: S101
        with suppress(BrokenPipeError):  # it has ended: that there is no answer says so
            write_frame(process.stdin, question)
        if not connection.wait([process.stdout.fileno()], ANSWER_SECONDS):
            process.kill()
            raise self._failed(f"its process has not answered within {ANSWER_SECONDS:.0f} s")
        frame = read_frame(process.stdout)
        if frame is None:
            raise self._failed("its process ended without an answer")
        answer = self._answers.decode(frame)
        if answer.failed is not None:
            raise self._failed(answer.failed)
        return answer

    def _failed(self, why: str) -> OperationError:
        advice = f"See that {self._old.address} can be imported there with what is installed here."
        return OperationError(f"The code of {self._old.name}", f"cannot be asked: {why}", advice)


class Beside:
    """Passes the events of an instance to a walk, and first to old code, if there is any, to compare the states."""

    def __init__(self, walk: Comparison, row: InstanceRow, old: OldStates | None) -> None:
        self.walk = walk
        self.old = old
        self._row: InstanceRow | None = row

    def take(self, rows: Sequence[EventRow], *, ends: bool = False) -> None:
        """Take the next events; `ends` says that there are no more."""
        walk, old = self.walk, self.old
        if old is None:
            walk.take(rows)
        else:
            for begin in range(0, len(rows) or 1, EVENTS_PER_QUESTION):
                events = rows[begin : begin + EVENTS_PER_QUESTION]
                last = ends and begin + EVENTS_PER_QUESTION >= len(rows)
                hold(walk, old.pasts([Part(events, self._row, last)])[0])
                self._row = None
                walk.take(events)
        if ends:
            walk.end()


def hold(walk: Comparison, past: Past) -> None:
    """Compare the next events of a walk with what old code makes of them."""
    walk.hold_against(past.states)
    walk.uncompared = None if past.why is None else f"the old code could not fold it to the end: {past.why}"


def write_frame(pipe: IO[bytes], value: Any) -> None:
    """Write a value, with its length before it."""
    body = msgspec.msgpack.encode(value)
    pipe.write(len(body).to_bytes(LENGTH_BYTES, "big"))
    pipe.write(body)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes | None:
    """Return the next value as it was written; None where there is none any more."""
    length = pipe.read(LENGTH_BYTES)
    body = pipe.read(int.from_bytes(length, "big")) if len(length) == LENGTH_BYTES else b""
    return body or None
