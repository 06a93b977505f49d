"""Brokers of a drill's own, which it may kill: set to sync their logs, so that what they confirmed survives."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from tests.edges.brokers.servers import Server, Unavailable, nats_server
from tests.support.ports import free_port

START_SECONDS: Final = 60
LOOK_SECONDS: Final = 0.05
DEBIANS_RABBITMQ: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class Killable(Protocol):
    """What a drill does to a server."""

    def start(self) -> None:
        """Start it, and return when it is ready."""
        ...

    def kill(self) -> None:
        """End it at once, as a crash does."""
        ...


class RabbitMQ:
    """A node of its own, with a port mapper of its own: it knows nothing of one that the machine runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self._mapper_port, self._distribution_port = free_port(), free_port(), free_port()
        self._node: subprocess.Popen[bytes] | None = None
        self._mapper: subprocess.Popen[bytes] | None = None
        self._log = folder / "server.log"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plugins").write_text("[].\n")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}/"

    def start(self) -> None:
        if self._mapper is None:
            self._mapper = self._begun(_program("epmd"))
        self._node = self._begun(_rabbitmq())
        ends = time.monotonic() + START_SECONDS
        while not self._talks():
            if self._node.poll() is not None or time.monotonic() > ends:
                raise Unavailable(f"RabbitMQ did not start: {self._log.read_text(errors='replace')[-500:]}")
            time.sleep(LOOK_SECONDS)  # a server tells nobody when it is ready: it has to be asked

    def kill(self) -> None:
        node, self._node = self._node, None
        _kill(node)

    def end(self) -> None:
        """Kill the port mapper too."""
        self.kill()
        mapper, self._mapper = self._mapper, None
        _kill(mapper)

    def _begun(self, program: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            # In a group of its own, as it starts others.
            return subprocess.Popen(  # noqa: S603  a program of the system
                [program],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=dict(self._environment()),
                start_new_session=True,
            )

    def _environment(self) -> Mapping[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "HOME": str(self._folder),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"test-{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "logs"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "none"),
            "RABBITMQ_CONF_ENV_FILE": str(self._folder / "none"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _talks(self) -> bool:
        """Tell whether it answers in its protocol: it listens long before that."""
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection:
                connection.settimeout(1)
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return connection.recv(1) == b"\x01"
        except OSError:
            return False


@contextmanager
def nats_cluster(size: int = 3) -> Generator[Sequence[Server]]:
    """Have a cluster of NATS servers, each of which knows where the others are."""
    routes = [free_port() for _ in range(size)]
    others = ",".join(f"nats://127.0.0.1:{port}" for port in routes)
    servers = [
        nats_server(
            *("--name", f"n{number}", "--cluster_name", "drill"),
            *("--cluster", f"nats://127.0.0.1:{port}", "--no_advertise", "--routes", others),
            synced=True,
        )
        for number, port in enumerate(routes, 1)
    ]
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.remove()


def _rabbitmq() -> str:
    # Debian's wrapper changes the user and the environment; the program itself does not.
    return str(DEBIANS_RABBITMQ) if DEBIANS_RABBITMQ.exists() else _program("rabbitmq-server")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"this machine has no {name}")
    return found


def _kill(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
