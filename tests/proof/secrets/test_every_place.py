"""What docs/reference/content.md says of every place, held against where marked secrets are found.

Nothing is sealed or redacted here. That none is found anywhere, where it is, `test_sealed_bytes` and `test_shown_bytes`
hold.
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import httpx
import pytest

from docs.site import content, places
from mainspring import Mainspring
from mainspring.brokers import Brokers
from mainspring.brokers.memory import MemoryBroker
from mainspring.telemetry import logs
from mainspring.web.api import api
from tests.edges.cli.conftest import call
from tests.edges.telemetry.spans import Spans
from tests.edges.web.support import asked, bearer
from tests.proof.secrets.looking import columns_of_file, columns_of_server, in_bytes, in_server, in_tables
from tests.proof.secrets.test_shown_bytes import EDITED, SEALS, looked_at, made, with_groups
from tests.proof.secrets.vault import Do, Open, Told, add_all, go, secret
from tests.support.postgres.server import Server, Unavailable, own_schema
from tests.support.running import run
from tests.support.waiting import until

CONTENT: Final = {content.BODY, content.ERROR, content.KIND}
# Content is there only where today's code goes otherwise than what was recorded: `test_what_if_counts_…` sees it.
ELSEWHERE: Final = {"GET /api/what-if"}
# Routes that the vault cannot be asked for with success, and why.
UNANSWERED: Final = {
    "GET /api/live": "it never ends: it is listened to without HTTP",
    "POST /api/task-rejections/{id}": "no task of the vault can be rejected; answers are shown by the same function",
    "POST /api/events/{type}": "the one event of the vault answers a task, and is not taken from outside",
    "POST /api/hooks/{name}": "the vault has no hook; what is taken is answered as by POST /api/messages",
    **dict.fromkeys(
        (
            *("POST /api/schedules/{name}/pause", "POST /api/schedules/{name}/resume", "DELETE /api/schedules/{name}"),
            *("GET /api/schedules/{name}/next", "POST /api/schedules/{name}/run"),
        ),
        "the vault has no schedules, whose messages are written in code",
    ),
}


def holding(said: dict[str, content.Holding], *holdings: content.Holding) -> set[str]:
    return {place for place, holding in said.items() if holding in holdings}


# ---- columns


async def posted(app: Mainspring, url: str) -> None:
    """Let a message lie where other programs write it: no worker takes it, for none runs."""
    address, _, schema = url.partition("schema=")
    library: Any = asyncpg
    connection = await library.connect(address.rstrip("?&"), server_settings={"search_path": schema})
    try:
        async with connection.transaction():
            await app.post(Do("opens", "works", secret("opens")), connection)
    finally:
        await connection.close()


def vaults(url: str) -> Mainspring:
    app = Mainspring(url)
    add_all(app)
    return app


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_content_is_found_in_the_columns_of_content_and_in_no_others(store: str, tmp_path: Path) -> None:
    url, server = f"sqlite:///{tmp_path / 'vault.db'}", None
    if store == "postgres":
        # On a server of its own: what is written in the clear here would be found in the files that others look into.
        try:
            server = Server()
            server.start()
        except Unavailable as reason:
            pytest.skip(f"no PostgreSQL: {reason}")
        url = own_schema(server.url, tmp_path)

    async def found() -> tuple[set[str], set[str]]:
        async with vaults(url) as app:
            await go(app)
        if store == "sqlite":
            return columns_of_file(tmp_path / "vault.db"), set(in_tables(tmp_path / "vault.db"))
        await posted(vaults(url), url)
        return await columns_of_server(url), set(await in_server(url, files=False))

    try:
        there, of_content = run(found)
    finally:
        if server is not None:
            server.remove()
    assert there == set(places.columns_of(store))
    assert of_content == holding(content.columns(), *CONTENT) & there


# ---- routes


@cache
def fitting() -> list[tuple[re.Pattern[str], str]]:
    """Return what the requests of each route look like; those that say most come first."""
    said_most = sorted(places.all_routes(), key=lambda route: -len(re.sub(r"{\w+}", "", route)))
    return [(re.compile(re.sub(r"{(\w+)}", _part, route)), route) for route in said_most]


def _part(named: re.Match[str]) -> str:
    return ".+" if named[1] == "id" else "[^/]+"


def route_of(request: httpx.Request) -> str:
    asked_for = f"{request.method} {request.url.path}"
    return next(route for pattern, route in fitting() if pattern.fullmatch(asked_for))


async def ask_the_rest(client: httpx.AsyncClient) -> None:
    """Ask for what is not asked where fields are redacted."""
    headers = bearer("operator")

    async def told(method: str, path: str, body: Any = None, **more: str) -> Any:
        answer = await client.request(method, path, json=body, headers=headers | more)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.content else None

    await told("GET", "/api/openapi.json")
    job = await told("POST", "/api/bulk/suspend", {"workflow": "Vault", "dry_run": False, "per_second": 1_000})
    await told("GET", f"/api/bulk/{job['id']}")
    await told("DELETE", f"/api/bulk/{job['id']}")
    again = {"id": "works", "way": "works", "card": secret("works")}
    envelope = {"specversion": "1.0", "id": "e-1", "source": "/outside", "type": "Do", "data": again}
    await told("POST", "/api/envelopes", envelope, **{"content-type": "application/cloudevents+json"})
    letters = await told("GET", "/api/dead-letters")
    await told("DELETE", f"/api/dead-letters/{letters['items'][-1]['id']}")
    for what in ("Vault", "Listener"):
        await told("POST", f"/api/pauses/{what}", {"reason": secret("works")})
    await told("GET", "/api/pauses")
    await told("DELETE", "/api/pauses/Vault")


def test_content_is_shown_on_the_routes_of_content_and_on_no_others(tmp_path: Path) -> None:
    answered, shown = set[str](), set[str]()

    async def look(response: httpx.Response) -> None:
        if response.is_success:
            route = route_of(response.request)
            answered.add(route)
            if in_bytes(await response.aread()):
                shown.add(route)

    async def main() -> None:
        async with made(tmp_path, "plain") as app:
            await go(app)
            served = api(app, start=False, access=with_groups())
            async with asked(served) as client:
                client.event_hooks = {"response": [look]}
                leaks = await looked_at(client, served, app, EDITED[:1])
                await ask_the_rest(client)
                if any(what.startswith("/api/live") for what in leaks):
                    shown.add("GET /api/live")  # it is asked without HTTP, for it never ends

    run(main)
    said = content.said("routes", content.ROUTES, places.all_routes())
    assert set(said) - answered == UNANSWERED.keys()
    assert shown == holding(said, content.SHOWN) - ELSEWHERE - UNANSWERED.keys() | {"GET /api/live"}


# ---- commands

APP: Final = """
from mainspring import Mainspring
from mainspring.brokers import Brokers
from mainspring.brokers.memory import MemoryBroker
from tests.proof.secrets.vault import add_all
app = Mainspring("sqlite:///vault.db")
add_all(app)
"""
TASK: Final = "Vault/asks/8"
# Each in the order in which it can be done, as JSON and once more as text.
ASKED: Final = [
    "ls",
    "show Vault/raises",
    "state Vault/works",
    "log Vault/raises",
    "reply r-1",
    "timers",
    "tasks list",
    f"tasks show {TASK}",
    f"tasks claim {TASK} --role manager",
    f"tasks release {TASK}",
    "tasks pick manager",
    f"tasks delegate {TASK} bob",
    f"""tasks complete {TASK} Told '{{"id":"asks","card":"{secret("answers")}"}}' --actor bob""",
    "dead-letters list",
    "dead-letters show 1",
    "projections list",
    "projections show failing",
    "doctor",
    "stuck",
    "replay Vault/works",
    "explain Vault/raises",
    "counterfactual Vault/works --at 3 --drop",
    "lint",
    "stats",
    "diagram Vault",
    "schedules list",
    "export -o plain.jsonl",
    "export -o payloads.jsonl --payloads",
    "docs -o plain",
    "docs -o payloads --history --payloads",
    "record -o golden.json",
    "suspend Vault/waits",
    "resume Vault/waits",
    "retry Vault/raises",
    "skip 'Vault/is torn'",
    "cancel Vault/works",
    "terminate Vault/waits",
    "reset Vault/replies --to 2",
    "dead-letters retry 2",
    "dead-letters discard 1 --yes",
    "projections rebuild opened_vaults",
    f"""send Do '{{"id":"replies","way":"replies","card":"{secret("replies")}"}}'""",
    "purge --older-than 0s --dry-run",
    f"pauses pause Vault --reason {secret('works')}",
    f"pauses pause Listener --reason {secret('works')}",
    "pauses list",
    "pauses resume Vault",
]
# Their exit code says what they found.
FINDERS: Final = {"doctor", "stuck", "lint", "projections show"}
# Commands that are not called, and why.
UNCALLED: Final = {
    "bulk": "it prints content only where an instance refuses, with the error that the command for one prints",
    "what-if": "it prints content only where today's code goes otherwise: `test_what_if_counts_…` has its document",
    "verify": "as what-if",
    "tasks reject": "no task of the vault can be rejected; it prints what `tasks complete` prints",
    **dict.fromkeys(("sources list", "sources pause", "sources resume"), "the vault has no sources"),
    **dict.fromkeys(
        ("schedules next", "schedules pause", "schedules remove", "schedules resume", "schedules run"),
        "the vault has no schedules, whose messages are written in code",
    ),
    "migrate": "the vault has one version",
    "dead-letters edit": "it carries a message out that was corrected, and prints what `dead-letters retry` prints",
    "new": "it asks no database",
    **dict.fromkeys(("worker", "studio", "demo"), "they run until they are stopped; they print their log"),
}


def test_content_is_printed_by_the_commands_of_content_and_by_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vaulted.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MAINSPRING_APP", "vaulted:app")
    monkeypatch.setenv("MAINSPRING_ACTOR", "ann")

    async def main() -> None:
        async with vaults("sqlite:///vault.db") as app:
            await go(app)
            await app.send(Do("asks", "asks", secret("asks")))
            again = Do("replies", "replies", secret("replies"))
            await app.request(again, id="r-1", timeout=timedelta(seconds=30))

    run(main)
    said = content.said("commands", content.COMMANDS, places.all_commands())
    printed, asked_for = set[str](), set[str]()
    try:
        for line in ASKED:
            words = shlex.split(line)
            command = words[0] if words[0] in said else " ".join(words[:2])
            asked_for.add(command)
            document, text = call(*words, "--json"), call(*words)
            # What is done is done once: the second call may be refused.
            codes = {document.code, text.code}
            assert 0 in codes or (command in FINDERS and codes == {1}), (line, document.err, text.err)
            if in_bytes((text.out + text.err + document.out + document.err).encode()):
                printed.add(command)
    finally:
        sys.modules.pop("vaulted", None)
    assert set(said) - asked_for == UNCALLED.keys()
    assert printed == holding(said, content.PRINTED) - UNCALLED.keys()
    written = {
        path.name
        for path in tmp_path.rglob("*.*")
        if path.suffix in (".jsonl", ".json", ".md") and in_bytes(path.read_bytes())
    }
    assert written == {"payloads.jsonl", "golden.json", "Vault.md", "Child.md"}
    assert not any(in_bytes(path.read_bytes()) for path in (tmp_path / "plain").iterdir())


# ---- telemetry


def test_spans_tell_content_by_the_attributes_of_content_and_by_no_others(tmp_path: Path) -> None:
    spans = Spans()

    async def main() -> None:
        app = vaults(f"sqlite:///{tmp_path / 'vault.db'}")
        app.observe(traces=spans.provider)
        async with app:
            await go(app)

    run(main)
    told: list[tuple[str, object]] = [("status", span.status.description) for span in spans.all]
    for span in spans.all:
        told += (span.attributes or {}).items()
        told += [pair for event in span.events for pair in (event.attributes or {}).items()]
    said = {"status": content.SAID} | content.said("span attributes", content.SPANS, places.all_span_attributes())
    assert {name for name, _ in told} - set(said) == set()
    found = {name for name, value in told if in_bytes(str(value).encode())}
    assert found == holding(said, content.SAID)


# ---- what is sent to others


def test_what_goes_to_a_broker_is_opened_there() -> None:
    async def main() -> None:
        app, broker = Mainspring("memory://", seal=SEALS["sealed"]), MemoryBroker()
        add_all(app)
        brokers = Brokers(app, "vault")
        brokers.add("main", broker)
        brokers.endpoint("told", "main", "told")
        brokers.publish(Told, to="told")
        async with app:
            await app.send(Open("publishes", secret("opens")))
            await app.send(Do("publishes", "publishes", secret("publishes")))
            (message,) = await until(lambda: broker.log("told"))
        assert in_bytes(message.body) == {secret("publishes")}

    run(main)


# ---- completeness


def test_a_place_without_a_word_and_a_word_without_a_place_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert content.page()
    for name, there in (
        ("all_columns", [*places.all_columns(), "events.whim"]),
        ("all_routes", [*places.all_routes(), "GET /api/whims"]),
        ("all_commands", [*places.all_commands(), "whim"]),
        ("all_span_attributes", [*places.all_span_attributes(), "mainspring.whim"]),
        ("all_labels", [*places.all_labels(), "whim"]),
        ("all_writers", [*places.all_writers(), "app/whim.py"]),
        ("all_senders", [*places.all_senders(), "app/whim.py"]),
        ("all_columns", places.all_columns()[1:]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(places, name, lambda there=there: there)
            with pytest.raises(content.Unsaid, match=r"whim|any more"):
                content.page()
    with monkeypatch.context() as patch:
        patch.setattr(logs, "FIELDS", (*logs.FIELDS, "whim"))
        with pytest.raises(content.Unsaid, match="whim"):
            content.page()


@pytest.mark.parametrize(
    "code",
    [
        "open(p, mode='w')",
        "p.open(mode='ab')",
        "open(p, 'r+')",
        "os.fdopen(number, 'w')",
        "os.open(p, os.O_CREAT)",
        "shutil.copy(p, q)",
        "connection.execute('VACUUM INTO ?', (p,))",
        "one.backup('main', other, 'main')",
        "logging.FileHandler(p)",
        "p.write_text('')",
        "apsw.Connection(p)",
    ],
)
def test_what_writes_a_file_is_seen(code: str) -> None:
    assert places.WRITING.search(code)
    assert places.writes(ast.parse(code))


@pytest.mark.parametrize("code", ["open(p)", "p.open('rb')", "apsw.Connection(p, flags=apsw.SQLITE_OPEN_READONLY)"])
def test_what_only_reads_a_file_is_no_writer(code: str) -> None:
    assert not places.writes(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "import os, http.client",
        "def late():\n    from nats.aio.client import Client",
        "from mainspring.codec.wire import (\n    written,\n)",
    ],
)
def test_what_speaks_with_others_is_seen(code: str) -> None:
    assert places.SENDING.search(code)
    assert places.sends(ast.parse(code))


def test_every_logger_is_one_that_knows_when_to_be_discreet() -> None:
    own = {"logs.py", "cli/worker.py", "cli/loading.py"}  # the discreet one itself; the root, for its handlers
    sources = {path.relative_to(places.SOURCE).as_posix(): path.read_text() for path in places.SOURCE.rglob("*.py")}
    assert {name for name, text in sources.items() if "getLogger(" in text} == own
