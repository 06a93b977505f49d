"""What comes from the server leaves no holes in this process's memory that nothing else fits into."""

import ctypes
import random
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest

from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.session import connect
from tests.support.paths import ROOT
from tests.support.postgres.server import postgres_url

SESSIONS = 3
WARM_UP = 500
ANSWERS = 2_500
KEPT = 300
TEST_SECONDS = 120
# With asyncio's own size it grew by 6.2 MB, with ours by 0.5 MB.
MOST_GROWN_BYTES = 2_000_000


class MallocInfo(ctypes.Structure):
    """What glibc tells of its heap; `arena` is how large it is, with all its holes."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in _names]


def heap_bytes() -> int:
    """Return the size of the heap."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallocInfo
    return mallinfo().arena


async def grown(url: str) -> int:
    """Return by how much the heap grows while answers come, and things of their size are kept for a while."""
    sessions = [await connect(Address(url)) for _ in range(SESSIONS)]
    kept: deque[bytearray] = deque(maxlen=KEPT)
    chance, before = random.Random(1), 0  # noqa: S311  no secret
    for number in range(WARM_UP + ANSWERS):
        if number == WARM_UP:
            before = heap_bytes()
        await chance.choice(sessions).rows("SELECT repeat('x', $1::int)", chance.randrange(5_000))
        kept.append(bytearray(chance.randrange(600, 4_000)))
    after = heap_bytes()
    for session in sessions:
        await session.close()
    return after - before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the heap is not glibc's, of 2.33 or newer")
def test_the_heap_does_not_grow_with_answers_of_the_server(tmp_path: Path) -> None:
    # In a process of its own: the heap of a test run is full of holes into which everything fits.
    code = "import asyncio, sys, tests.stores.test_postgres_memory as t; print(asyncio.run(t.grown(sys.argv[1])))"
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-c", code, postgres_url(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TEST_SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    assert int(done.stdout) < MOST_GROWN_BYTES
