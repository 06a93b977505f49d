"""A key is destroyed at any moment of a scenario: nothing that it sealed is ever readable under another one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.port.records import InstanceFilter, Ref
from mainspring.sealing import Encrypted, FileKeys, Key
from mainspring.stores.memory import MemoryStore
from tests.proof.secrets.looking import in_bytes, in_files, in_server
from tests.proof.secrets.test_sealed_bytes import read_all
from tests.proof.secrets.vault import Do, Hear, Jot, Open, Vault, add_all, secret
from tests.support.postgres.schemas import clean_schema
from tests.support.running import run
from tests.support.waiting import until

WAYS: Final = (
    *("works", "is tried again", "gives up", "breaks", "is undone", "raises", "fails", "completes"),
    *("asks", "waits", "replies", "publishes", "begins a child", "fans out", "is told", "is jotted"),
)
SUBJECT: Final = "ann"


class DoomedKeys:
    """Keys that somebody else destroys right before they are asked for the n-th time."""

    def __init__(self, directory: Path) -> None:
        self._keys = FileKeys(directory)
        self._operator = FileKeys(directory)
        self.asked_before = 0
        self.doomed_at = 0

    @property
    def destroyed(self) -> bool:
        """Whether it has happened."""
        return 0 < self.doomed_at <= self.asked_before

    def destroy(self) -> None:
        """Destroy the keys now, if they were not before."""
        if not self.destroyed:
            self.doomed_at = self.asked_before = 1
            assert self._operator.destroy(SUBJECT) == 1

    def _ask(self) -> None:
        if self.doomed_at:
            self.asked_before += 1
            if self.asked_before == self.doomed_at:
                assert self._operator.destroy(SUBJECT) == 1

    def current(self, subject: str | None) -> Key:
        self._ask()
        return self._keys.current(subject)

    def find(self, id: str) -> bytes | None:
        self._ask()
        return self._keys.find(id)


async def at_rest(app: Mainspring) -> None:
    """Wait until nothing is in this worker's hands."""
    engine = internals_of(app).engine

    def rests() -> bool:
        return engine.committer.idle and not engine.dispatcher.in_hand and not engine.stepper.in_hand

    await until(rests)


async def readable(app: Mainspring, way: str) -> set[str]:
    """Return the secrets that can be read with the keys that are there."""
    store, told = internals_of(app).engine.store, [await read_all(app)]
    for row in await store.instances(InstanceFilter(), 1_000):
        told.append(repr(await store.attempts(Ref(row.workflow, row.id), 100)).encode())
        told.append(repr(row).encode())
    told.append(repr(await store.remembered(f"works:{way}")).encode())
    told.append(repr(await app.tasks.list(role="manager")).encode())
    return in_bytes(b"\n".join(told))


async def begin(app: Mainspring, way: str) -> None:
    """Let a secret into an instance's state."""
    await app.send(Jot(way, secret("opens")) if way == "is jotted" else Open(way, secret("opens")))


async def go_on(app: Mainspring, way: str) -> None:
    """Let another secret go its way."""
    if way == "is jotted":
        await app.send(Jot(way, secret(way)))
    elif way == "is told":
        await app.send(Hear(way, secret(way)))
    else:
        await app.send(Do(way, way, secret(way)))


async def poke(app: Mainspring, way: str) -> None:
    """Let whatever is in memory be used once more."""
    if way == "is jotted":
        await app.send(Jot(way, "nothing"))
    else:
        for next_way in ("works", "asks", "is undone"):
            await app.send(Do(way, next_way, "nothing"))
    # Who comes back is served.
    await app.send(Open(f"{way}, later", "nothing"))
    await app.send(Do(f"{way}, later", "works", "nothing"))


async def destroyed_at(app: Mainspring, keys: DoomedKeys, way: str, place: int) -> bool:
    """Go a way, with the keys destroyed when they are used the n-th time on it. Return False if they never were."""
    await begin(app, way)
    await at_rest(app)
    keys.doomed_at = place
    await go_on(app, way)
    # What a sender still had in hand when the key was destroyed came after it.
    came_after = {secret(way)} if keys.destroyed else set[str]()
    await at_rest(app)
    within = keys.destroyed
    keys.destroy()
    await poke(app, way)
    await at_rest(app)
    found = await readable(app, way)
    assert found <= came_after, f"{way}, destroyed at {place}: {found}"
    later = f"{way}, later"
    await until(lambda: _took_once(app, later))
    return within


async def _took_once(app: Mainspring, id: str) -> bool:
    """What one who came back asked for is done, and was not tried twice."""
    types = [
        row.type
        for row in await internals_of(app).engine.store.stream(Ref("Vault", id), 0, 100)
        if row.event == "Received"
    ]
    assert types.count("Told") <= 1
    return "Told" in types and (await app.instance(Vault, id).row()).status == "running"


def app_of(keys: DoomedKeys, url: str, store: MemoryStore | None = None) -> Mainspring:
    app = Mainspring(url, seal=Encrypted(keys, subject=lambda _, __: SUBJECT), store=store, runtime=Runtime())
    add_all(app, purging=True)
    return app


@pytest.mark.parametrize("way", WAYS)
def test_what_a_key_sealed_is_read_no_more_whenever_it_was_destroyed(way: str, tmp_path: Path) -> None:
    async def main() -> None:
        for place in count(1):
            keys = DoomedKeys(tmp_path / str(place))
            async with app_of(keys, "memory://", MemoryStore(SystemClock())) as app:
                if not await destroyed_at(app, keys, way, place):
                    assert place > 2
                    return

    run(main)


@contextmanager
def own_database(store: str, folder: Path) -> Generator[str]:
    """Give the URL of a database that nobody else uses."""
    if store == "sqlite":
        yield f"sqlite:///{folder / 'vault.db'}"
    else:
        with clean_schema() as url:
            yield url


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("place", [1, 4, 9, 15, 1_000])
def test_nor_is_it_in_a_database(store: str, place: int, tmp_path: Path) -> None:
    async def go(way: str, folder: Path, url: str) -> None:
        keys = DoomedKeys(tmp_path / "keys" / way)
        async with app_of(keys, url) as app:
            await destroyed_at(app, keys, way, place)
            assert in_files(folder) == {}
        assert in_files(folder) == {}
        # The server's files are read once, after the last way: they hold what all of them left.
        assert store == "sqlite" or await in_server(url, files=way == WAYS[-1]) == {}

    for way in WAYS:
        folder = tmp_path / way.replace(" ", "-")
        folder.mkdir()
        with own_database(store, folder) as url:
            run(partial(go, way, folder, url))
