"""Where a bench may measure what is durable."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from bench.places import on_disk


@pytest.fixture
def disk() -> Generator[Path]:
    """Give a folder on a disk: a test's own may be in memory, where no bench of what is durable goes."""
    with tempfile.TemporaryDirectory(dir=on_disk(None)) as folder:
        yield Path(folder)
