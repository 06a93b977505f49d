"""No byte of what came by schedules, deadlines, brokers, batches, pools of processes and posts is readable anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.sealing import About, Encrypted, FileKeys, Seal
from tests.edges.telemetry.spans import Spans
from tests.proof.secrets.looking import in_bytes, in_files, in_server
from tests.proof.secrets.strongroom import POSTED, WAYS, Strongroom, post
from tests.proof.secrets.test_sealed_bytes import read_all, write_out
from tests.proof.secrets.vault import secret
from tests.support.postgres.server import postgres_url
from tests.support.running import run
from tests.support.waiting import until

SECRETS = {secret(way) for way in WAYS}


def made(url: str, seal: Seal | None, spans: Spans) -> Strongroom:
    app = Mainspring(url, seal=seal, processes=1)
    app.observe(traces=spans.provider, metrics=True, logs=True)
    return Strongroom(app)


async def reasons(room: Strongroom) -> bytes:
    """Return why something is paused, as it is told."""
    told = [await room.app.pauses.list(), await internals_of(room.app).services.sources["in"].paused()]
    return repr(told).encode()


async def gone(url: str, seal: Seal | None, folder: Path) -> None:
    """Let all secrets go, and write out what can be."""
    spans = Spans()
    room = made(url, seal, spans)
    async with room.app:
        await room.go()
        assert in_bytes(await read_all(room.app) + await reasons(room)) >= SECRETS
        await write_out(room.app, folder, spans)


def test_the_search_finds_every_one_of_them_where_there_is_no_seal(logged: Path) -> None:
    run(lambda: gone(f"sqlite:///{logged / 'room.db'}", None, logged))
    found = in_files(logged)
    assert set().union(*found.values()) == SECRETS
    assert found["log.txt"] & found["log.json"] >= {secret("fails in a batch"), secret("fails in a process")}


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_none_of_them_is_to_be_read_before_and_after_its_erasure(store: str, logged: Path, tmp_path: Path) -> None:
    keys, subjects = FileKeys(tmp_path / "keys"), set[str]()

    def subject(about: About, _: bytes) -> str:
        if "nightly" in about.workflow or about.instance == "nightly":
            return "the house"  # a schedule is nobody's: what it sends is written in code
        subjects.add(about.instance or "nobody")
        return about.instance or "nobody"

    url = f"sqlite:///{logged / 'room.db'}" if store == "sqlite" else postgres_url(tmp_path)
    seal = Encrypted(keys, subject=subject)

    async def found() -> dict[str, set[str]]:
        return in_files(logged) | ({} if store == "sqlite" else await in_server(url))

    async def main() -> None:
        await gone(url, seal, logged)
        assert await found() == {}
        spans = Spans()
        if store == "postgres":
            await post(made(url, seal, spans).app, url)
            assert await found() == {}
        room = made(url, seal, spans)
        async with room.app:
            if store == "postgres":
                await until(lambda: has_taken(room))
                assert in_bytes(await read_all(room.app)) >= {secret(POSTED)}
            await room.app.pauses.resume("Rest")
            await internals_of(room.app).services.sources["in"].resume()
        assert await found() == {}
        for one in subjects:
            keys.destroy(one)
        room = made(url, seal, spans)
        async with room.app:
            assert in_bytes(await read_all(room.app) + await reasons(room)) == {secret("is scheduled")}
            await write_out(room.app, logged, spans)
        assert await found() == {}

    run(main)


async def has_taken(room: Strongroom) -> bool:
    return any(row.id == POSTED for row in await room.app.instances(limit=100))
