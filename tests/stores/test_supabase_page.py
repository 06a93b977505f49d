"""What the page on Supabase says is so behind PgBouncer in transaction mode: its users, its check, its queue.

pgmq is an extension that no wheel brings: functions of the same names stand in for it here.
"""

import asyncio
import re
import runpy
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring import Mainspring
from mainspring.errors import StoreError
from mainspring.stores.postgres import PostgresStore
from tests.support.paths import ROOT
from tests.support.postgres.pgbouncer import pgbouncer
from tests.support.postgres.proxy import through
from tests.support.postgres.server import Server, Unavailable
from tests.support.running import run
from tests.support.waiting import until

PAGE = (ROOT / "docs/how-to/supabase.md").read_text()
PROGRAM = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
USERS, GRANTS, CHECK, QUEUE = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

# As in a project: the editor's user is no superuser, and the roles of the Data API are there.
PROJECT = """
CREATE ROLE editor LOGIN CREATEROLE; GRANT CREATE ON DATABASE postgres TO editor;
CREATE ROLE anon; CREATE ROLE authenticated; CREATE ROLE service_role; CREATE PUBLICATION supabase_realtime;
GRANT CREATE ON SCHEMA public TO editor; CREATE SCHEMA pgmq; GRANT ALL ON SCHEMA pgmq TO editor WITH GRANT OPTION;
"""
PGMQ = """
CREATE FUNCTION pgmq.create(queue_name text) RETURNS void LANGUAGE plpgsql AS $f$ BEGIN EXECUTE format(
    'CREATE TABLE pgmq.q_%s (msg_id bigint GENERATED ALWAYS AS IDENTITY, message jsonb)', queue_name); END $f$;
CREATE FUNCTION pgmq.send(queue_name text, msg jsonb) RETURNS SETOF bigint LANGUAGE plpgsql AS $f$ BEGIN
    RETURN QUERY EXECUTE format('INSERT INTO pgmq.q_%s (message) VALUES ($1) RETURNING msg_id', queue_name) USING msg;
END $f$;
CREATE FUNCTION pgmq.pop(queue_name text) RETURNS TABLE (msg_id bigint, message jsonb) LANGUAGE plpgsql AS $f$ BEGIN
    RETURN QUERY EXECUTE format('DELETE FROM pgmq.q_%1$s WHERE msg_id = (SELECT msg_id FROM pgmq.q_%1$s
        ORDER BY msg_id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING msg_id, message', queue_name); END $f$;
CREATE TABLE public.orders (id text PRIMARY KEY);
"""


class Project:
    """A server as a project of Supabase has it, as far as that matters here, and a pooler before it."""

    def __init__(self, server: Server, port: int) -> None:
        self.server, self.port = server, port

    def url(self, user: str) -> str:
        """Return the URL of the page for a user, through the pooler."""
        url = through(self.server.url.replace("postgres@", f"{user}@"), self.port)
        return f"{url}&schema=orders&pooler=transaction"

    async def ask(self, script: str, user: str = "editor") -> list[Any]:
        """Run SQL past the pooler, as the editor does."""
        library: Any = asyncpg
        connection = await library.connect(self.server.url.replace("postgres@", f"{user}@"))
        try:
            return await connection.fetch(script) if script is CHECK else await connection.execute(script)
        finally:
            await connection.close()


@pytest.fixture(scope="module")
def project() -> Generator[Project]:
    try:
        server = Server(settings={"fsync": "off"})
        server.start()
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    try:
        with pgbouncer(urlsplit(server.url).port, ("shop", "shop_worker", "anon")) as port:
            found = Project(server, port)

            async def set_up() -> None:
                await found.ask(PROJECT, "postgres")
                await found.ask(USERS)
                async with Mainspring(found.url("shop")):  # makes the tables
                    pass
                await found.ask(GRANTS)

            asyncio.run(set_up())
            yield found
    finally:
        server.remove()


def test_the_worker_of_the_page_moves_what_a_trigger_put_into_a_queue_once(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_STORE", project.url("shop_worker"))
    (tmp_path / "page.py").write_text(PROGRAM)
    page = runpy.run_path(str(tmp_path / "page.py"))

    async def body() -> None:
        await project.ask(PGMQ)
        await project.ask(QUEUE)
        async with page["app"] as app:
            await project.ask("INSERT INTO public.orders VALUES ('o-1'), ('o-2')")
            assert [await page["move"]("orders") for _ in range(3)] == [True, True, False]

            async def all_done() -> bool:
                return (await app.stats()).instances.get("completed") == 2

            await until(all_done)

    run(body)


def test_a_worker_of_the_page_may_not_change_tables(project: Project) -> None:
    async def body() -> None:
        library: Any = asyncpg
        with pytest.raises(library.InsufficientPrivilegeError):
            await project.ask("CREATE TABLE orders.more (id text)", "shop_worker")

    run(body)


def test_tables_of_a_later_release_can_be_used_by_workers_too(project: Project) -> None:
    async def body() -> None:
        await project.ask("CREATE TABLE orders.later (id bigint GENERATED ALWAYS AS IDENTITY)", "shop")
        await project.ask("INSERT INTO orders.later DEFAULT VALUES", "shop_worker")
        await project.ask("DROP TABLE orders.later", "shop")

    run(body)


def test_the_check_of_the_page_finds_nothing_and_then_each_mistake(project: Project) -> None:
    mistakes = {
        "GRANT USAGE ON SCHEMA orders TO anon": "reached by anon",
        "ALTER PUBLICATION supabase_realtime ADD TABLE orders.events": "told to Realtime: events",
        "ALTER TABLE orders.inbox ENABLE ROW LEVEL SECURITY": "row level security: inbox",
    }

    async def body() -> None:
        assert await project.ask(CHECK) == []
        for mistake in mistakes:
            await project.ask(mistake, "postgres")
        assert {row["wrong"] for row in await project.ask(CHECK)} == set(mistakes.values())
        await project.ask("REVOKE USAGE ON SCHEMA orders FROM anon", "postgres")
        await project.ask("ALTER PUBLICATION supabase_realtime DROP TABLE orders.events", "postgres")
        await project.ask("ALTER TABLE orders.inbox DISABLE ROW LEVEL SECURITY", "postgres")

    run(body)


def test_the_data_api_s_role_is_let_in_nowhere(project: Project) -> None:
    async def body() -> None:
        await project.ask("ALTER ROLE anon LOGIN", "postgres")
        with pytest.raises(StoreError, match="not allowed to this user"):
            await PostgresStore(project.url("anon")).open()

    run(body)
