"""Bodies compressed and encrypted on their way to the store (C12), and erased with their key."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from mainspring import FeedEntry, Mainspring, Received
from mainspring.analysis.what_if.check import check_file
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.errors import DamagedRecordError, DuplicateIdError, ErasedError, OperationError
from mainspring.port.records import Ref
from mainspring.sealing import About, Compressed, Encrypted, FileKeys, Seal, StaticKeys
from mainspring.stores.memory import MemoryStore
from mainspring.testing.samples import Counted
from tests.engine.coordination.meters import Install, Read, StateMeter, metering
from tests.engine.jobs import Done, Job, Start, Work, job
from tests.support.postgres.server import Unavailable, postgres_url
from tests.support.running import run
from tests.support.waiting import until

OLD, NEW = bytes(range(32)), bytes(range(32, 64))


class MakeSealedApp(Protocol):
    def __call__(
        self, seal: Seal | list[Seal] | None, handle: Callable[[Work], Awaitable[Done]] = ..., /
    ) -> Mainspring: ...


async def work(command: Work) -> Done:
    return Done(command.id, command.part)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make_sealed_app(request: pytest.FixtureRequest, tmp_path: Path) -> MakeSealedApp:
    url = f"sqlite:///{tmp_path / 'test.db'}"
    if request.param == "postgres":
        try:
            url = postgres_url(tmp_path)
        except Unavailable as reason:
            pytest.skip(str(reason))
    shared = MemoryStore(SystemClock()) if request.param == "memory" else None

    def make(seal: Seal | list[Seal] | None, handle: Callable[[Work], Awaitable[Done]] = work, /) -> Mainspring:
        return job(Mainspring(url, seal=seal, store=shared, runtime=Runtime()), handle)

    return make


async def stored(app: Mainspring) -> list[bytes]:
    """The bodies as the database has them, past the seal."""
    return [event.body for _, _, event in await internals_of(app).engine.store.feed(0, 1_000) if event.body is not None]


def test_nothing_of_a_message_is_readable_in_the_database(make_sealed_app: MakeSealedApp) -> None:
    async def main() -> None:
        async with make_sealed_app([Compressed(), Encrypted(StaticKeys({"2026": NEW}))]) as app:
            await (await app.send(Start("j-secret", times=3))).result()
            assert any(b"j-secret" in body for body in await stored(app))
        async with make_sealed_app(None) as bare:
            bodies = await stored(bare)
            assert bodies
            assert not any(b"j-secret" in body for body in bodies)

    run(main)


def test_a_seal_can_be_put_on_a_database_in_use(make_sealed_app: MakeSealedApp) -> None:
    async def main() -> None:
        async with make_sealed_app(None) as app:
            await (await app.send(Start("before", times=2), id="m-1")).result()
        async with make_sealed_app(Encrypted(StaticKeys({"2026": NEW}))) as app:
            await (await app.send(Start("after", times=2))).result()
            assert (await app.instance(Job, "before").row()).status == "completed"
            assert [entry.position for entry in await app.instance(Job, "before").stream()]
            assert (await app.send(Start("before", times=2), id="m-1")).status == "duplicate"

    run(main)


def test_after_a_rotation_old_bodies_are_read_and_repeated_messages_known(make_sealed_app: MakeSealedApp) -> None:
    async def main() -> None:
        async with make_sealed_app(Encrypted(StaticKeys({"2025": OLD}))) as app:
            await (await app.send(Start("j-1", times=2), id="m-1")).result()
        async with make_sealed_app(Encrypted(StaticKeys({"2026": NEW, "2025": OLD}))) as app:
            assert (await app.send(Start("j-1", times=2), id="m-1")).status == "duplicate"
            with pytest.raises(DuplicateIdError):
                await app.send(Start("j-1", times=3), id="m-1")
            await app.instance(Job, "j-1").state()

    run(main)


def test_destroying_a_subjects_key_erases_its_data_and_no_other(make_sealed_app: MakeSealedApp, tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance)

    async def main() -> None:
        async with make_sealed_app(seal) as app:
            await (await app.send(Start("ann"))).result()
            await (await app.send(Start("bob"))).result()
        assert keys.destroy("ann") == 1
        async with make_sealed_app(seal) as app:
            rows = await internals_of(app).engine.store.stream(Ref("Job", "ann"), 0, 100)
            assert {row.type for row in rows if row.type} == {"erased:Start", "erased:Work", "erased:Done"}
            assert [row.version for row in rows] == list(range(1, len(rows) + 1))
            with pytest.raises(ErasedError, match="erased"):
                await app.instance(Job, "ann").state()
            await app.instance(Job, "bob").state()
            # Who comes back gets a new key; what was erased stays erased.
            await (await app.send(Start("ann-2"))).result()

    run(main)


def test_an_erased_document_is_none_any_more_and_stops_no_projection(
    make_sealed_app: MakeSealedApp, tmp_path: Path
) -> None:
    keys = FileKeys(tmp_path / "keys")
    # Documents are about a key, and belong to no workflow.
    seal = Encrypted(keys, subject=lambda about, _: None if about.workflow else about.instance)

    def make() -> Mainspring:
        app = make_sealed_app(seal)

        @app.projections.add(key=lambda entry: entry.instance)
        def counts(document: Counted | None, entry: FeedEntry) -> Counted | None:
            return Counted((document or Counted()).times + isinstance(entry.event, Received))

        return app

    async def main() -> None:
        async with make() as app:
            for id in ("ann", "bob", "eve"):
                await app.send(Start(id, times=0))
            await app.projections("counts").caught_up()
        keys.destroy("ann")
        async with make() as app:
            counts = app.projections("counts")
            assert await counts.get("ann") is None
            assert await counts.list(limit=2) == [("bob", Counted(1)), ("eve", Counted(1))]
            await app.send(Done("ann", 0))
            await counts.caught_up()
            assert await counts.get("ann") == Counted(1)

    run(main)


def test_a_running_instance_whose_data_were_erased_is_suspended_and_says_why(
    make_sealed_app: MakeSealedApp, tmp_path: Path
) -> None:
    keys = FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance)

    async def main() -> None:
        async with make_sealed_app(seal) as app:
            await app.send(Start("ann", times=0))
        keys.destroy("ann")
        async with make_sealed_app(seal) as app:
            receipt = await app.send(Done("ann", 0))
            assert receipt.status == "suspended"
            assert "erased" in str((await app.instance(Job, "ann").row()).error)

    run(main)


def test_an_instance_that_was_suspended_before_its_data_were_erased_goes_on_from_no_memory_of_them(
    make_sealed_app: MakeSealedApp, tmp_path: Path
) -> None:
    keys = FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance)

    async def main() -> None:
        async with make_sealed_app(seal) as app:
            await app.send(Start("ann", times=0))
            await app.instance(Job, "ann").suspend("her data are to be erased")
            keys.destroy("ann")
            await app.instance(Job, "ann").resume()
            receipt = await app.send(Done("ann", 0))
            assert receipt.status == "suspended"
            assert "erased" in str((await app.instance(Job, "ann").row()).error)

    run(main)


def test_a_worker_that_has_an_instance_in_memory_writes_nothing_of_it_once_its_data_are_erased(
    make_sealed_app: MakeSealedApp, tmp_path: Path
) -> None:
    keys, operator = FileKeys(tmp_path / "keys"), FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance)

    async def main() -> None:
        async with make_sealed_app([Compressed(), seal]) as app:
            await app.send(Start("ann", times=0))
            length = len(await app.instance(Job, "ann").stream())
            # Another process destroys it, and somebody looks before the worker meets it again.
            operator.destroy("ann")
            await internals_of(app).engine.store.load([Ref("Job", "ann")])
            receipt = await app.send(Done("ann", 0))
            assert receipt.status == "suspended"
            assert "erased" in str((await app.instance(Job, "ann").row()).error)
            rows = await internals_of(app).engine.store.stream(Ref("Job", "ann"), 0, 100)
            assert {row.type for row in rows[:length] if row.type} == {"erased:Start"}
            # An operator can still end it.
            await app.instance(Job, "ann").terminate("her data are erased")
            assert (await app.instance(Job, "ann").row()).status == "terminated"

    run(main)


def test_a_state_that_is_all_that_is_kept_is_not_written_again_once_it_is_erased(
    make_sealed_app: MakeSealedApp, tmp_path: Path
) -> None:
    keys = FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance)

    async def main() -> None:
        async with metering(make_sealed_app(seal), StateMeter()) as app:
            await app.send(Install("ann"))
            await app.send(Read("ann", 3))
            keys.destroy("ann")
            receipt = await app.send(Read("ann", 1))
            assert receipt.status == "suspended"
            with pytest.raises(ErasedError):
                await app.instance(StateMeter, "ann").state()

    run(main)


def test_the_result_of_a_command_that_was_erased_meanwhile_is_not_kept(
    make_sealed_app: MakeSealedApp, tmp_path: Path
) -> None:
    keys = FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance.removesuffix(" again"))
    began, goes_on, carried_out = asyncio.Event(), asyncio.Event(), list[str]()

    async def main() -> None:
        app = make_sealed_app(seal, handle)
        async with app:
            await app.send(Start("ann"))
            await began.wait()
            keys.destroy("ann")
            # Who comes back meanwhile is served, and no command of hers is carried out twice.
            goes_on.set()
            await (await app.send(Start("ann again", times=3))).result()
            assert carried_out == ["ann", *["ann again"] * 3]
            # Nobody heard of the result. What was asked for is given back as lost, and found to be erased.
            rows = await internals_of(app).engine.store.stream(Ref("Job", "ann"), 0, 100)
            assert [row.type for row in rows] == [None, "erased:Start", "erased:Work"]
            assert not await internals_of(app).engine.store.inbox(Ref("Job", "ann"), 10)
            await until(lambda: erased_letter(app))
            assert carried_out == ["ann", *["ann again"] * 3]

    async def handle(command: Work) -> Done:
        carried_out.append(command.id)
        began.set()
        await goes_on.wait()
        return Done(command.id, command.part)

    async def erased_letter(app: Mainspring) -> bool:
        await internals_of(app).engine.strays.look()
        return [letter.type for letter in await app.dead_letters()] == ["erased:Work"]

    run(main)


def test_an_archive_is_sealed_as_the_database_is_and_read_with_its_keys(
    make_sealed_app: MakeSealedApp, tmp_path: Path
) -> None:
    keys, archive = FileKeys(tmp_path / "keys"), tmp_path / "archive.jsonl"
    seal = Encrypted(keys, subject=lambda about, _: about.instance)

    async def main() -> None:
        async with make_sealed_app(seal) as app:
            await (await app.send(Start("ann", times=2))).result()
            await (await app.send(Start("bob", times=2))).result()
            await until(lambda: app.purge(older_than=timedelta(0), archive=archive))

    run(main)
    assert b'"part"' not in archive.read_bytes()
    assert check_file(make_sealed_app(seal), archive).compared.decisions == 6
    keys.destroy("ann")
    report = check_file(make_sealed_app(seal), archive)
    assert (report.instances, report.compared.decisions) == (2, 3)
    with pytest.raises(OperationError, match="sealed in this file"):
        check_file(make_sealed_app(None), archive)


def test_a_body_moved_to_another_instance_is_noticed() -> None:
    seal = Encrypted(StaticKeys({"2026": NEW}))
    moved = seal.close(b'{"amount":1}', About("Order", "o-1"))
    with pytest.raises(DamagedRecordError):
        seal.open(moved, About("Order", "o-2"))


@pytest.mark.parametrize("damage", [slice(0, -1), slice(0, 10), slice(0, 2)])
def test_a_damaged_body_is_an_error_and_no_body(damage: slice) -> None:
    about = About("Order", "o-1")
    for seal in (Compressed(least_bytes=1), Encrypted(StaticKeys({"2026": NEW}))):
        with pytest.raises(DamagedRecordError):
            seal.open(seal.close(b'{"text":"' + b"again " * 100 + b'"}', about)[damage], about)


def test_a_key_that_is_not_here_hides_its_own_instances_only(make_sealed_app: MakeSealedApp) -> None:
    async def main() -> None:
        async with make_sealed_app(Encrypted(StaticKeys({"2025": OLD}))) as app:
            await app.send(Start("old", times=0))
        async with make_sealed_app(Encrypted(StaticKeys({"2026": NEW}))) as app:
            await (await app.send(Start("new"))).result()
            with pytest.raises(DamagedRecordError, match="'2025', which is not here"):
                await app.instance(Job, "old").state()

    run(main)


def test_two_processes_that_make_a_subjects_key_at_once_agree(tmp_path: Path) -> None:
    first, second = FileKeys(tmp_path), FileKeys(tmp_path)
    assert first.current("ann") == second.current("ann")
    assert first.current("ann") != first.current("bob")


def test_a_key_that_is_being_destroyed_is_gone_already(tmp_path: Path) -> None:
    old = FileKeys(tmp_path).current("ann")
    # As `destroy` leaves it between two of its steps, should the power go.
    (tmp_path / f"{old.id}.gone").touch()
    assert FileKeys(tmp_path).find(old.id) is None
    (tmp_path / f"{old.id}.key").write_bytes(bytes(32))
    keys = FileKeys(tmp_path)
    assert keys.find(old.id) is None
    assert keys.current("ann").id != old.id


def test_a_key_that_is_destroyed_while_it_is_read_seals_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, other, read = FileKeys(tmp_path), FileKeys(tmp_path), Path.read_bytes
    old = other.current("ann")

    def overtaken(path: Path) -> bytes:
        monkeypatch.setattr(Path, "read_bytes", read)
        assert other.destroy("ann") == 1
        return bytes(32)

    monkeypatch.setattr(Path, "read_bytes", overtaken)
    found = keys.current("ann")
    assert found.id != old.id
    assert found.secret != bytes(32)


def test_of_many_keys_few_are_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.sealing.keys.KEYS_KEPT", 2)
    keys = FileKeys(tmp_path)
    made = [keys.current(f"customer-{number}") for number in range(5)]
    assert [keys.find(key.id) for key in made] == [key.secret for key in made]
    assert len(keys._known) <= 2  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  nothing else shows it
