"""What became of a transaction whose answer was lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mainspring.port.records import Committed, Duplicate
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres import session as session_module
from mainspring.stores.postgres.session import Session
from mainspring.testing.store_contract.rig import accept, order, send, step
from tests.stores.postgres_support import inside, opened, other_session
from tests.support.postgres.proxy import Cable, Cut, serving
from tests.support.postgres.server import postgres_url
from tests.support.running import run

LEASE_US = 30_000_000


@pytest.mark.parametrize("when", ["before", "after", "silence"])
def test_a_commit_whose_answer_is_lost_is_looked_up(when: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    abandon = Session._abandon  # noqa: SLF001  the moment from which on answers are waited for as usual

    async def abandoned(session: Session, committing: asyncio.Future[Any]) -> None:
        monkeypatch.undo()
        await abandon(session, committing)

    async def body() -> None:
        cable = Cable(postgres_url(tmp_path))
        async with serving(cable, postgres_url(tmp_path)) as url, opened(tmp_path, url=url) as store:
            worker = await store.register_worker("first", LEASE_US)
            if when == "silence":
                monkeypatch.setattr(Session, "_abandon", abandoned)
                monkeypatch.setattr(session_module, "ANSWER_SECONDS", 0.2)
            cable.cut_once("COMMIT", when)
            (outcome,) = await store.commit(worker, [step("m-1", send(claimed=True))])
            assert cable.cut_at("COMMIT") is None, "the line was cut"
            assert isinstance(outcome, Committed)
            assert [event.version for event in await store.stream(order(), 0, 10)] == [1, 2, 3]
            assert len(await store.holds(worker)) == 1

    run(body)


def test_a_transaction_that_was_never_told_to_commit_is_ended(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await other.execute("BEGIN")
            xid = await other.fetchval("SELECT pg_current_xact_id()::text::bigint")
            connected = inside(store)
            async with connected.pool.session() as own:
                life = own.life
            assert not await connected.transactions._committed(xid, life)  # noqa: SLF001  as if its answer had been lost

    run(body)


def test_after_a_crash_another_transaction_with_the_same_number_is_not_taken_for_ours(tmp_path: Path) -> None:
    """A server that crashed gives the numbers of transactions that it has forgotten to others, who commit."""

    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await other.execute("BEGIN")
            xid = await other.fetchval("SELECT pg_current_xact_id()::text::bigint")
            await other.execute("COMMIT")
            connected = inside(store)
            async with connected.pool.session() as own:
                life = own.life
            assert life is not None
            committed = connected.transactions._committed  # noqa: SLF001  as if its answer had been lost
            assert await committed(xid, life)
            assert not await committed(xid, "before the crash")
            assert not await committed(xid, None)

    run(body)


def test_what_was_committed_before_a_crash_is_met_when_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to COMMIT is lost with the server's life: nobody can say what became of it, so it is done again."""
    monkeypatch.setattr(session_module, "LIFE", "SELECT clock_timestamp()::text")  # another life with every connection

    async def body() -> None:
        cable = Cable(postgres_url(tmp_path))
        async with serving(cable, postgres_url(tmp_path)) as url:
            store = PostgresStore(url)
            await store.open()
            cable.cut_once("COMMIT", "after")
            assert await store.commit(0, [accept("m-1")]) == [Duplicate(same=True)]
            cable.cut_once("COMMIT", "before")
            assert isinstance((await store.commit(0, [accept("m-2")]))[0], Committed)
            assert [row.message_id for row in await store.inbox(order(), 10)] == ["m-1", "m-2"]
            await store.close()

    run(body)
