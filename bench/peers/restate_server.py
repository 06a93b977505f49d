"""A Restate server with an empty folder, and the Python service that it calls, as processes of this run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

from bench.peers import restate_service
from bench.peers.shared import Asked, NotDoneError, must, rss_mb, until

START_SECONDS = 60.0
STOP_SECONDS = 10.0
ADDRESS = "127.0.0.1"
# README.md has the reason for each.
BEST_SERVER = {
    "RESTATE_DEFAULT_NUM_PARTITIONS": "4",
    "RESTATE_BIFROST__DEFAULT_PROVIDER": "local",
    "RESTATE_DEFAULT_JOURNAL_RETENTION": "0s",
    "RESTATE_WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT": "20000",
}
BEST_WORKERS = 2
FORGETFUL = ("rocksdb-disable-wal =", "rocksdb-disable-wal-fsync =")


class Restate:
    """Both processes, registered with each other; ended when this is left."""

    def __init__(self, run: Asked, ledger: Path | None = None) -> None:
        self._run = run
        self._ledger = ledger
        self._ingress, self._admin, self._node, self._bind = _free_ports(4)
        self._server: subprocess.Popen[bytes] | None = None
        self._service: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._check_durable()
            self._server = self._started([self._binary, "--no-logo"], self._server_environment, "server")
            self.start_service()
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._service, self._server):
            if process is not None:
                _end(process, signal.SIGTERM)

    @property
    def ingress(self) -> int:
        """The port that takes invocations."""
        return self._ingress

    @property
    def data(self) -> Path:
        return self._run.path / "restate"

    @property
    def version(self) -> str:
        return subprocess.run(  # noqa: S603  the server that was installed for this
            [self._binary, "--version"], capture_output=True, text=True, check=True
        ).stdout.split()[-1]

    def start_service(self) -> None:
        environment = {"PYTHONPATH": str(Path(__file__).parent.parent.parent)}
        environment[restate_service.BIND] = f"{ADDRESS}:{self._bind}"
        if self._ledger is not None:
            environment[restate_service.LEDGER] = str(self._ledger)
        self._service = self._started(self._service_command, environment, "service")

    def hold_service(self) -> None:
        """Let the service stand still."""
        assert self._service is not None
        os.killpg(self._service.pid, signal.SIGSTOP)

    def let_service_go(self) -> None:
        assert self._service is not None
        os.killpg(self._service.pid, signal.SIGCONT)

    def kill_service(self) -> None:
        """Kill -9 it with all its workers."""
        assert self._service is not None
        _end(self._service, signal.SIGKILL)

    def unfinished(self) -> int:
        """Return how many invocations the server has not completed."""
        return self.count("status <> 'completed'")

    def count(self, condition: str) -> int:
        """Return how many invocations the server knows of that are so."""
        query = f"SELECT count(1) AS found FROM sys_invocation WHERE {condition}"  # noqa: S608  our own condition
        return self._asked("/query", {"query": query})["rows"][0]["found"]

    def until_finished(self) -> None:
        until(lambda: -self.unfinished(), 0)

    @property
    def rss_mb(self) -> float:
        """The peak of memory of both, with the service's own processes."""
        assert self._server is not None
        assert self._service is not None
        return rss_mb([self._server.pid, *_group(self._service.pid)])

    # ---- how they are started

    @property
    def _binary(self) -> str:
        found = sorted(Path(self._run.tools).glob("server/node_modules/@restatedev/*/bin/restate-server"))
        if not found:
            raise NotDoneError("the server's package has no binary for this machine")
        return str(found[0])

    @property
    def _server_environment(self) -> dict[str, str]:
        settings = {
            "RESTATE_BASE_DIR": str(self.data),
            "RESTATE_NODE_NAME": "bench",
            "RESTATE_BIND_IP": ADDRESS,
            "RESTATE_BIND_PORT": str(self._node),
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_INGRESS__BIND_PORT": str(self._ingress),
            "RESTATE_ADMIN__BIND_PORT": str(self._admin),
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_LOG_FILTER": "error",
        }
        return settings | (BEST_SERVER if self._run.best else {}) | self._run.knobs

    @property
    def _service_command(self) -> list[str]:
        module = restate_service.__name__
        if not self._run.best:
            return [sys.executable, "-m", module]
        served = ["--interface", "asginl", "--http", "2", "--no-ws", "--loop", "uvloop", "--log-level", "error"]
        streams = ["--http2-max-concurrent-streams", "100000"]
        place = ["--host", ADDRESS, "--port", str(self._bind), "--workers", str(BEST_WORKERS)]
        return [sys.executable, "-m", "granian", *served, *streams, *place, f"{module}:app"]

    def _started(self, command: list[str], environment: dict[str, str], name: str) -> subprocess.Popen[bytes]:
        with (self._run.path / f"{name}.log").open("ab") as log:
            # A session of its own: its processes are ended together, and nobody else's.
            return subprocess.Popen(  # noqa: S603  what was installed for this
                command, env=os.environ | environment, stdout=log, stderr=log, start_new_session=True
            )

    def _check_durable(self) -> None:
        """Ask the server for its settings: each log and store of it must be on the disk before it answers."""
        told = subprocess.run(  # noqa: S603  the server that was installed for this
            [self._binary, "--dump-config"],
            env=os.environ | self._server_environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        settings = {line.strip() for line in told.splitlines() if line.strip().startswith(FORGETFUL)}
        must("settings for fsync", settings, {f"{name} false" for name in FORGETFUL})

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://{ADDRESS}:{self._ingress}/restate/health"):
                    self._asked("/deployments", {"uri": f"http://{ADDRESS}:{self._bind}", "force": True})
                    return
            except OSError as reason:
                if time.monotonic() > deadline:
                    raise NotDoneError(f"the server was not ready after {START_SECONDS:.0f} s: {reason}") from reason
                time.sleep(0.05)  # a server tells nobody when it is ready: it has to be asked

    def _asked(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"http://{ADDRESS}:{self._admin}{path}",
            json.dumps(body).encode(),
            {"content-type": "application/json", "accept": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310  our own
            return json.load(answer)


def _end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """End a process and those of its group, killed if they do not."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGCONT)
        os.killpg(process.pid, how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _group(leader: int) -> list[int]:
    """Return the processes of a group."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[2]) == leader:
            found.append(int(path.parent.name))
    return found


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((ADDRESS, 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports
