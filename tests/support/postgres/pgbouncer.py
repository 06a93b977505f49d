"""PgBouncer in transaction mode before a server, where the machine has one."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.ports import free_port
from tests.support.postgres.server import _account

START_SECONDS: Final = 60
SETTINGS: Final = """
[databases]
* = host=127.0.0.1 port={server}{forced}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = {auth}
auth_file = {users}
pool_mode = transaction
default_pool_size = 3
"""


@contextmanager
def pgbouncer(server: int | None, users: Sequence[str] = ()) -> Generator[int]:
    """Return the port of a pooler, for these users or, if there are none, for everybody as `postgres`."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("no pgbouncer on the PATH: make poolers")
    account, port = _account(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # PgBouncer refuses to be root
        known = Path(folder) / "users.txt"
        known.write_text("".join(f'"{user}" ""\n' for user in users))
        auth, forced = ("trust", "") if users else ("any", " user=postgres")
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(SETTINGS.format(server=server, port=port, auth=auth, forced=forced, users=known))
        process = subprocess.Popen(  # noqa: S603  the program that was found
            [program, "-q", settings], user=None if account is None else account.pw_uid, stderr=subprocess.DEVNULL
        )
        try:
            _wait_for(port)
            yield port
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _wait_for(port: int) -> None:
    async def connected() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()

    ends = time.monotonic() + START_SECONDS
    while True:
        try:
            return asyncio.run(connected())
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.02)  # it does not tell when it listens
