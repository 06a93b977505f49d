"""What comes from the server leaves no holes in this process's memory that nothing else fits into."""

import asyncio
import ctypes
import random
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest

from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.session import connect
from tests.edges.remote.servers import certified
from tests.support.paths import ROOT
from tests.support.postgres.proxy import Encrypting, serving
from tests.support.postgres.server import postgres_url
from tests.support.running import run

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the heap is not glibc's, of 2.33 or newer"
)

SESSIONS = 3
WARM_UP = 500
ANSWERS = 2_500
KEPT = 300
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


async def _grown_elsewhere(url: str) -> int:
    """Return what `grown` says in a process of its own: the heap of a test run has holes into which everything fits."""
    code = "import asyncio, sys, tests.stores.test_postgres_memory as t; print(asyncio.run(t.grown(sys.argv[1])))"
    asked = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, url), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asked.communicate()
    assert asked.returncode == 0, err[-2_000:]
    return int(out)


def test_the_heap_does_not_grow_with_answers_of_the_server(tmp_path: Path) -> None:
    assert run(lambda: _grown_elsewhere(postgres_url(tmp_path))) < MOST_GROWN_BYTES


def test_the_heap_does_not_grow_with_answers_that_come_by_tls(tmp_path: Path) -> None:
    async def body() -> None:
        url = postgres_url(tmp_path)
        async with serving(Encrypting(url, certified("127.0.0.1", known=False)), url) as encrypted:
            assert await _grown_elsewhere(encrypted) < MOST_GROWN_BYTES

    run(body)
