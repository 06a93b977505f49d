"""What one run is asked to do; it travels to the run's own process as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct

from mainspring.app.tuning import tune_process

STORES = ("sqlite", "postgres", "memory")


class Settings(Struct, frozen=True):
    """`folder` is fresh and the run's own; so is `schema` on a server. `chunk` is how many messages are sent together.

    `tuned` makes the process what `mainspring worker` makes of its own; a program that only opens an app is not.
    `server` is a server's URL and `server_pid` its first process, where it is known. With `workers` the run's own
    process is a client, and so many worker processes do the work. `axis` is the one along which growth is measured.
    """

    folder: str
    store: str = "sqlite"
    n: int = 1
    chunk: int = 1_000
    batch: int = 200
    workers: int = 0
    tuned: bool = False
    switch_interval: float | None = None
    server: str = ""
    server_pid: int | None = None
    schema: str = "bench"
    axis: str = "all"

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def url(self) -> str:
        match self.store:
            case "memory":
                return "memory://"
            case "postgres":
                return f"{self.server}{'&' if '?' in self.server else '?'}schema={self.schema}"
            case _:
                return f"sqlite:///{self.path.absolute() / 'bench.db'}"

    @property
    def durable(self) -> bool:
        return self.store != "memory"

    def apply(self) -> None:
        """Set what belongs to the whole process."""
        if self.tuned:
            tune_process()
        if self.switch_interval is not None:
            sys.setswitchinterval(self.switch_interval)
