"""Processes that want the machine for themselves: one for each core, and one that writes and syncs a file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

# They end by themselves when whoever started them is gone, however that came about.
_CORE: Final = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"
_DISK: Final = """
import os, sys
parent, block = os.getppid(), os.urandom(1 << 20)
with open(sys.argv[1], "wb", buffering=0) as file:
    while os.getppid() == parent:
        file.seek(0)
        for _ in range(32):
            file.write(block)
        os.fsync(file)
"""


@contextmanager
def busy() -> Generator[None]:
    """Keep both the cores and the disk busy meanwhile."""
    with tempfile.NamedTemporaryFile(prefix="mainspring-steady-") as file:
        programs = [(_CORE,)] * (os.cpu_count() or 1) + [(_DISK, file.name)]
        processes = [subprocess.Popen([sys.executable, "-c", *program]) for program in programs]  # noqa: S603  ours
        try:
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait()
