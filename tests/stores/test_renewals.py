"""What was read before a key was destroyed is not written under the next one (C12): rule by rule, at the store."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from mainspring.port.loans import Loan
from mainspring.port.projections import Advance, Document
from mainspring.port.records import (
    Committed,
    Conflict,
    EventRow,
    InputRow,
    Outcome,
    OutputKey,
    OutputRow,
    Ref,
    Retry,
    Snapshot,
    Unit,
)
from mainspring.port.store import Store
from mainspring.sealing import Compressed, Encrypted, FileKeys, Seal, Seals
from mainspring.stores.sealed import sealed
from mainspring.stores.sqlite import SqliteStore
from mainspring.testing.clock import VirtualClock
from tests.support.running import run

BODY = b'{"card":"4111"}'
DOCUMENT = Document("ann", "Order", 1, BODY)


class Desk:
    """A sealed store with a worker at it, and somebody who destroys the one key."""

    def __init__(self, folder: Path, store: Store, worker: int, seal: Seal) -> None:
        self._folder, self._worker = folder, worker
        self.store = sealed(store, seal)

    def destroy(self) -> None:
        assert FileKeys(self._folder).destroy("ann") == 1

    async def commit(self, unit: Unit) -> Outcome:
        return (await self.commit_all(unit))[0]

    async def commit_all(self, *units: Unit) -> list[Outcome]:
        return await self.store.commit(self._worker, units)

    async def lend(self) -> Loan:
        return await self.store.lend(self._worker, 10.0)

    async def claim(self) -> InputRow:
        (row,) = (await self.store.claim(self._worker, [], ["W"], 10)).inputs
        return row

    async def meet(self) -> None:
        """Let something that was sent since then be written under the next key."""
        row = InputRow("V", "other", "m-1", "command", "Do", 1, BODY, 0, b"{}")
        assert isinstance(await self.commit(Unit("V", "other", accepts=(row,))), Committed)


Test = Callable[[Desk], Awaitable[None]]


@pytest.fixture(params=["alone", "compressed before", "compressed after"])
def at_desk(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Test], None]:
    def at(test: Test) -> None:
        async def main() -> None:
            store = SqliteStore(tmp_path / "test.db", VirtualClock())
            await store.open()
            worker = await store.register_worker("w", 60_000_000)
            encrypted = Encrypted(FileKeys(tmp_path / "keys"), subject=lambda _, __: "ann")
            packed = Compressed(least_bytes=1)
            seals: dict[str, Seal] = {
                "alone": encrypted,
                "compressed before": Seals([packed, encrypted]),
                "compressed after": Seals([encrypted, packed]),
            }
            await test(Desk(tmp_path / "keys", store, worker, seals[request.param]))
            await store.close()

        run(main)

    return at


def step(after: int = 0, instance: str = "i", **fields: object) -> Unit:
    events = (EventRow(after + 1, "Received", 0, "Do", 1, BODY),)
    unit = Unit("W", instance, expected_version=after, events=events, state="Open", context=b"{}")
    return replace(unit, **fields)


def test_a_lane_that_was_read_before_is_in_conflict_until_it_is_read_anew(at_desk: Callable[[Test], None]) -> None:
    async def test(desk: Desk) -> None:
        begun = await desk.commit(step(era=0))
        assert isinstance(begun, Committed)
        desk.destroy()
        moved = step(1, key=begun.key, era=0)
        assert await desk.commit(moved) == Conflict("version")
        # Whoever looks meanwhile does not change what the lane has in memory.
        await desk.store.load([Ref("W", "i")])
        assert await desk.commit(moved) == Conflict("version")
        assert isinstance(await desk.commit(replace(moved, era=1)), Committed)

    at_desk(test)


def test_so_is_all_that_is_built_on_it_and_nothing_else(at_desk: Callable[[Test], None]) -> None:
    async def test(desk: Desk) -> None:
        begun, other = await desk.commit_all(step(era=0), step(instance="bob", era=0))
        assert isinstance(begun, Committed)
        assert isinstance(other, Committed)
        desk.destroy()
        outcomes = await desk.commit_all(
            step(1, key=begun.key, era=0),
            step(1, "bob", key=other.key, events=(), era=0),
            Unit("W", "i", key=begun.key, expected_version=1, era=0),
        )
        assert [type(outcome) for outcome in outcomes] == [Conflict, Committed, Conflict]

    at_desk(test)


def test_an_operator_who_has_read_it_before_looks_again(at_desk: Callable[[Test], None]) -> None:
    async def test(desk: Desk) -> None:
        begun = await desk.commit(step(era=0))
        assert isinstance(begun, Committed)
        desk.destroy()
        migrated = step(1, key=begun.key, snapshot=Snapshot(1, "f", "Open", 1, BODY))
        assert await desk.commit(migrated) == Conflict("version")
        assert isinstance(await desk.commit(migrated), Committed)

    at_desk(test)


def test_an_input_in_hand_is_given_back_and_found_to_be_erased(at_desk: Callable[[Test], None]) -> None:
    async def test(desk: Desk) -> None:
        row = InputRow("W", "i", "m-1", "command", "Do", 1, BODY, 0, b"{}")
        assert isinstance(await desk.commit(Unit("W", "i", accepts=(row,))), Committed)
        taken = await desk.claim()
        assert taken.body == BODY
        desk.destroy()
        await desk.meet()
        assert await desk.commit(step(consumes=taken.position, era=1)) == Conflict("inbox")
        failed = step(events=(), status="suspended", error="ValueError: 4111", releases=(taken.position,), era=1)
        assert await desk.commit(failed) == Conflict("inbox")
        await desk.commit(Unit("W", "i", releases=(taken.position,)))
        erased = await desk.claim()
        assert erased.type == "erased:Do"
        assert isinstance(await desk.commit(step(consumes=erased.position, era=1)), Committed)

    at_desk(test)


@pytest.mark.parametrize("how", ["settled", "tried again", "in a transaction"])
def test_nothing_is_kept_of_what_was_made_of_a_command_in_hand(how: str, at_desk: Callable[[Test], None]) -> None:
    async def test(desk: Desk) -> None:
        sends = OutputRow(1, "send", "Do", claimed=True)
        begun = await desk.commit(step(outputs=(sends,), era=0))
        assert isinstance(begun, Committed)
        desk.destroy()
        await desk.meet()
        output = OutputKey(begun.key, 1)
        unit = Unit("W", "i", retries=(Retry(output, 1, 0, "ValueError: 4111"),))
        if how != "tried again":
            row = InputRow("W", "i", "m-2", "result", "Done", 1, BODY, 0, b"{}", cause=1)
            unit = Unit("W", "i", settles=(output,), accepts=(row,))
        if how == "in a transaction":
            loan = await desk.lend()
            await loan.connection.execute("CREATE TABLE IF NOT EXISTS notes (card TEXT)")
            assert await loan.commit(unit) == Conflict("lost")
            loan = await desk.lend()
            assert not await loan.connection.execute("SELECT name FROM sqlite_schema WHERE name = 'notes'")
            await loan.roll_back()
        else:
            assert await desk.commit(unit) == Conflict("lost")
        assert not await desk.store.inbox(Ref("W", "i"), 10)
        # One that was sent since then is settled.
        again = await desk.commit(step(instance="later", outputs=(sends,), era=1))
        assert isinstance(again, Committed)
        row = InputRow("W", "later", "m-2", "result", "Done", 1, BODY, 0, b"{}", cause=1)
        settled = Unit("W", "later", settles=(OutputKey(again.key, 1),), accepts=(row,))
        assert isinstance(await desk.commit(settled), Committed)

    at_desk(test)


def test_a_document_that_was_read_before_is_folded_anew(at_desk: Callable[[Test], None]) -> None:
    async def test(desk: Desk) -> None:
        store = desk.store
        assert await store.advance(Advance("orders", 1, expected=None, position=0, status="live"))
        await store.documents("orders", ["ann"], 1)
        assert await store.advance(Advance("orders", 1, expected=0, position=1, documents=(DOCUMENT,)))
        assert [found.body for found in await store.documents("orders", ["ann"], 1)] == [BODY]
        desk.destroy()
        move = Advance("orders", 1, expected=1, position=2, documents=(DOCUMENT,))
        assert not await store.advance(move)
        assert not await store.advance(move)
        assert [found.type for found in await store.documents("orders", ["ann"], 1)] == ["erased:Order"]
        assert await store.advance(move)

    at_desk(test)
