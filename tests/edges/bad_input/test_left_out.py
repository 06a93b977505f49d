"""Records that cannot be read are left out of lists: nobody next to them notices, and no page ends early for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from mainspring import Mainspring
from mainspring.errors import DamagedRecordError
from mainspring.port.pages import ASKED_AGAIN, Page
from mainspring.sealing.encrypted import Encrypted
from mainspring.sealing.keys import StaticKeys
from tests.edges.bad_input.conftest import url_of
from tests.edges.bad_input.misbehaving import Desk, Go, Note, desk
from tests.edges.bad_input.test_rows import edit

STORES: Final = ("sqlite", "postgres")
DAMAGED: Final = ("i-0", "i-2", "i-3", "i-4", "i-6")
LEFT: Final = ["i-1", "i-5"]
ALL: Final = sorted((*DAMAGED, *LEFT))
NAMES: Final = ", ".join(f"'{id}'" for id in DAMAGED)
KEYS: Final = f"(SELECT key FROM {{s}}instances WHERE id IN ({NAMES}))"  # noqa: S608  the test's own


def on_damaged(
    store: str, folder: Path, message: Callable[[str], Any], sql: str, then: Callable[[Mainspring], Awaitable[None]]
) -> None:
    """Send a message to each of seven, damage what five of them have made, and look at what is left."""
    url = url_of(store, folder)

    async def main() -> None:
        async with asyncio.timeout(60):
            async with desk(Mainspring(url)) as app:
                for id in ALL:
                    await app.send(message(id))
            await edit(store, url, sql)
            app = desk(Mainspring(url))
            await app.start(work=False)
            await then(app)
            await app.stop()

    asyncio.run(main())


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_of_dead_letters_are_full_until_their_end(store: str, limit: int, tmp_path: Path) -> None:
    async def then(app: Mainspring) -> None:
        seen: list[str] = []
        after = 0
        while letters := await app.dead_letters(limit, after):
            seen += [letter.instance.removeprefix("Desk/") for letter in letters]
            assert len(letters) == limit or seen == LEFT
            after = letters[-1].id
        assert seen == LEFT

    sql = f"UPDATE {{s}}dead_letters SET body = {{garbage}} WHERE instance IN ({NAMES})"  # noqa: S608  the test's own
    on_damaged(store, tmp_path, Note, sql, then)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("change", ["answers = 'zz'", "data = {garbage}"], ids=["in the store", "in the app"])
def test_pages_of_tasks_are_full_until_their_end(store: str, limit: int, change: str, tmp_path: Path) -> None:
    async def then(app: Mainspring) -> None:
        seen: list[str] = []
        after = None
        while tasks := await app.tasks.list(limit=limit, after=after):
            seen += [task.instance for task in tasks]
            assert len(tasks) == limit or seen == LEFT
            after = tasks[-1].id
        assert seen == LEFT

    sql = f"UPDATE {{s}}tasks SET {change} WHERE instance IN {KEYS}"  # noqa: S608  the test's own
    on_damaged(store, tmp_path, Go, sql, then)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_of_instances_are_full_until_their_end(limit: int, tmp_path: Path) -> None:
    async def then(app: Mainspring) -> None:
        seen: list[str] = []
        after = 0
        while rows := await app.instances(workflow="Desk", limit=limit, after=after):
            seen += [row.id for row in rows]
            assert len(rows) == limit or seen == LEFT
            after = rows[-1].key
        assert seen == LEFT

    sql = f"UPDATE {{s}}instances SET created_us = 5 WHERE id IN ({NAMES})"  # noqa: S608  the test's own
    on_damaged("sqlite", tmp_path, Go, sql, then)


def test_an_instance_whose_row_is_damaged_is_left_out_and_told_when_it_is_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def then(app: Mainspring) -> None:
        assert [row.id for row in await app.instances()] == LEFT
        report = await app.bulk("suspend", workflow="Desk")
        assert (report.matched, report.done) == (2, 2)
        assert [row.id for row in await app.instances(status="suspended")] == LEFT
        for id in DAMAGED:
            with pytest.raises(DamagedRecordError, match=f"Desk/{id}"):
                await app.instance(Desk, id).row()
            with pytest.raises(DamagedRecordError, match=f"Desk/{id}"):
                await app.instance(Desk, id).suspend("to look at it")
            with pytest.raises(DamagedRecordError, match=f"Desk/{id}"):
                await app.send(Note(id))
            assert f"Desk/{id}" in caplog.text

    sql = f"UPDATE {{s}}instances SET created_us = 5 WHERE id IN ({NAMES})"  # noqa: S608  the test's own
    on_damaged("sqlite", tmp_path, Go, sql, then)


def test_a_task_that_no_key_opens_hides_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = f"sqlite:///{tmp_path / 'desk.db'}"
    old, new = StaticKeys({"old": bytes(32)}), StaticKeys({"new": bytes(31) + b"1"})

    async def main() -> None:
        for id, keys in (("bad", old), ("neighbour", new)):
            async with desk(Mainspring(url, seal=Encrypted(keys))) as app:
                await app.send(Go(id))
        async with desk(Mainspring(url, seal=Encrypted(new))) as app:
            assert [task.instance for task in await app.tasks.list(limit=1)] == ["neighbour"]
            with pytest.raises(DamagedRecordError, match="'old', which is not here"):
                await app.tasks.get("Desk/bad/5")

    asyncio.run(main())
    assert "left out of a list" in caplog.text


def test_many_that_are_left_out_do_not_cost_a_question_each() -> None:
    page = Page[int, int](1, lambda number: number if number == 1_000 else None)
    questions = 0
    while page.wants:
        begin = (page.last or 0) + 1
        page.take(range(begin, begin + page.wants))
        questions += 1
    assert page.records == [1_000]
    assert questions <= 1 + 1_000 // ASKED_AGAIN
