"""Lists over HTTP: in both directions, bounded whatever is in them, and many dead letters at once."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert, json

from mainspring import Mainspring
from mainspring.errors import DamagedRecordError
from mainspring.port.searches import SEARCHED
from mainspring.sealing.seals import About
from mainspring.stores.sql import instances
from mainspring.testing.samples import Counter, LeaveRequests
from mainspring.web import models, served
from mainspring.web.letters import ERROR_CHARACTERS, alike
from tests.edges.web.support import served as serving
from tests.edges.web.test_api import Client, count, serve

OUTSIDE = "the seal of another key"


async def every_page(client: Client, query: str) -> list[str]:
    found: list[str] = []
    after = ""
    while True:
        answer = await client.get(f"/api/instances?{query}{after}")
        page = json.decode(answer.content, type=models.InstancePage)
        found += [item.id for item in page.items]
        if page.next is None:
            return found
        after = f"&after={page.next}"


def test_instances_come_newest_first_page_by_page_with_every_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instances, "SEARCHED", 3)
    monkeypatch.setattr(instances, "FEW", 1)

    async def use(client: Client) -> None:
        ids = [f"c-{number}" for number in range(8)]
        for id in ids:
            await count(client, id)
        await client.post("/api/operations/suspend/Counter/c-2")
        for words in ("", "workflow=Counter&", "state=Counted&", "prefix=c-&", "since=2020-01-01T00:00:00Z&"):
            assert await every_page(client, f"{words}limit=2") == ids, words
            assert await every_page(client, f"{words}limit=2&newest=true") == ids[::-1], words
        assert await every_page(client, "status=suspended&newest=true") == ["c-2"]
        assert await every_page(client, "workflow_version=1&limit=2&newest=true") == ids[::-1]
        assert await every_page(client, "workflow_version=2") == []
        assert (await client.get("/api/instances?workflow_version=0")).status_code == 422
        assert await every_page(client, "state=Nothing&newest=true") == []
        one_look = (await client.get("/api/instances?state=Nothing&newest=true")).json()
        assert one_look == {"items": [], "next": 6}
        assert SEARCHED == 10_000  # as the documentation says

    serve(tmp_path, use)


def test_a_page_ends_when_its_messages_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "PAGE_BYTES", 500)
    monkeypatch.setattr(served, "PIECE", 3)

    async def use(client: Client) -> None:
        name = "c" * 200
        await count(client, name, times=8)
        for path, cursor in ((f"streams/Counter/{name}", "position"), ("dead-letters", "id")):
            seen: list[int] = []
            after: Any = 0
            sizes: list[int] = []
            while after is not None:
                page = (await client.get(f"/api/{path}?after={after}")).json()
                seen += [item[cursor] for item in page["items"]]
                sizes.append(len(page["items"]))
                after = page["next"]
            assert len(sizes) > 1, path
            assert max(sizes) <= 4, path  # the last one may be the one that is too much, and Began has no message
            assert seen == sorted(set(seen)), path
        assert (await client.get(f"/api/streams/Counter/{name}?limit=2")).json()["next"] == 2

    serve(tmp_path, use)


def test_the_attributes_by_which_instances_are_found_are_named(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        assert (await client.get("/api/attributes")).json() == []
        await count(client)
        for each in (await client.get("/api/attributes")).json():
            convert(each, models.AttributeName)

    serve(tmp_path, use)


# ---- dead letters


async def late(client: Client, counter: str, times: int) -> None:
    """Send what comes after the end."""
    await count(client, counter, times=3)
    for _ in range(times):
        await client.post("/api/messages/Count", json={"counter": counter})


async def settle(client: Client, operation: str, **order: Any) -> models.ManySettled:
    answer = await client.post(f"/api/dead-letter-operations/{operation}", json=order)
    assert answer.status_code == 200, answer.text
    return json.decode(answer.content, type=models.ManySettled)


def test_dead_letters_are_sorted_into_kinds_and_settled_together(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await late(client, "c-1", 2)
        await late(client, "c-22", 1)
        kinds = json.decode((await client.get("/api/dead-letter-kinds")).content, type=models.LetterKinds)
        [kind] = kinds.kinds
        assert (kind.type, kind.count, kinds.looked_at, kinds.cut) == ("Count", 3, 3, False)
        counted = await settle(client, "discard", kind=kind.kind)
        assert (counted.dry_run, counted.matched, counted.done) == (True, 3, 0)
        assert len((await client.get("/api/dead-letters")).json()["items"]) == 3
        retried = await settle(client, "retry", kind=kind.kind, dry_run=False)
        assert (retried.matched, retried.done, retried.refusals) == (3, 3, 0)
        ids = [letter["id"] for letter in (await client.get("/api/dead-letters")).json()["items"]]
        gone = await settle(client, "discard", ids=[ids[0], ids[1], 10**9], dry_run=False)
        assert (gone.matched, gone.done, [each.id for each in gone.refused]) == (3, 2, [10**9])
        assert [each["id"] for each in (await client.get("/api/dead-letters")).json()["items"]] == ids[2:]
        assert (await settle(client, "discard", kind="of another sort", dry_run=False)).matched == 0

    serve(tmp_path, use)


def test_dead_letters_of_one_cause_are_one_kind_whatever_their_ids_look_like(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for counter in ("c-1", "ann", "a", "The Smiths/2026", "8f14e45f-ceea-467f-a8f0-deadbeefcafe", "x" * 300):
            await late(client, counter, 1)
        kinds = json.decode((await client.get("/api/dead-letter-kinds")).content, type=models.LetterKinds)
        assert [kind.count for kind in kinds.kinds] == [6]
        letters = json.decode((await client.get("/api/dead-letters")).content, type=models.LetterPage)
        assert {letter.letter_kind for letter in letters.items} == {kinds.kinds[0].kind}

    serve(tmp_path, use)


def test_a_long_word_costs_no_more_than_its_length_to_be_sorted() -> None:
    began = time.thread_time()
    assert alike("a" * 20_000) == "a" * ERROR_CHARACTERS
    assert time.thread_time() - began < 1  # the square of its length took six seconds


def test_a_long_id_does_not_move_what_counts_of_an_error() -> None:
    told = "of the shop in which it was ordered, " * 10
    assert alike(f"order {'1' * 30} {told}") == alike(f"order 2 {told}")


@pytest.mark.parametrize("order", [{}, {"ids": [1], "kind": "a"}, {"ids": []}, {"ids": [0]}, {"ids": [10**30]}])
def test_an_order_for_many_dead_letters_says_which(order: dict[str, Any], tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        answer = await client.post("/api/dead-letter-operations/discard", json=order)
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")

    serve(tmp_path, use)


# ---- what cannot be read


class Lost:
    """A seal whose key is lost for what was sealed before."""

    lost = False
    of: str | None = None
    """The one instance of which it is lost; None: of all."""

    def close(self, body: bytes, about: About) -> bytes:
        return b"\x01" + body

    def open(self, stored: bytes, about: About) -> bytes:
        if self.lost and self.of in (None, about.instance):
            raise DamagedRecordError("bodies", OUTSIDE)
        return stored[1:]


def test_tasks_are_picked_though_the_data_of_one_cannot_be_read(tmp_path: Path) -> None:
    seal = Lost()

    async def run() -> None:
        app = Mainspring(f"sqlite:///{tmp_path / 'sealed.db'}", seal=seal)
        app.add(LeaveRequests())
        async with serving(app) as client:
            for id in ("l-1", "l-2"):
                await client.post("/api/messages/RequestLeave", json={"leave_id": id})
            seal.of = "l-1"
            seal.lost = True
            picked = await client.post(
                "/api/task-picks", json={"role": "manager", "count": 5}, headers={"x-mainspring-actor": "ann"}
            )
            assert [task["id"] for task in picked.json()] == ["LeaveRequests/l-1/3", "LeaveRequests/l-2/3"]
            assert picked.json()[0]["data"] == {}

    asyncio.run(run())


def test_a_dead_letter_that_cannot_be_read_does_not_spoil_the_list(tmp_path: Path) -> None:
    seal = Lost()

    async def run() -> None:
        app = Mainspring(f"sqlite:///{tmp_path / 'sealed.db'}", seal=seal)
        app.add(Counter())
        async with serving(app) as client:
            await late(client, "c-1", 1)
            seal.lost = True
            answer = await client.get("/api/dead-letters")
            assert answer.status_code == 200
            page = json.decode(answer.content, type=models.LetterPage)
            assert [letter.message for letter in page.items] == [{"$unreadable": True}]

    asyncio.run(run())
