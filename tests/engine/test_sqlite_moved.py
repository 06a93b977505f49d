"""A SQLite file that goes from its place under a worker: nothing is acknowledged any more, and the worker says why."""

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from mainspring import Mainspring
from mainspring.errors import StoreMovedError
from mainspring.stores.sqlite import place
from tests.engine.jobs import Done, Start, Work, job
from tests.stores.sqlite_support import NAME
from tests.support.running import run


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Let a worker notice by its next heartbeat that it cannot go on, and that one come soon."""
    monkeypatch.setattr("mainspring.engine.engine.HEARTBEAT_SECONDS", 0.05)


def _delete(path: Path) -> None:
    for file in path.parent.glob(f"{NAME}*"):
        file.unlink()


def _delete_the_log(path: Path) -> None:
    path.with_name(f"{NAME}-wal").unlink()


def _delete_the_index(path: Path) -> None:
    path.with_name(f"{NAME}-shm").unlink()


def _move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def _move_the_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def _move_all(path: Path, to: Path) -> None:
    to.mkdir(exist_ok=True)
    for file in path.parent.glob(f"{NAME}*"):
        file.rename(to / file.name)


def _replace(path: Path) -> None:
    other = path.with_name("other.db")
    apsw.Connection(str(other)).execute("CREATE TABLE other (x)")
    os.replace(other, path)  # noqa: PTH105  as a restore does it


def _app(path: Path) -> Mainspring:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    return job(Mainspring(f"sqlite:///{path}"), work)


@pytest.mark.parametrize("lose", [_delete, _delete_the_log, _delete_the_index, _move, _move_the_folder, _replace])
def test_nothing_is_acknowledged_once_the_file_is_gone_and_the_worker_stops(
    lose: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data" / NAME
    path.parent.mkdir()

    async def main() -> None:
        app = _app(path)
        await app.start()
        try:
            await (await app.send(Start("j-1"))).result()
            lose(path)
            for number in range(3):
                with pytest.raises(StoreMovedError, match=r"was (deleted or moved|replaced)\. (Bring it|If that was)"):
                    await app.send(Start(f"j-2-{number}"))
            with pytest.raises(StoreMovedError):
                await app.ended()
        finally:
            await app.stop()

    run(main)
    assert "this worker stops" in caplog.text


def test_what_was_acknowledged_is_there_when_the_file_is_back(tmp_path: Path) -> None:
    path, away = tmp_path / NAME, tmp_path / "away"

    async def main() -> None:
        async with _app(path) as app:
            await (await app.send(Start("j-1"))).result()
            _move_all(path, away)
            with pytest.raises(StoreMovedError):
                await app.send(Start("j-2"), id="m-2")
            with pytest.raises(StoreMovedError):
                await app.ended()
        _move_all(away / NAME, tmp_path)
        async with _app(path) as app:
            await (await app.send(Start("j-2"), id="m-2")).result()
            assert sorted(row.id for row in await app.instances()) == ["j-1", "j-2"]

    run(main)


def test_a_file_that_took_the_place_keeps_its_own_log(tmp_path: Path) -> None:
    path = tmp_path / NAME

    async def main() -> None:
        async with _app(path) as app:
            await (await app.send(Start("j-1"))).result()
            _delete(path)
            async with _app(path) as other:
                await (await other.send(Start("j-3"))).result()
                with pytest.raises(StoreMovedError):
                    await app.ended()
                await app.stop()
                assert os.stat(f"{path}-wal").st_size > 0  # noqa: PTH116  at once
                assert [row.id for row in await other.instances()] == ["j-3"]

    run(main)


def test_a_file_behind_a_link_is_watched_where_it_is(tmp_path: Path) -> None:
    real, link = tmp_path / "real.db", tmp_path / NAME
    link.symlink_to(real)

    async def main() -> None:
        async with _app(link) as app:
            await (await app.send(Start("j-1"))).result()
            os.unlink(f"{real}-wal")  # noqa: PTH108  at once
            with pytest.raises(StoreMovedError, match=r"real\.db-wal was deleted"):
                await app.ended()

    run(main)


def test_a_file_that_was_put_in_the_place_is_left_as_it_is(tmp_path: Path) -> None:
    """The log of the old one lies beside it: whoever reads must not put them together."""
    path, backup = tmp_path / NAME, tmp_path / "backup" / NAME
    backup.parent.mkdir()

    async def main() -> None:
        async with _app(backup) as app:
            await (await app.send(Start("kept"))).result()
        before = backup.read_bytes()
        async with _app(path) as app:
            await (await app.send(Start("j-1"))).result()
            os.replace(backup, path)  # noqa: PTH105  as a restore does it
            with pytest.raises(StoreMovedError, match=r"remove the old -wal and -shm files"):
                await app.instances()
            with pytest.raises(StoreMovedError):
                await app.ended()
        assert path.read_bytes() == before

    run(main)


def test_a_reader_that_stood_before_reads_no_more_than_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / NAME

    async def main() -> None:
        async with _app(path) as app:
            await (await app.send(Start("j-1"))).result()
            await app.instances()  # by a reader that has opened the file that was there
            _replace(path)
            with pytest.raises(StoreMovedError):
                await app.instances()
            with pytest.raises(StoreMovedError):
                await app.ended()

    run(main)


def test_whoever_may_not_look_goes_on_and_commits_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(file: str) -> None:
        raise PermissionError(13, "Permission denied", file)

    async def main() -> None:
        async with _app(tmp_path / NAME) as app:
            monkeypatch.setattr(place, "_identity", refused)
            await (await app.send(Start("j-1"))).result()
            stream = await app.instance_at("Job/j-1").stream()
            assert [type(entry.event).__name__ for entry in stream].count("Received") == 1
            assert [entry.position for entry in stream] == [*range(1, len(stream) + 1)]

    run(main)
