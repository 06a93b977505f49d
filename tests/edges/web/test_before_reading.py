"""What is asked before anything of a request is read: for which host it is, and who sends it. Over real sockets."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mainspring.telemetry.scraping import Scraped
from mainspring.web.access import PERMITS
from mainspring.web.api import api
from mainspring.web.guard import LOOPBACK
from mainspring.web.server import Server, bound
from tests.edges.web.support import SECRETS, counters, tokens
from tests.edges.web.test_access import EVERYBODY, NEEDED, path_of
from tests.support.running import run
from tests.support.waiting import until

OURS = b"Host: 127.0.0.1\r\n"
NOT_ONE_NAME = (
    b"Host: 127.0.0.1\r\nHost: evil.example.com\r\n",
    b"Host: 127.0.0.1:1\r\nHost: evil.example.com\r\n",
    b"Host: evil.example.com\r\nHost: 127.0.0.1\r\n",
    b"Host: 127.0.0.1:1, evil.example.com\r\n",
    b"Host: 127.0.0.1:evil.example.com\r\n",
    b"Host: [::1]evil.example.com\r\n",
    b"Host: [::1\r\n",
    b"Host: localhost:80:80\r\n",
    b"Host: evil.example.com@localhost\r\n",
    b"Host: localhost/evil.example.com\r\n",
)


@asynccontextmanager
async def listening(folder: Path, *, hosts: frozenset[str] | None = LOOPBACK) -> AsyncGenerator[int]:
    """Serve an app that asks for tokens, and return its port."""
    app = counters(folder)
    async with app:
        server, ready = Server(api(app, start=False, access=tokens(), hosts=hosts)), asyncio.Event()
        with bound("127.0.0.1", 0) as made:
            serving = asyncio.create_task(server.run_on(made, ready))
            await ready.wait()
            try:
                yield made.getsockname()[1]
            finally:
                server.stop()
                await serving


async def answered(port: int, head: bytes, body: bytes = b"") -> tuple[int, bytes]:
    """Send as much of a request as is given, and return the status and the body of what comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head + b"Connection: close\r\n\r\n" + body)
        first = await reader.readuntil(b"\r\n\r\n")
        return int(first.split(b" ", 2)[1]), await reader.read()
    finally:
        writer.close()


def bearing(role: str) -> bytes:
    return f"Authorization: Bearer {SECRETS[role]}\r\n".encode()


@pytest.mark.parametrize("known", [LOOPBACK, None], ids=["known", "any"])
def test_a_host_that_is_not_one_name_goes_no_further(tmp_path: Path, known: frozenset[str] | None) -> None:
    async def use() -> None:
        async with listening(tmp_path, hosts=known) as port:
            for hosts in NOT_ONE_NAME:
                status, body = await answered(port, b"GET /api/health HTTP/1.1\r\n" + hosts)
                assert (status, b"Host" in body) == (400, True), hosts
            assert (await answered(port, b"GET /api/health HTTP/1.1\r\n" + OURS))[0] == 200
            assert (await answered(port, b"GET /api/health HTTP/1.1\r\nHost: LOCALHOST:1\r\n"))[0] == 200

    run(use)


def test_a_page_from_nowhere_is_not_ours_because_no_host_is_named(tmp_path: Path) -> None:
    async def use() -> None:
        async with listening(tmp_path, hosts=None) as port:
            head = b"POST /api/messages/Count HTTP/1.0\r\nOrigin: null\r\nContent-Length: 0\r\n" + bearing("worker")
            assert (await answered(port, head))[0] == 403

    run(use)


def test_metrics_are_told_to_nobody_who_names_two_hosts() -> None:
    async def expose(_: str) -> tuple[bytes, str]:
        return b"all is well\n", "text/plain"

    async def use() -> None:
        service = Scraped(expose)
        await service.start()
        port = int(service.address.rpartition(":")[2].partition("/")[0])
        try:
            for hosts in NOT_ONE_NAME:
                status, body = await answered(port, b"GET /metrics HTTP/1.1\r\n" + hosts)
                assert (status, b"well" in body) == (421, False), hosts
            assert (await answered(port, b"GET /metrics HTTP/1.1\r\n" + OURS))[0] == 200
        finally:
            await service.stop()

    run(use)


def unread(listed: str, sent: Mapping[str, bytes]) -> bytes:
    """Return the head of a request whose body is not sent, and whose every parameter is wrong."""
    method, _, route = listed.partition(" ")
    head = f"{method} {path_of(route)}?limit=x&n=x&after=x&wait=x&version=x HTTP/1.1\r\n".encode()
    return head + OURS + b"Content-Type: application/json\r\nContent-Length: 9\r\n" + b"".join(sent.values())


def test_nobody_unknown_or_not_permitted_has_a_byte_of_a_body_read(tmp_path: Path) -> None:
    """Of each request the body is still outstanding when the answer comes: so nothing can have read it."""

    async def use() -> None:
        async with listening(tmp_path) as port:
            for listed, needed in NEEDED.items():
                if needed == EVERYBODY:
                    continue
                assert (await answered(port, unread(listed, {})))[0] == 401, listed
                for role in (role for role, permits in PERMITS.items() if needed not in permits):
                    status, _ = await answered(port, unread(listed, {"token": bearing(role)}))
                    assert status == 403, f"{listed} as {role}"

    run(use)


def test_what_is_wrong_with_a_request_is_told_to_nobody_unknown(tmp_path: Path) -> None:
    async def use() -> None:
        async with listening(tmp_path) as port:
            told = set[bytes]()
            for listed in (listed for listed, needed in NEEDED.items() if needed != EVERYBODY):
                status, body = await answered(port, unread(listed, {}), b'{"broken"')
                assert status == 401, listed
                told.add(body)
            assert len(told) == 1  # every route says the same

    run(use)


def test_what_is_acted_is_told_to_the_audit_log_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def use() -> None:
        async with listening(tmp_path) as port:
            head = b"POST /api/schedules/nightly/pause HTTP/1.1\r\n" + OURS + bearing("operator")
            await answered(port, head)
            await until(lambda: bool(caplog.records))

    with caplog.at_level("INFO", "mainspring.audit"):
        run(use)
    assert [r.getMessage() for r in caplog.records if r.name == "mainspring.audit"] == [
        "operator: POST /api/schedules/nightly/pause"
    ]
