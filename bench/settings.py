"""What one run is asked to do; it travels to the run's own process as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct

from mainspring.app.tuning import tune_process

STORES = ("sqlite", "memory")


class Settings(Struct, frozen=True):
    """`folder` is fresh and the run's own. `chunk` is how many messages a client sends together.

    `tuned` makes the process what `mainspring worker` makes of its own; a program that only opens an app is not.
    """

    folder: str
    store: str = "sqlite"
    n: int = 1
    chunk: int = 1_000
    batch: int = 200
    tuned: bool = False
    switch_interval: float | None = None

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def url(self) -> str:
        return "memory://" if self.store == "memory" else f"sqlite:///{self.path.absolute() / 'bench.db'}"

    @property
    def durable(self) -> bool:
        return self.store != "memory"

    def apply(self) -> None:
        """Set what belongs to the whole process."""
        if self.tuned:
            tune_process()
        if self.switch_interval is not None:
            sys.setswitchinterval(self.switch_interval)
