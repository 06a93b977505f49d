"""A directory with an app in it, and the command line to try on it."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from mainspring.cli.group import commands

HERE = Path(__file__).parent
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}")
SECONDS = 60


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """What was written, with every time replaced by the same one."""
        return TIME.sub("2026-01-01 00:00:00.000", self.out)

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture(scope="session", autouse=True)
def shop(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The app, imported once for all tests of this process; its database is relative to each one's folder."""
    place = tmp_path_factory.mktemp("shop")
    shutil.copy(HERE / "shop.py", place)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(place))
        importlib.import_module("shop")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A directory with shop.py in it, which is the current one."""
    shutil.copy(HERE / "shop.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAINSPRING_APP", "shop:app")
    monkeypatch.setenv("MAINSPRING_ACTOR", "ann")
    monkeypatch.delenv("MAINSPRING_DEBUG", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run(folder: Path) -> Run:
    """The command line, called in this process."""
    return call


def call(*arguments: str, input: str | None = None) -> Ran:
    """Call the command line in this process."""
    result = CliRunner().invoke(commands, arguments, input=input, prog_name="mainspring")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


class Process:
    """The command line as a process of its own."""

    def __init__(self, arguments: Sequence[str], stdout: int, stderr: int, env: dict[str, str]) -> None:
        self.popen = subprocess.Popen(  # noqa: S603  our own command
            [sys.executable, "-m", "mainspring.cli", *arguments],
            stdout=stdout,
            stderr=stderr,
            text=True,
            env={**os.environ, **env},
        )
        self.lines: list[str] = []

    def until(self, text: str) -> None:
        """Read its log up to a line that holds a text."""
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            self.lines.append(line)
            if text in line:
                return
        raise AssertionError(f"it ended before {text!r}:\n{''.join(self.lines)}")

    def end(self) -> int:
        """Wait for its end, and return its exit code."""
        assert self.popen.stderr is not None
        self.lines += self.popen.stderr.readlines()
        return self.popen.wait(SECONDS)

    @property
    def log(self) -> str:
        return "".join(self.lines)


Start = Callable[..., Process]


@pytest.fixture
def start(folder: Path) -> Generator[Start]:
    """Start processes, none of which outlives the test."""
    started: list[Process] = []

    def start(*arguments: str, stdout: int = subprocess.DEVNULL, stderr: int = subprocess.PIPE, **env: str) -> Process:
        started.append(Process(arguments, stdout, stderr, env))
        return started[-1]

    yield start
    for process in started:
        if process.popen.poll() is None:
            process.popen.kill()
            process.popen.wait(SECONDS)
        for pipe in (process.popen.stderr, process.popen.stdout):
            if pipe is not None:
                pipe.close()


def order(order_id: str, amount: int) -> str:
    """The JSON of a PlaceOrder."""
    return json.dumps({"order_id": order_id, "amount": amount})
