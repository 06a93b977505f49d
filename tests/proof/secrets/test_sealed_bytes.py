"""No byte of what a seal hides is in the database, in a log, in a span, or in what is written out; nor once erased."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from mainspring import Mainspring
from mainspring.analysis.export.export import export
from mainspring.app.internals import internals_of
from mainspring.app.scraping import exposition
from mainspring.port.records import ENDED, InstanceFilter, Ref
from mainspring.sealing import About, Encrypted, FileKeys, Seal, StaticKeys
from mainspring.views import DeadLetter
from tests.edges.telemetry.spans import Spans
from tests.proof.secrets.looking import in_bytes, in_files, in_server
from tests.proof.secrets.vault import MARKS, WAYS, Do, Open, Vault, add_all, go, secret
from tests.support.postgres.server import postgres_url
from tests.support.running import run
from tests.support.waiting import until


def make(url: str, seal: Seal | None, spans: Spans, *, purging: bool = False) -> Mainspring:
    app = Mainspring(url, seal=seal)
    app.observe(traces=spans.provider, metrics=True, logs=True)
    add_all(app, purging=purging)
    return app


async def write_out(app: Mainspring, folder: Path, spans: Spans) -> None:
    """Write all that an app tells without being asked for messages."""
    store = internals_of(app).engine.store
    for format in ("jsonl", "xes", "ocel"):
        await export(store, folder / f"export.{format}", format=format)
    await export(store, folder / "packed.jsonl.gz")
    (folder / "metrics").write_bytes((await exposition(app))[0])
    (folder / "spans").write_text("\n".join(span.to_json() for span in spans.all))
    (folder / "kinds").write_text("\n".join(str(worker) for worker in await store.workers()))


async def read_all(app: Mainspring) -> bytes:
    """Return all that can be read through an app, as text."""
    store, told = internals_of(app).engine.store, list[object]()
    rows = await store.instances(InstanceFilter(), 1_000)
    told += [rows, await store.dead_letters(1_000), await store.outputs(None, timers=False, limit=1_000)]
    told += [await store.timers(1_000), await store.checkpoints(), await store.feed(0, 10_000)]
    for row in rows:
        ref = Ref(row.workflow, row.id)
        told += [await store.load([ref]), await store.inbox(ref, 100), await store.stream(ref, 0, 1_000)]
        told += [await store.task(ref, version) for version in range(1, 10)]
    told += [await store.list_documents(name, "", "", 1_000) for name in ("opened_vaults", "failing")]
    return repr(told).encode()


async def gone_every_way(url: str, seal: Seal | None, folder: Path) -> dict[str, set[str]]:
    """Let all secrets go, write out what can be, and return what is found while the database is still open."""
    spans = Spans()
    async with make(url, seal, spans) as app:
        await go(app)
        assert in_bytes(await read_all(app)) >= set(MARKS) - {secret("cannot be routed"), secret("clashes")}
        await write_out(app, folder, spans)
        return in_files(folder)


def test_the_search_finds_every_secret_where_there_is_no_seal(logged: Path) -> None:
    found = run(lambda: gone_every_way(f"sqlite:///{logged / 'vault.db'}", None, logged))
    assert found["vault.db-wal"] >= set(MARKS) - {secret("cannot be routed"), secret("clashes")}
    assert found["log.txt"] & found["log.json"] & found["spans"] >= {secret("raises"), secret("is torn")}


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_what_went_every_way_is_nowhere_to_be_read_before_and_after_its_erasure(
    store: str, logged: Path, tmp_path: Path
) -> None:
    keys, subjects = FileKeys(tmp_path / "keys"), set[str]()

    def subject(about: About, _: bytes) -> str:
        subjects.add(about.instance)
        return about.instance

    url = f"sqlite:///{logged / 'vault.db'}" if store == "sqlite" else postgres_url(tmp_path)

    async def main() -> None:
        seal = Encrypted(keys, subject=subject)
        assert await gone_every_way(url, seal, logged) == {}
        assert store == "sqlite" or await in_server(url) == {}
        spans = Spans()
        async with make(url, seal, spans, purging=True) as app:
            await app.projections("opened_vaults").caught_up()
            report = await app.purge(older_than=timedelta(0), archive=logged / "archive.jsonl")
            assert report.archived > len([way for way in WAYS if WAYS[way] in ENDED])
            assert in_files(logged) == {}
        for one in subjects:
            keys.destroy(one)
        async with make(url, seal, spans) as app:
            assert in_bytes(await read_all(app)) == set()
            await write_out(app, logged, spans)
        assert in_files(logged) == {}
        assert store == "sqlite" or await in_server(url) == {}

    run(main)


async def two_of(app: Mainspring) -> list[DeadLetter] | None:
    letters = await app.dead_letters()
    return letters if len(letters) == 2 else None


async def is_cleared(app: Mainspring, projection: str) -> bool:
    return [each.generation for each in await internals_of(app).engine.store.checkpoints(projection)] == [2]


def test_what_was_written_before_the_seal_goes_by_the_way_that_the_docs_tell(tmp_path: Path) -> None:
    def vaults(seal: Seal | None, *, purging: bool = False) -> Mainspring:
        app = Mainspring(f"sqlite:///{tmp_path / 'vault.db'}", seal=seal)
        add_all(app, purging=purging)
        return app

    async def main() -> None:
        async with vaults(None) as app:
            for way in ("raises", "gives up", "fails", "is tried again"):
                await app.send(Open(way, secret("opens")))
                await app.send(Do(way, way, secret(way)))
            await until(app.dead_letters)
        assert in_files(tmp_path)
        seal = Encrypted(StaticKeys({"2026": bytes(32)}))
        async with vaults(seal, purging=True) as app:
            for way in ("raises", "gives up", "is tried again"):
                await app.instance(Vault, way).terminate("done with it")
            letters = await until(lambda: two_of(app))  # what it failed on, and what its handler gave up
            for letter in letters:
                await app.discard_dead_letter(letter.id)
            await app.projections("opened_vaults").caught_up()
            assert (await app.purge(older_than=timedelta(0))).instances == 4
        async with vaults(seal) as app:
            for name in ("opened_vaults", "failing"):
                await app.projections(name).rebuild()
                await until(lambda name=name: is_cleared(app, name))
        apsw.Connection(str(tmp_path / "vault.db")).execute("VACUUM").close()
        assert in_files(tmp_path) == {}

    run(main)
