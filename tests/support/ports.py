"""Ports for the servers that tests start, and start again.

A port that the system gives to a probe may be given to the next client as soon as the probe is closed, and a server
that is killed and started again would find it taken. So they come from below the range of the system's own, and a lock
in the directory of temporary files keeps each for the process that asked until that ends.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Final

LOWEST: Final = 10_000
HIGHEST: Final = 32_767
TRIES: Final = 1_000

_locks: list[int] = []


def free_port() -> int:
    """Return a port on 127.0.0.1 that nobody listens on, and that nobody else is given while this process lives."""
    folder = Path(tempfile.gettempdir()) / "mainspring-test-ports"
    folder.mkdir(mode=0o777, exist_ok=True)
    highest = min(HIGHEST, _first_of_the_systems_own() - 1)
    for port in random.SystemRandom().sample(range(LOWEST, highest + 1), TRIES):
        lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT, 0o666)
        if _taken(lock) or _in_use(port):
            os.close(lock)
            continue
        _locks.append(lock)
        return port
    raise RuntimeError(f"{TRIES} ports between {LOWEST} and {highest} are in use")


def _first_of_the_systems_own() -> int:
    """Return from where on the system gives ports to clients; only Linux tells, and there it can be changed."""
    told = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(told.read_text().split()[0]) if told.exists() else HIGHEST + 1
    return first if first > LOWEST + TRIES else HIGHEST + 1


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
