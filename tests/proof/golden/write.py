"""`python -m tests.proof.golden.write REVISION`: keep the databases that a commit leaves, one for each store.

The commit's sources are taken from git. A workload with everything in it runs with them until it is killed; what is
then in the database is kept in tests/proof/golden/databases, under the version of its schema, with the streams and
states as that commit reads them. To be run for the last commit before a schema migration, and for each release.
"""

from __future__ import annotations

import argparse
import asyncio
import lzma
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import msgspec

from tests.proof.golden.golden_app import made
from tests.proof.golden.restore import FOLDER
from tests.proof.golden.revisions import checked_out, start
from tests.support.postgres.server import Server

LONGEST_SECONDS: Final = 120
_VERSION: Final = "SELECT max(version) FROM {}schema_migrations"


def ran(sources: Path, url: str, folder: Path) -> dict[str, Any]:
    """Run the workload, and return what must be found again: all streams, and what was done by then."""
    effects = folder / "effects.jsonl"
    killed = start(sources, "tests.proof.golden.workload", url, str(effects)).wait(LONGEST_SECONDS)
    if killed != -signal.SIGKILL:
        raise SystemExit(f"the workload ended with {killed} before it was killed")
    reading = start(sources, "tests.proof.golden.reading", url, stdout=subprocess.PIPE)
    found, _ = reading.communicate(timeout=LONGEST_SECONDS)
    if reading.returncode:
        raise SystemExit("what the workload left could not be read")
    return {"instances": msgspec.json.decode(found), "effects": made(effects)}


def keep(store: str, version: int, suffix: str, database: bytes, expected: dict[str, Any]) -> None:
    FOLDER.mkdir(exist_ok=True)
    kept = FOLDER / f"{store}-{version}.{suffix}.xz"
    kept.write_bytes(lzma.compress(database, preset=9))
    kept.with_name(f"{store}-{version}.json.xz").write_bytes(lzma.compress(msgspec.json.encode(expected), preset=9))
    sys.stdout.write(f"{kept.name}: {kept.stat().st_size:,} bytes, {len(expected['instances'])} instances\n")


def write_sqlite(sources: Path, folder: Path) -> None:
    expected = ran(sources, f"sqlite:///{folder / 'golden.db'}", folder)
    connection = apsw.Connection(str(folder / "golden.db"))
    version = connection.execute(_VERSION.format("")).get
    # Without its log, and as small as it can be.
    connection.execute("VACUUM INTO ?", (str(folder / "small.db"),))
    connection.close()
    keep("sqlite", version, "db", (folder / "small.db").read_bytes(), expected)


def write_postgres(sources: Path, folder: Path) -> None:
    server = Server()
    try:
        server.start()
        expected = ran(sources, server.url, folder)
        dump = server.dump("mainspring")
        version = asyncio.run(_version(server.url))
    finally:
        server.remove()
    # What is no SQL is for psql alone, and a restore needs none.
    lines = [
        line for line in dump.decode().splitlines() if not re.match(r"\\|--|SET |SELECT pg_catalog.set_config", line)
    ]
    keep("postgres", version, "sql", "\n".join(line for line in lines if line).encode(), expected)


async def _version(url: str) -> int:
    library: Any = asyncpg
    connection = await library.connect(url)
    try:
        return await connection.fetchval(_VERSION.format("mainspring."))
    finally:
        await connection.close()


WRITERS: Final[dict[str, Callable[[Path, Path], None]]] = {"sqlite": write_sqlite, "postgres": write_postgres}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.golden.write",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("revision", help="the commit whose database is kept, as git names it")
    parser.add_argument("--store", choices=sorted(WRITERS), action="append", help="only this one (default: all)")
    asked = parser.parse_args()
    for store in asked.store or WRITERS:
        with tempfile.TemporaryDirectory(prefix="mainspring-golden-") as folder:
            WRITERS[store](checked_out(asked.revision, Path(folder) / "commit"), Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
