"""No byte of a redacted field is shown on any route to any role, and no search tells whether it is there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from mainspring import Fail, Mainspring, Received
from mainspring.analysis.export.export import export
from mainspring.analysis.export.redaction import Redaction
from mainspring.app.internals import internals_of
from mainspring.errors import (
    AttributeValueError,
    EncodeError,
    InstanceFailedError,
    InstanceSuspendedError,
    InvalidIdError,
    RouteError,
)
from mainspring.port.records import InstanceFilter, InstanceRow, Ref
from mainspring.sealing import Encrypted, Seal, StaticKeys
from mainspring.web.access import Access, Role, Token
from mainspring.web.api import api
from mainspring.web.letters import kind_of
from mainspring.web.live import Live
from mainspring.web.served import Served
from tests.edges.web.support import SECRETS, asked, bearer, tokens
from tests.proof.secrets.looking import in_bytes
from tests.proof.secrets.vault import Do, Vault, add_all, go, secret
from tests.support.rows import letters_of
from tests.support.running import run
from tests.support.waiting import until

ROLES: tuple[Role, ...] = ("viewer", "worker", "operator", "admin")
SEALS: dict[str, Seal | None] = {"plain": None, "sealed": Encrypted(StaticKeys({"2026": bytes(32)}))}
REDACT = ["card", "note"]
EDITED = ("works", "raises", "fails", "opens", "begins a child")


def with_groups() -> Access:
    """Tokens of all roles, whose owners may take the manager's tasks where their role lets them."""
    return Access(tokens=[Token.of(SECRETS[role], name=role, role=role, groups=["manager"]) for role in ROLES])


def made(folder: Path, seal: str) -> Mainspring:
    app = Mainspring(f"sqlite:///{folder / 'vault.db'}", seal=SEALS[seal])
    app.observe(metrics=True)
    add_all(app)
    return app


def paths(made: FastAPI, rows: Iterable[InstanceRow], letters: Iterable[int]) -> tuple[list[str], list[str]]:
    """Return the path of every GET route there is: those of all, and those of each instance, letter and version."""
    of_all: list[str] = []
    of_one: list[str] = []
    for path, methods in made.openapi()["paths"].items():
        if "get" not in methods or path == "/api/live":
            continue
        if "{workflow}/{id}" in path:
            for row in rows:
                named = path.replace("{workflow}", row.workflow).replace("{id}", quote(row.id))
                versions = range(1, row.version + 1) if "/tests/" in path or "/explanations/" in path else [0]
                options = {"/moments/": "?explained=true", "/results/": "?wait=0.01"}
                of_one += [
                    named + next((o for part, o in options.items() if part in path), f"?at={at}" if at else "")
                    for at in versions
                ]
        elif "/dead-letters/{id}" in path:
            of_one += [path.replace("{id}", str(id)) for id in letters]
        else:
            of_all.append(path.replace("{id}", "Vault/asks/4" if "tasks" in path else "x").replace("{name}", "Vault"))
    return of_all, of_one


async def edits(client: httpx.AsyncClient, row: InstanceRow) -> AsyncIterator[tuple[str, bytes]]:
    """Yield how the story of an instance would have gone otherwise. Where fields are redacted, operators may ask."""
    url = f"/api/counterfactuals/{row.workflow}/{quote(row.id)}"
    ways = ("has no case", "raises", "is torn", "evolves badly", "fails")
    messages = [{"type": "Do", "message": {"id": row.id, "way": way, "card": "[redacted]"}} for way in ways]
    changes = [{"what": what} | message for what in ("replace", "insert") for message in messages]
    told = 0
    for at in range(1, row.version + 2):
        for change in [{"what": "drop"}, *changes]:
            answer = await client.post(url, json={"at": at} | change, headers=bearer("operator"))
            told += answer.status_code == 200
            yield f"{url} {at} {change}", answer.content
    assert told, url


async def operations(client: httpx.AsyncClient, letters: Iterable[int]) -> AsyncIterator[tuple[str, bytes]]:
    """Yield what an operator is told who tries to set right what went wrong."""
    for id in letters:
        url = f"/api/dead-letters/{id}/retry"
        yield url, (await client.post(url, headers=bearer("operator"))).content
    many = {"ids": list(letters), "dry_run": False}
    url = "/api/dead-letter-operations/retry"
    yield url, (await client.post(url, json=many, headers=bearer("operator"))).content
    for operation in ("resume", "retry", "skip", "suspend"):
        for way in ("raises", "is torn", "gives up", "fails"):
            url = f"/api/operations/{operation}/Vault/{quote(way)}"
            yield url, (await client.post(url, headers=bearer("operator"))).content
        url = f"/api/bulk/{operation}"
        order = {"workflow": "Vault", "dry_run": False, "per_second": 1_000}
        yield url, (await client.post(url, json=order, headers=bearer("operator"))).content


async def handed(client: httpx.AsyncClient) -> AsyncIterator[tuple[str, bytes]]:
    """Yield what somebody is told who asks for a reply, or has a task in their hands."""
    headers = bearer("operator")

    async def told(method: str, path: str, body: Any = None) -> tuple[str, bytes]:
        answer = await client.request(method, path, json=body, headers=headers)
        assert answer.is_success, (path, answer.text)
        return f"{method} {path}", answer.content

    yield await told("POST", "/api/requests/Do", {"id": "replies", "way": "replies", "card": secret("replies")})
    yield await told("POST", "/api/messages/Do", {"id": "asks", "way": "asks", "card": secret("asks")})
    listed = await until(lambda: _open_tasks(told))
    yield listed
    (task,) = json.loads(listed[1])["items"]
    yield await told("POST", "/api/task-picks", {"role": "manager", "count": 1})
    yield await told("DELETE", f"/api/task-claims/{task['id']}")
    yield await told("POST", f"/api/task-claims/{task['id']}")
    yield await told("POST", f"/api/task-delegations/{task['id']}", {"to": "operator"})
    fields = {"id": "asks", "card": secret("answers")}
    yield await told("POST", f"/api/task-answers/{task['id']}", {"answer": "Told", "fields": fields})


async def _open_tasks(told: Callable[..., Awaitable[tuple[str, bytes]]]) -> tuple[str, bytes] | None:
    listed = await told("GET", "/api/tasks")
    return listed if json.loads(listed[1])["items"] else None


async def heard(live: Live, row: InstanceRow) -> tuple[str, bytes]:
    """Return what somebody hears who listens to an instance from its beginning."""
    text, listening = b"", live.listen(Ref(row.workflow, row.id), 0)
    last = b"event: events" if row.version and row.workflow != "Slip" else b"event: instance"
    while last not in text:
        text += await anext(listening)
    return f"/api/live {row.id}", text


async def looked_at(
    client: httpx.AsyncClient, made: FastAPI, app: Mainspring, edited: Collection[str], *, by_all: bool = False
) -> dict[str, set[str]]:
    """Ask everything that can be asked, as every role, and return where a secret was told.

    All roles ask for what is of all, for one instance and one dead letter; for the others, unless it is to be asked
    `by_all`, the one who may ask most.
    """
    leaks: dict[str, set[str]] = {}
    rows = await internals_of(app).engine.store.instances(InstanceFilter(), 1_000)
    letters = [letter.id for letter in await app.dead_letters()]

    def look(what: str, content: bytes) -> None:
        if marks := in_bytes(content):
            leaks[what] = marks

    told = 0
    of_all, of_one = paths(made, rows, letters)
    asked_by = dict.fromkeys(of_all, ROLES)
    for path in of_one:
        is_for_all = "/Vault/works" in path or path == f"/api/dead-letters/{letters[0]}"
        asked_by[path] = ROLES if by_all or is_for_all else ROLES[:1] if "?" in path else ROLES[-1:]
    for path, roles in asked_by.items():
        for role in roles:
            answer = await client.get(path, headers=bearer(role))
            told += answer.status_code == 200
            look(f"{role}: {path} ({answer.status_code})", answer.content)
    assert told > (300 if by_all else 150)
    for what, content in await asyncio.gather(*(heard(made.state.live, row) for row in rows)):
        look(what, content)
    for row in rows:
        if row.id in edited:
            async for what, content in edits(client, row):
                look(what, content)
    for what, content in [each async for each in handed(client)]:
        look(what, content)
    for what, content in [each async for each in operations(client, letters)]:
        look(what, content)
    return leaks


@pytest.mark.parametrize(
    ("seal", "edited", "by_all"),
    [
        pytest.param("plain", EDITED[:2], False, id="plain"),
        pytest.param("sealed", EDITED[:1], False, id="sealed"),
        *(pytest.param(seal, EDITED, True, id=f"{seal} by all", marks=pytest.mark.soak) for seal in SEALS),
    ],
)
def test_a_redacted_field_is_on_no_route_for_no_role(
    seal: str, edited: Collection[str], by_all: bool, tmp_path: Path
) -> None:
    async def main() -> None:
        async with made(tmp_path, seal) as app:
            await go(app)
            shown = api(app, start=False, access=with_groups(), redact=REDACT)
            async with asked(shown) as client:
                assert await looked_at(client, shown, app, edited, by_all=by_all) == {}
            for format in ("jsonl", "xes", "ocel"):
                file = tmp_path / f"export.{format}"
                await export(
                    internals_of(app).engine.store,
                    file,
                    format=format,
                    redaction=Redaction(payloads=True, fields=REDACT),
                )
                assert in_bytes(file.read_bytes()) == set()

    run(main)


@pytest.mark.parametrize("seal", SEALS)
def test_no_search_spells_out_what_is_not_shown(seal: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with made(tmp_path, seal) as app:
            await go(app)
            async with asked(api(app, start=False, access=tokens(), redact=REDACT)) as client:

                async def found(path: str, error: str, **more: Any) -> Any:
                    params = {"error": error, "limit": 1, **more}
                    return (await client.get(path, params=params, headers=bearer("viewer"))).json()

                nothing = await found("/api/instances", "no error says this")
                for guess in ("zQx", secret("raises"), f"card='{secret('has no case')[:5]}", secret("is suspended")):
                    assert await found("/api/instances", guess) == nothing
                    assert (await found("/api/what-if", guess, sample=1))["instances"] == 0
                    order = {"error": guess, "dry_run": True}
                    counted = await client.post("/api/bulk/resume", json=order, headers=bearer("operator"))
                    assert counted.json()["matched"] == 0
                page = await found("/api/instances", "no transition for Do in state Opened", limit=1_000)
                assert [item["id"] for item in page["items"]] == ["has no case"]
                kinds = (await client.get("/api/dead-letter-kinds", headers=bearer("viewer"))).json()["kinds"]
                bare = {kind_of(letter) for letter in await letters_of(app) if letter.error}
                assert bare & {kind["kind"] for kind in kinds} == set()

    run(main)


class Otherwise(Vault):
    """Decides and folds otherwise than what was recorded."""

    name = "Vault"

    def evolve(self, state: Any, event: Any) -> Any:
        if isinstance(event, Received) and getattr(event.message, "way", "") == "works":
            raise ValueError(event.message.card)
        return super().evolve(state, event)

    def decide(self, message: Any, state: Any) -> Any:
        match message:
            case Do(way="fails", card=card):
                return [Fail(f"{card} in other words")]
            case Do(way="completes", card=card):
                raise ValueError(card)
        return super().decide(message, state)


def test_what_if_counts_what_it_must_not_tell(tmp_path: Path) -> None:
    async def told(redact: list[str]) -> tuple[int, set[str]]:
        app = Mainspring(f"sqlite:///{tmp_path / 'vault.db'}")
        app.add(Otherwise())
        await app.start(work=False)
        try:
            async with asked(api(app, start=False, redact=redact)) as client:
                answer = await client.get("/api/what-if", params={"workflow": "Vault", "sample": 1_000})
                return answer.json()["differing"], in_bytes(answer.content)
        finally:
            await app.stop()

    async def main() -> None:
        async with made(tmp_path, "plain") as app:
            await go(app)
        differing, marks = await told([])
        assert (differing, marks) == (3, {secret("fails"), secret("completes"), secret("works"), secret("opens")})
        assert await told(REDACT) == (3, set())

    run(main)


def test_what_todays_code_cannot_fold_is_told_by_its_kind(tmp_path: Path) -> None:
    async def told(redact: list[str]) -> tuple[list[str], set[str]]:
        app = Mainspring(f"sqlite:///{tmp_path / 'vault.db'}")
        app.add(Otherwise())
        await app.start(work=False)
        try:
            async with asked(api(app, start=False, redact=redact)) as client:
                edit = {"what": "drop", "at": 5}
                answers = [
                    await client.post("/api/counterfactuals/Vault/works", json=edit),
                    await client.get("/api/tests/Vault/works", params={"at": 5}),
                    await client.get("/api/explanations/Vault/works", params={"at": 5}),
                ]
                assert [each.status_code for each in answers] == [409] * 3
                said = [each.json()["detail"] for each in answers]
                return said, in_bytes(b"".join(each.content for each in answers))
        finally:
            await app.stop()

    async def main() -> None:
        async with made(tmp_path, "plain") as app:
            await go(app)
        assert (await told([]))[1] == {secret("works")}
        said, marks = await told(REDACT)
        assert marks == set()
        assert said == ["ValueError", *["Vault/works stops at position 3: ValueError. Mend the code."] * 2]

    run(main)


@pytest.mark.parametrize(
    "error",
    [
        AttributeValueError("limit", f"is {secret('opens')}", "Use a number"),
        InvalidIdError("The id", secret("opens"), "is too long", "Use another"),
        RouteError("Vault", Do("v", "x", secret("opens")), KeyError(secret("opens"))),
        EncodeError("Do", f"{secret('opens')} is no number", "Use one"),
        InstanceSuspendedError("Vault/v", f"ValueError: {secret('opens')}"),
        InstanceFailedError("Vault/v", "failed", secret("opens")),
        KeyError(secret("opens")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_refusal_quotes_what_may_be_content(error: Exception) -> None:
    served = Served(Mainspring("memory://"), redact=REDACT)
    assert in_bytes(served.detail(error).encode()) == set()


def test_nobody_searches_by_an_attribute_that_is_not_shown(tmp_path: Path) -> None:
    async def main() -> None:
        async with made(tmp_path, "plain") as app, asked(api(app, start=False, redact=REDACT)) as client:
            for path in ("/api/instances", "/api/stuck", "/api/analytics", "/api/what-if"):
                answer = await client.get(path, params={"attribute": "card>=4"})
                assert (answer.status_code, "not shown here" in answer.text) == (422, True), path

    run(main)
