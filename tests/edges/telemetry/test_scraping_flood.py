"""A port for metrics that more people come to than the process has files for."""

import asyncio
import logging
import resource
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from mainspring.telemetry.logs import LINES
from mainspring.telemetry.scraping import Scraped
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE_SECONDS

FILES = 64
CALLERS = 200
SCRAPES = 5


async def _exposed(_: str) -> tuple[bytes, str]:
    return b"all_is_well 1\n", "text/plain"


async def serve() -> None:
    """Serve until the standard input ends."""
    service = Scraped(_exposed)
    await service.start()
    sys.stdout.write(f"{service.address}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await service.stop()


@contextmanager
def _serving(log: Path) -> Generator[str]:
    """Serve in a process of its own that may open few files."""
    limit = (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    code = "import asyncio, tests.edges.telemetry.test_scraping_flood as t; asyncio.run(t.serve())"
    with (
        log.open("w") as errors,
        subprocess.Popen(  # noqa: S603  our own code
            [sys.executable, "-c", code],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),  # noqa: PLW1509  nothing else runs
        ) as process,
    ):
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def test_those_who_ask_nothing_cost_neither_the_scraper_its_answer_nor_the_log_its_room(tmp_path: Path) -> None:
    with _serving(tmp_path / "log") as address:
        place = urlsplit(address)
        silent = [socket.create_connection((place.hostname, place.port), PATIENCE_SECONDS) for _ in range(CALLERS)]
        for _ in range(SCRAPES):
            assert httpx.get(address, timeout=PATIENCE_SECONDS).text == "all_is_well 1\n"
            silent += [socket.create_connection((place.hostname, place.port), PATIENCE_SECONDS) for _ in range(20)]
        for each in silent:
            each.close()
    told = (tmp_path / "log").read_text()
    assert "out of system resource" not in told, told[-2_000:]


async def complain() -> None:
    """Log what clients cause, while it is served and after."""
    service = Scraped(_exposed)
    await service.start()
    for _ in range(2 * LINES):
        logging.getLogger("asyncio").error("socket.accept() out of system resource")
    await service.stop()
    logging.getLogger("asyncio").error("socket.accept() out of system resource")


def test_while_it_serves_a_log_has_few_lines_of_what_clients_cause() -> None:
    # In a process of its own: another server in this one, as that of the studio's tests, would count the same lines.
    code = "import asyncio, tests.edges.telemetry.test_scraping_flood as t; asyncio.run(t.complain())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603  ours
    assert done.stderr.count("out of system resource") == LINES + 1
