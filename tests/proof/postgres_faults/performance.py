"""One performance of a fault: on a server, for so many rounds, judged."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.proof.postgres_faults.faults import Fault
from tests.proof.postgres_faults.stage import Outcome, perform, staged
from tests.support.postgres.server import Server


def performed(fault: Fault, server: Server, folder: Path, rounds: int, seed: int) -> Outcome:
    """Let a fault happen, and return how it went."""

    async def main() -> Outcome:
        stage = await staged(server, folder, seed)
        async with fault.around(stage) as ways:
            return await perform(stage, lambda stage: fault.trouble(stage, rounds), ways)

    return asyncio.run(main())


@contextmanager
def serving(fault: Fault | None = None) -> Generator[Server]:
    """Have a server of one's own: the one that a fault needs, or any."""
    server = Server(settings={"fsync": "off"}) if fault is None or fault.server is None else fault.server()
    try:
        server.start()
        yield server
    finally:
        server.remove()
