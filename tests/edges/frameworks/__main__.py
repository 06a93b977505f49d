"""`python -m tests.edges.frameworks --rounds 100`: programs, workers and servers killed at many moments."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from tests.edges.frameworks.killing import killed_posters, killed_server
from tests.edges.frameworks.support import dsn_of, execute
from tests.support.postgres.server import server_url

ROUND_SECONDS = 300


async def rounds(count: int, seed: int) -> None:
    """Run both proofs so often, each round with another load."""
    chance = random.Random(seed)  # noqa: S311  no secret
    server, name = server_url(), f"shop_{os.getpid()}"
    await execute(server, f"CREATE DATABASE {name}")
    database = urlsplit(dsn_of(server))._replace(path=f"/{name}").geturl()
    try:
        for number in range(1, count + 1):
            wanted = chance.randrange(1, 200)
            async with asyncio.timeout(ROUND_SECONDS):
                posted = await killed_posters(database, wanted)
                with TemporaryDirectory() as folder:
                    served = await killed_server(Path(folder), wanted, reload=number % 2 == 1)
            sys.stdout.write(f"round {number}: posted {posted}; served {served}\n")
    finally:
        await execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.edges.frameworks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    given = parser.parse_args()
    sys.stdout.write(f"seed {given.seed}\n")
    asyncio.run(rounds(given.rounds, given.seed))
    sys.stdout.write(
        f"## Web frameworks\n{given.rounds} rounds: programs that post, workers and servers killed; every row has its "
        "order, and every order its row.\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
