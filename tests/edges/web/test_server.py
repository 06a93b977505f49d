"""The studio's own server: what it listens on, whom it lets in, and which files it has."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from mainspring import Mainspring
from mainspring.cli.studio import serve
from mainspring.errors import SettingError
from mainspring.telemetry.scraping import is_loopback
from mainspring.web.access import Access
from mainspring.web.server import PORT, Server, bound, checked_host, hosts_of
from mainspring.web.static import NOT_BUILT, read_files
from mainspring.web.studio import studio
from tests.edges.web.support import asked, counters, tokens

SOON_SECONDS = 60
EVERYWHERE = "0.0.0.0"  # noqa: S104  nothing is bound to it: it is refused


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.168.1.7", "studio.example.com"])
def test_an_address_that_others_reach_needs_somebody_to_be_asked(host: str) -> None:
    with pytest.raises(SettingError, match="would ask for no token"):
        checked_host(host, Access())
    assert checked_host(host, tokens()) == host
    assert not is_loopback(host)


def test_on_loopback_only_its_names_count_and_those_that_are_given() -> None:
    assert hosts_of("127.0.0.1") == {"localhost", "127.0.0.1", "[::1]"}
    assert "studio.example.com" in (hosts_of("127.0.0.1", ["studio.example.com"]) or ())
    assert hosts_of(EVERYWHERE) is None
    assert "evil.example.com" not in (hosts_of(EVERYWHERE, ["studio.example.com"]) or ())


def test_small_answers_do_not_wait_for_an_acknowledgement(tmp_path: Path) -> None:
    """asyncio says so to the sockets that it knows to be TCP's, and one that was made without that word is none."""
    options: list[int] = []

    async def use() -> None:
        connected = asyncio.Event()

        class Heard(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                accepted = transport.get_extra_info("socket")
                options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                connected.set()

        with bound("127.0.0.1", 0) as listening:
            server = await asyncio.get_running_loop().create_server(Heard, sock=listening)
            _, writer = await asyncio.open_connection(*listening.getsockname())
            await connected.wait()
            writer.close()
            server.close()

    asyncio.run(use())
    assert options != [0]
    assert len(options) == 1


def test_the_next_free_port_is_taken_and_a_given_one_that_is_not_free_is_refused() -> None:
    with bound("127.0.0.1", None) as first, bound("127.0.0.1", None) as second:
        ports = [made.getsockname()[1] for made in (first, second)]
        # The first ones may be taken, and given up, by whoever else serves on this machine.
        assert min(ports) >= PORT
        assert ports[0] != ports[1]
        with pytest.raises(SettingError, match="--port"):
            bound("127.0.0.1", ports[0])


def built(folder: Path) -> Path:
    page = folder / "page"
    page.mkdir()
    (page / "index.html").write_text("<!doctype html>")
    (page / "app-3W6RNUQQ.js").write_text("export {}")
    (page / "secret.py").write_text("no")
    (folder / "outside.js").write_text("no")
    return page


def test_only_the_files_of_the_page_are_served_with_their_types_and_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = read_files(built(tmp_path))
    monkeypatch.setattr("mainspring.web.static.read_files", lambda: files)

    async def use() -> None:
        app = counters(tmp_path)
        async with app, asked(studio(app, start=False)) as client:
            index = await client.get("/")
            assert (index.text, index.headers["content-type"]) == ("<!doctype html>", "text/html; charset=utf-8")
            assert index.headers["cache-control"] == "no-cache"
            assert "default-src 'none'" in index.headers["content-security-policy"]
            again = await client.get("/", headers={"if-none-match": index.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            script = await client.get("/app-3W6RNUQQ.js")
            assert script.headers["content-type"] == "text/javascript; charset=utf-8"
            assert "immutable" in script.headers["cache-control"]
            assert (await client.get("/instances")).text == "<!doctype html>"
            for path in (
                "/secret.py",
                "/missing.js",
                "/../outside.js",
                "/..%2foutside.js",
                "/%2e%2e/outside.js",
                "/..\\outside.js",
                "/page/index.html",
                "//etc/passwd",
                "/%00",
                "/api/nothing",
                "/api",
            ):
                answer = await client.get(path)
                assert answer.text not in ("no", "export {}"), path
                assert answer.status_code in (200, 404), path
                assert answer.status_code == 404 or answer.text == "<!doctype html>", path
            assert (await client.post("/")).status_code == 405

    asyncio.run(use())


def test_without_the_page_it_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.web.static.read_files", dict)

    async def use() -> httpx.Response:
        app = counters(tmp_path)
        async with app, asked(studio(app, start=False)) as client:
            return await client.get("/")

    answer = asyncio.run(use())
    assert (answer.status_code, answer.text) == (200, NOT_BUILT)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


SHOP = """\
from mainspring import Mainspring
from mainspring.testing.samples import Counter

app = Mainspring("sqlite:///shop.db")
app.add(Counter())
"""


def test_the_command_serves_prints_its_address_and_stops_in_order(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    command = [sys.executable, "-m", "mainspring.cli", "studio", "shop:app", "--work", "--port", "0"]
    environment = {**os.environ, "MAINSPRING_STUDIO_TOKENS": "ann:operator:a-secret-of-some-length"}
    with subprocess.Popen(  # noqa: S603  our own
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        giving_up = threading.Timer(120, process.kill)
        giving_up.start()
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, f"{line}{process.stderr.read() if process.poll() is not None else ''}"
        authorized = {"authorization": "Bearer a-secret-of-some-length"}
        with httpx.Client(base_url=found[0], headers=authorized, timeout=SOON_SECONDS) as client:
            assert client.get("/api/stats", headers={"authorization": ""}).status_code == 401
            taken = client.post("/api/messages/Count", json={"counter": "c-1"})
            assert taken.json()["status"] == "stepped"
            assert client.get("/api/streams/Counter/c-1").json()["items"][1]["actor"] == "ann"
            with client.stream("GET", "/api/live?instance=Counter/c-1") as listening:
                next(listening.iter_lines())
                process.send_signal(signal.SIGTERM)
                assert process.wait(SOON_SECONDS) == 0
        giving_up.cancel()
        assert "Traceback" not in process.stderr.read()


def test_the_command_stops_though_the_database_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(app: Mainspring, *, work: bool) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    monkeypatch.setattr(Mainspring, "start", start)
    app = counters(tmp_path)

    async def use() -> None:
        with bound("127.0.0.1", 0) as listening:
            async with asyncio.timeout(SOON_SECONDS):
                await serve(app, Server(studio(app)), listening, "told", None, work=False)

    asyncio.run(use())


def test_the_command_refuses_an_address_that_others_reach_without_tokens(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    command = [sys.executable, "-m", "mainspring.cli", "studio", "shop:app", "--host", EVERYWHERE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603  our own
    assert done.returncode != 0
    assert "give tokens" in done.stderr
    assert "Traceback" not in done.stderr
