"""Several hosts in one URL: each has its own time, and the one that answers is asked first from then on."""

import socket
from collections.abc import Generator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring.errors import SettingError, StoreUnreachableError
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.address import Address
from mainspring.testing.clock import VirtualClock
from tests.support.postgres.schemas import clean_schema
from tests.support.running import run
from tests.support.waiting import PATIENCE_SECONDS

SOON_SECONDS = 0.2


class Hung:
    """A host that lets everybody in and never says a word, as one does whose power is cut behind a proxy.

    The system lets them in. No thread does: one that is late would count too few, or keep a line open behind its test.
    """

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self._held: list[socket.socket] = []
        self.host = f"127.0.0.1:{self._listening.getsockname()[1]}"

    @property
    def calls(self) -> int:
        with suppress(BlockingIOError):
            while True:
                self._held.append(self._listening.accept()[0])
        return len(self._held)

    def close(self) -> None:
        self._listening.close()
        for one in self._held:
            one.close()


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> Generator[Hung]:
    """A host that hangs, and is given up soon. What answers has its time, on a busy machine too."""
    found = Hung()
    library: Any = asyncpg
    connect = library.connect

    async def hurried(dsn: str, **settings: Any) -> Any:
        return await connect(dsn, **(settings | {"timeout": SOON_SECONDS if found.host in dsn else PATIENCE_SECONDS}))

    monkeypatch.setattr(asyncpg, "connect", hurried)
    yield found
    found.close()


def among(url: str, *hosts: str, **settings: str) -> str:
    """Return the URL with other hosts, of which {} is the one that it has."""
    netloc = urlsplit(url).netloc
    user, at, own = netloc.rpartition("@")
    listed = ",".join(hosts).format(own)
    return url.replace(netloc, f"{user}{at}{listed}") + "".join(f"&{name}={value}" for name, value in settings.items())


def test_a_host_that_hangs_does_not_keep_the_next_from_being_tried_and_is_asked_once(hung: Hung) -> None:
    async def main() -> None:
        store = PostgresStore(among(url, hung.host, "{}", target_session_attrs="primary"), VirtualClock())
        await store.open()
        try:
            await store.register_worker("w", 60_000_000)
            assert [row.name for row in await store.workers()] == ["w"]
            assert hung.calls == 1
        finally:
            await store.close()

    with clean_schema() as url:
        run(main)


def test_where_no_host_lets_anybody_in_each_says_why(hung: Hung) -> None:
    async def main() -> None:
        store = PostgresStore(among(url, hung.host, "{}", target_session_attrs="standby"), VirtualClock())
        with pytest.raises(StoreUnreachableError) as error:
            await store.open()
        first, second = str(error.value).split("; ", 1)
        assert first.endswith(f"({hung.host}: no answer within 5 s")
        assert "standby" in second
        assert "Look at the server and the network" in second

    with clean_schema() as url:
        run(main)


def test_hosts_of_which_one_is_preferred_are_asked_together() -> None:
    url = "postgresql://shop@db-1,db-2/shop?target_session_attrs=prefer-standby"

    assert [*Address(url).dsns] == ["db-1,db-2"]
    assert [*Address(url.replace("prefer-", "")).dsns] == ["db-1", "db-2"]


@pytest.mark.parametrize(
    ("host", "query", "each"),
    [
        ("", "?host=db-1,db-2", ["db-1", "db-2"]),
        ("shop@", "?host=db-1:6432,db-2", ["db-1:6432", "db-2"]),
        ("shop:secret@", "?port=6432&host=db-1,db-2", ["db-1:6432", "db-2:6432"]),
        ("", "?host=/run/postgresql,[::1]&port=6432,6433", ["%2Frun%2Fpostgresql:6432", "[::1]:6433"]),
        ("", "?host=db-1", [""]),
        ("", "?host=db-1,db-2&target_session_attrs=prefer-standby", [""]),
    ],
)
def test_hosts_behind_the_question_mark_are_asked_one_by_one_too(host: str, query: str, each: list[str]) -> None:
    address = Address(f"postgresql://{host}/shop{query}")

    assert [*address.dsns] == each
    taken = len(each) > 1
    assert not taken or all("host=" not in dsn and "port=" not in dsn for dsn in address.dsns.values())


def test_hosts_that_the_environment_names_are_asked_one_by_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db-1,db-2")

    assert [*Address("postgresql:///shop").dsns] == ["db-1", "db-2"]
    assert [*Address("postgresql://db-3/shop").dsns] == ["db-3"]


def test_a_host_behind_the_question_mark_that_hangs_does_not_keep_the_next_from_being_tried(hung: Hung) -> None:
    async def main() -> None:
        netloc = urlsplit(url).netloc
        user, at, own = netloc.rpartition("@")
        listed = url.replace(netloc, f"{user}{at}") + f"&host={hung.host},{own}"
        store = PostgresStore(listed, VirtualClock())
        await store.open()
        await store.close()
        assert hung.calls

    with clean_schema() as url:
        run(main)


def test_ports_that_cannot_be_told_apart_are_refused_with_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingError, match=r"1,2,3.*Name one for each host: postgresql://user@db-1:5432,db-2:5433"):
        Address("postgresql:///shop?host=db-1,db-2&port=1,2,3")
    monkeypatch.setenv("PGPORT", "5432,5433")
    with pytest.raises(SettingError, match=r"PGPORT.*Unset it"):
        Address("postgresql://db-1,db-2/shop")
