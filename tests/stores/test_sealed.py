"""A sealed store keeps the same contract, on bodies that nobody else can read."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from mainspring.port.records import DeadLetter, Duplicate, EventRow, InputRow, InstanceFilter, Ref, Unit
from mainspring.port.store import Store
from mainspring.sealing import Compressed, Encrypted, FileKeys, Seals, StaticKeys
from mainspring.stores.memory import MemoryStore
from mainspring.stores.sealed import sealed
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract import StoreContract
from mainspring.testing.store_contract.rig import Rig, behaviour, step

OLD, NEW = bytes(32), bytes(range(32))


class TestSealedStore(StoreContract):
    durable = False
    second_handle = False

    def make_store(self, clock: VirtualClock, tmp_path: Path) -> Store:
        seal = Seals([Compressed(least_bytes=1), Encrypted(StaticKeys({"test": bytes(range(32))}))])
        return sealed(MemoryStore(clock), seal)

    @behaviour
    async def test_instances_are_found_by_a_part_of_their_error_and_by_time(self, rig: Rig) -> None:
        """By its kind: what it says is sealed, but read as it was."""
        await rig.done(step("m-1", on="a"))
        await rig.done(replace(step("m-1", on="b"), status="suspended", error="ValueError: card%refused"))
        for part, expected in (("ValueErr", ["b"]), ("card", []), ("refused", [])):
            assert [row.id for row in await rig.store.instances(InstanceFilter(error=part), 10)] == expected
            assert [row.id for row in (await rig.store.search(InstanceFilter(error=part), 10)).rows] == expected
        assert [row.error for row in await rig.store.instances(InstanceFilter(error="ValueError"), 10)] == [
            "ValueError: card%refused"
        ]


def test_a_dead_letter_that_was_erased_and_died_again_is_called_erased_once(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    store = sealed(MemoryStore(VirtualClock()), Encrypted(keys, subject=lambda about, _: about.instance))
    letter = DeadLetter("Job", "ann", "m-1", "command", "Work", 1, b"{}", 0, b"{}", reason="no")

    async def main() -> None:
        await store.open()
        await store.commit(0, [Unit("Job", "ann", dead_letters=(letter,))])
        keys.destroy("ann")
        (erased,) = await store.dead_letters(10)
        await store.commit(0, [Unit("Job", "ann", dead_letters=(replace(erased, id=0, message_id="m-2"),))])
        assert [each.type for each in await store.dead_letters(10)] == ["erased:Work"] * 2
        await store.close()

    asyncio.run(main())


def test_a_message_that_comes_again_under_a_newer_key_is_known_without_reading_the_stream() -> None:
    memory = Counting(VirtualClock())
    older = sealed(memory, Encrypted(StaticKeys({"2025": OLD})))
    newer = sealed(memory, Encrypted(StaticKeys({"2026": NEW, "2025": OLD})))

    async def main() -> None:
        await memory.open()
        await older.commit(0, [step("m-1", body=b"{}"), step("m-2", after=2, body=b"{}")])
        same, other = await newer.commit(0, [step("m-2", after=3, body=b"{}"), step("m-2", after=3, body=b'{"a":1}')])
        assert (same, other) == (Duplicate(same=True), Duplicate(same=False))
        assert memory.read == []

    asyncio.run(main())


class Counting(MemoryStore):
    """Notes which lists were read."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.read: list[str] = []

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        self.read.append("stream")
        return await super().stream(ref, after, limit)

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        self.read.append("inbox")
        return await super().inbox(ref, limit)

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        self.read.append("dead letters")
        return await super().dead_letters(limit, after, ids)
