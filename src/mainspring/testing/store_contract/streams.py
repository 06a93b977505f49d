"""Streams: versions, exact bytes, snapshots, the feed."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.records import EventRow, Loaded, Ref, Snapshot, Unit
from mainspring.testing.store_contract.rig import CONTEXT, ORDERS, WRITTEN_US, Rig, Suite, behaviour, order, send, step


class StreamTests(Suite):
    """An instance's events are what was written, in order, for ever."""

    @behaviour
    async def test_a_stream_begins_with_version_one(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        assert await rig.versions() == [1, 2]

    @behaviour
    async def test_steps_append_versions_without_a_gap(self, rig: Rig) -> None:
        await rig.done(step("m-1", send()), step("m-2", send(), send(), after=3))
        await rig.done(step("m-3", after=6))
        assert await rig.versions() == [1, 2, 3, 4, 5, 6, 7]

    @behaviour
    async def test_an_earlier_read_is_a_prefix_of_a_later_one(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        earlier = await rig.store.stream(order(), 0, 100)
        await rig.done(step("m-2", after=2))
        later = await rig.store.stream(order(), 0, 100)
        assert later[: len(earlier)] == earlier
        assert len(later) == 3

    @behaviour
    async def test_every_field_of_an_event_comes_back(self, rig: Rig) -> None:
        event = EventRow(
            version=1,
            event="Received",
            time_us=WRITTEN_US,
            type="Go",
            type_version=3,
            body=b'{"a":1}',
            detail=b'{"reason":"r"}',
            kind="reply",
            message_id="m-1",
            cause=7,
            context=CONTEXT,
            actor="ann",
            state="Waiting",
            attempt=4,
            duration_us=12,
        )
        await rig.done(Unit(ORDERS, "o-1", expected_version=0, events=(event,)))
        assert await rig.store.stream(order(), 0, 10) == [event]

    @behaviour
    async def test_a_field_that_an_event_has_not_stays_absent(self, rig: Rig) -> None:
        await rig.done(Unit(ORDERS, "o-1", expected_version=0, events=(EventRow(1, "Began", WRITTEN_US),)))
        assert await rig.store.stream(order(), 0, 10) == [EventRow(1, "Began", WRITTEN_US)]

    @behaviour
    async def test_odd_text_comes_back_byte_for_byte(self, rig: Rig) -> None:
        body = '{"t":"ä\u0301 e\u0301 \U0001f469\u200d\U0001f680 \ufeff \u2028 \x7f \u202eabc"}'.encode()
        await rig.done(step("m-1", body=body))
        assert (await rig.store.stream(order(), 1, 1))[0].body == body

    @behaviour
    async def test_an_escaped_zero_byte_comes_back(self, rig: Rig) -> None:
        await rig.done(step("m-1", body=b'{"t":"a\\u0000b\\ud800"}'))
        assert (await rig.store.stream(order(), 1, 1))[0].body == b'{"t":"a\\u0000b\\ud800"}'

    @behaviour
    async def test_json_is_never_written_anew(self, rig: Rig) -> None:
        body = b'{ "b" : 1.0e0,\n"a":12345678901234567890123, "b":2 }'
        await rig.done(step("m-1", body=body))
        assert (await rig.store.stream(order(), 1, 1))[0].body == body

    @behaviour
    async def test_empty_values_come_back_and_are_not_absent(self, rig: Rig) -> None:
        for n, body in enumerate([b"{}", b"[]", b'""', b"null", b"0"]):
            await rig.done(step("m-1", body=body, on=f"o-{n}"))
            assert (await rig.store.stream(order(f"o-{n}"), 1, 1))[0].body == body

    @behaviour
    async def test_a_body_of_a_megabyte_comes_back(self, rig: Rig) -> None:
        body = b'{"t":"' + "ü€".encode() * 210_000 + b'"}'
        await rig.done(step("m-1", body=body))
        assert (await rig.store.stream(order(), 1, 1))[0].body == body

    @behaviour
    async def test_a_stream_is_read_in_pages(self, rig: Rig) -> None:
        await rig.done(step("m-1", *[send()] * 5))
        pages = [await rig.store.stream(order(), after, 3) for after in (0, 3, 6, 9)]
        assert [[event.version for event in page] for page in pages] == [[1, 2, 3], [4, 5, 6], [7], []]

    @behaviour
    async def test_the_stream_of_an_unknown_instance_is_empty(self, rig: Rig) -> None:
        assert await rig.store.stream(order("nobody"), 0, 10) == []

    @behaviour
    async def test_one_id_in_two_workflows_is_two_instances(self, rig: Rig) -> None:
        await rig.done(step("m-1"), replace(step("m-1"), workflow="Fines"))
        assert len(await rig.store.stream(Ref("Fines", "o-1"), 0, 10)) == 2
        assert await rig.versions() == [1, 2]

    @behaviour
    async def test_ids_that_look_alike_are_different_instances(self, rig: Rig) -> None:
        ids = ["o/1", "O/1", "o 1", "ö1", "o\u03081", "o%", "o_", "o'; --", " o", "o ", "1", "01", "\U0001f469"]
        committed = await rig.done(*(step("m-1", on=id) for id in ids))
        assert len({outcome.key for outcome in committed}) == len(ids)
        assert [loaded and loaded.row.id for loaded in await rig.store.load([order(id) for id in ids])] == ids

    @behaviour
    async def test_an_instance_has_one_key_for_its_life(self, rig: Rig) -> None:
        first, neighbour = await rig.done(step("m-1"), step("m-1", on="o-2"))
        (second,) = await rig.done(step("m-2", after=2))
        assert first.key == second.key > 0
        assert neighbour.key not in {first.key, 0}

    @behaviour
    async def test_an_unknown_instance_loads_as_none(self, rig: Rig) -> None:
        assert await rig.store.load([order("nobody")]) == [None]

    @behaviour
    async def test_instances_load_in_the_order_asked_for(self, rig: Rig) -> None:
        await rig.done(step("m-1"), step("m-1", on="o-2"))
        loaded = await rig.store.load([order("o-2"), order("nobody"), order("o-1"), order("o-2")])
        assert [one and one.row.id for one in loaded] == ["o-2", None, "o-1", "o-2"]

    @behaviour
    async def test_of_a_long_stream_only_the_first_events_are_loaded_if_so_asked(self, rig: Rig) -> None:
        await rig.done(step("m-1", send()), step("m-2", after=3), step("m-1", on="o-2"))
        for most, versions in ((0, []), (1, [1]), (3, [1, 2, 3]), (4, [1, 2, 3, 4]), (9, [1, 2, 3, 4])):
            (long, short) = await rig.store.load([order(), order("o-2")], most)
            assert long is not None
            assert short is not None
            assert (long.row.version, [event.version for event in long.events]) == (4, versions)
            assert [event.version for event in short.events] == [1, 2][:most]

    @behaviour
    async def test_an_instance_without_snapshot_loads_all_its_events(self, rig: Rig) -> None:
        await rig.done(step("m-1", send()), step("m-2", after=3))
        loaded = await self._loaded(rig)
        assert loaded.snapshot is None
        assert loaded.events == await rig.store.stream(order(), 0, 10)

    @behaviour
    async def test_a_snapshot_loads_with_only_the_events_behind_it(self, rig: Rig) -> None:
        snapshot = Snapshot(2, "f-1", "Waiting", 4, b'{"s":1}')
        await rig.done(step("m-1", snapshot=snapshot), step("m-2", send(), after=2))
        loaded = await self._loaded(rig)
        assert loaded.snapshot == snapshot
        assert [event.version for event in loaded.events] == [3, 4]

    @behaviour
    async def test_a_newer_snapshot_takes_the_place_of_an_older(self, rig: Rig) -> None:
        newer = Snapshot(3, "f-2", "Waiting", 1, b'{"s":2}')
        await rig.done(step("m-1", snapshot=Snapshot(2, "f-1", "Waiting", 1, b"{}")))
        await rig.done(step("m-2", after=2, snapshot=newer))
        loaded = await self._loaded(rig)
        assert (loaded.snapshot, loaded.events) == (newer, [])

    @behaviour
    async def test_the_row_says_what_the_last_step_made_of_the_instance(self, rig: Rig) -> None:
        await rig.done(step("m-1", state="New"), step("m-2", after=2, status="suspended", state="Stuck", error="boom"))
        row = (await self._loaded(rig)).row
        assert (row.workflow, row.id, row.version) == (ORDERS, "o-1", 3)
        assert (row.status, row.state, row.error) == ("suspended", "Stuck", "boom")

    @behaviour
    async def test_an_error_is_gone_when_the_next_step_has_none(self, rig: Rig) -> None:
        await rig.done(step("m-1", status="suspended", error="boom"), step("m-2", after=2))
        row = (await self._loaded(rig)).row
        assert (row.status, row.error) == ("running", None)

    @behaviour
    async def test_a_move_without_events_keeps_the_version(self, rig: Rig) -> None:
        await rig.done(step("m-1"), Unit(ORDERS, "o-1", expected_version=2, status="suspended", error="boom"))
        row = (await self._loaded(rig)).row
        assert (row.version, row.status, row.error) == (2, "suspended", "boom")

    @behaviour
    async def test_the_rows_context_and_definition_version_stay_those_of_the_beginning(self, rig: Rig) -> None:
        await rig.done(step("m-1", context=b'{"correlation_id":"first"}', definition_version=3))
        await rig.done(step("m-2", after=2, context=b'{"correlation_id":"second"}', definition_version=4))
        row = (await self._loaded(rig)).row
        assert (row.context, row.definition_version) == (b'{"correlation_id":"first"}', 3)

    @behaviour
    async def test_the_rows_times_are_the_stores(self, rig: Rig) -> None:
        began_us = rig.store.now_us()
        await rig.done(step("m-1"))
        rig.clock.advance(5)
        await rig.done(step("m-2", after=2))
        row = (await self._loaded(rig)).row
        assert (row.created_us, row.updated_us) == (began_us, began_us + 5_000_000)

    @behaviour
    async def test_the_feed_tells_all_instances_events_in_the_order_of_commits(self, rig: Rig) -> None:
        await rig.done(step("m-1"), step("m-1", on="o-2"))
        await rig.done(step("m-2", after=2))
        told = [(ref.id, event.version) for _, ref, event in await rig.store.feed(0, 100)]
        assert told == [("o-1", 1), ("o-1", 2), ("o-2", 1), ("o-2", 2), ("o-1", 3)]

    @behaviour
    async def test_the_feeds_events_are_those_of_the_streams(self, rig: Rig) -> None:
        await rig.done(step("m-1", send(), body=b'{"x": 1}'))
        events = [event for _, _, event in await rig.store.feed(0, 100)]
        assert events == await rig.store.stream(order(), 0, 100)

    @behaviour
    async def test_the_feeds_positions_increase_and_are_read_in_pages(self, rig: Rig) -> None:
        await rig.done(*(step("m-1", on=f"o-{n}") for n in range(5)))
        whole = await rig.store.feed(0, 100)
        positions = [position for position, _, _ in whole]
        assert positions == sorted(set(positions))
        assert positions[0] > 0
        assert await rig.store.feed(positions[3], 4) == whole[4:8]
        assert await rig.store.feed(positions[-1], 4) == []

    async def _loaded(self, rig: Rig) -> Loaded:
        (loaded,) = await rig.store.load([order()])
        assert loaded is not None
        return loaded
