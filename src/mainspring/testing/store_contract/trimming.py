"""Trimming: a step that leaves nothing of what was before but its state, and what something still needs."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mainspring.port.digests import digested
from mainspring.port.records import Duplicate, EventRow, Loaded, OutputRow, Snapshot, Unit
from mainspring.port.trims import VERSIONS_PER_BLOCK
from mainspring.testing.store_contract.rig import Rig, Suite, accept, behaviour, letter, order, received, send, step


def _trimming(id: str, *outputs: OutputRow, after: int = 0, **more: Any) -> Unit:
    """Return a step that trims, with a snapshot of its state and only the digest of its input."""
    unit = step(id, *outputs, after=after, **more)
    version = unit.events[-1].version
    events = tuple(_hollow(event) if event.message_id is not None else event for event in unit.events)
    return replace(unit, events=events, snapshot=Snapshot(version, "", "Waiting", 1, b"{}"), trims=True)


def _hollow(event: EventRow) -> EventRow:
    type, body = digested((event.type, event.body))
    return replace(event, type=type, body=body)


async def _loaded(rig: Rig) -> Loaded:
    (loaded,) = await rig.store.load([order()])
    assert loaded is not None
    return loaded


class TrimmingTests(Suite):
    """What a trim takes, what it leaves, and that an instance without history is still one."""

    @behaviour
    async def test_what_nothing_needs_is_gone_with_the_next_step(self, rig: Rig) -> None:
        await rig.done(_trimming("m-1"))
        before = await rig.versions()
        await rig.done(_trimming("m-2", after=before[-1]))
        left = await rig.store.stream(order(), 0, 1_000)
        assert [event.message_id for event in left] == ["m-1", "m-2"]
        loaded = await _loaded(rig)
        assert loaded.row.version == left[-1].version
        assert (loaded.snapshot, loaded.events) == (Snapshot(left[-1].version, "", "Waiting", 1, b"{}"), [])

    @behaviour
    async def test_an_output_keeps_its_event_until_it_is_carried_out(self, rig: Rig) -> None:
        unit = _trimming("m-1", send())
        (committed,) = await rig.done(unit)
        await rig.done(_trimming("m-2", after=3))
        assert await rig.versions() == [2, 3, 4]
        (claim,) = (await rig.claim()).outputs
        assert (claim.output.instance, claim.output.version, claim.type) == (committed.key, 3, unit.events[2].type)
        assert (claim.body, claim.context) == (unit.events[2].body, unit.events[1].context)
        await rig.done(Unit(order().workflow, order().id, settles=(claim.output,)))
        await rig.done(_trimming("m-3", after=4))
        assert await rig.versions() == [2, 4, 5]

    @behaviour
    async def test_a_dead_letter_keeps_its_event_and_can_be_restored(self, rig: Rig) -> None:
        await rig.done(_trimming("m-1", send()))
        (claim,) = (await rig.claim()).outputs
        dead = replace(letter(), output=claim.output)
        await rig.done(Unit(order().workflow, order().id, settles=(claim.output,), dead_letters=(dead,)))
        await rig.done(_trimming("m-2", after=3))
        (kept,) = await rig.store.dead_letters(10)
        assert await rig.store.restore_output(kept.id)
        (again,) = (await rig.claim()).outputs
        assert (again.output, again.body) == (claim.output, claim.body)

    @behaviour
    async def test_a_step_that_makes_a_dead_letter_keeps_its_event(self, rig: Rig) -> None:
        await rig.done(_trimming("m-1", send()))
        (claim,) = (await rig.claim()).outputs
        dead = replace(letter(), output=claim.output)
        await rig.done(_trimming("m-2", after=3, settles=(claim.output,), dead_letters=(dead,)))
        (kept,) = await rig.store.dead_letters(10)
        assert await rig.store.restore_output(kept.id)
        (again,) = (await rig.claim()).outputs
        assert (again.output, again.body) == (claim.output, claim.body)

    @behaviour
    async def test_the_answer_that_an_open_output_was_decided_for_stays(self, rig: Rig) -> None:
        await rig.done(_trimming("m-1", send()))
        (claim,) = (await rig.claim()).outputs
        answer = EventRow(4, "Received", 0, None, 1, b'"x"', kind="result", cause=3)
        sent = EventRow(5, "Sent", 0, "Charge", 1, b"{}", cause=4)
        snapshot = Snapshot(5, "", "Waiting", 1, b"{}")
        await rig.done(
            Unit(
                order().workflow,
                order().id,
                expected_version=3,
                events=(answer, sent),
                outputs=(replace(send(), version=5),),
                settles=(claim.output,),
                snapshot=snapshot,
                trims=True,
            )
        )
        await rig.done(_trimming("m-2", after=5))
        assert await rig.versions() == [2, 4, 5, 6]
        (open_output,) = (await rig.claim()).outputs
        assert open_output.cause is not None
        assert (open_output.cause.kind, open_output.cause.cause) == ("result", 3)

    @behaviour
    async def test_a_redelivery_is_known_and_another_message_under_its_id_refused(self, rig: Rig) -> None:
        await rig.done(_trimming("m-1"))
        last = (await rig.versions())[-1]
        await rig.done(_trimming("m-2", after=last))
        again = _trimming("m-1")
        assert await rig.commit(again) == [Duplicate(same=True)]
        assert await rig.commit(_trimming("m-1", body=b'"other"')) == [Duplicate(same=False)]
        assert await rig.commit(accept("m-1")) == [Duplicate(same=True)]
        assert await rig.commit(accept("m-1", body=b'"other"')) == [Duplicate(same=False)]

    @behaviour
    async def test_steps_that_trim_may_stand_in_one_batch(self, rig: Rig) -> None:
        await rig.done(*(_trimming(f"m-{n}", after=n if n > 1 else 0) for n in range(1, 6)))
        assert [e.message_id for e in await rig.store.stream(order(), 0, 100)] == [f"m-{n}" for n in range(1, 6)]
        assert (await _loaded(rig)).row.version == 6

    @behaviour
    async def test_what_a_person_did_stays(self, rig: Rig) -> None:
        await rig.done(_trimming("m-1"))
        suspended = EventRow(3, "Suspended", 0, actor="ann")
        await rig.done(Unit(order().workflow, order().id, expected_version=2, events=(suspended,)))
        await rig.done(_trimming("m-2", after=3))
        assert await rig.versions() == [2, 3, 4]

    @behaviour
    async def test_what_became_of_tasks_stays_while_an_answer_waits(self, rig: Rig) -> None:
        """Refused, it opens its task again; not if that was closed or asked again since."""
        await rig.done(_trimming("m-1"))
        rows = (EventRow(3, "TaskClosed", 0), EventRow(4, "Asked", 0), EventRow(5, "Resumed", 0))
        await rig.done(Unit(order().workflow, order().id, expected_version=2, events=rows))
        (committed,) = await rig.done(accept("a-1", kind="answer"))
        await rig.done(_trimming("m-2", after=5, direct=False))
        assert await rig.versions() == [2, 3, 4, 6]
        await rig.done(_trimming("m-3", after=6, direct=False, consumes=committed.positions[0]))
        assert await rig.versions() == [2, 6, 7]

    @behaviour
    async def test_pages_and_the_feed_go_over_what_is_gone(self, rig: Rig) -> None:
        for n in range(1, 6):
            await rig.done(_trimming(f"m-{n}", after=n if n > 1 else 0))
        assert [event.version for event in await rig.store.stream(order(), 3, 2)] == [4, 5]
        assert [row.version for _, _, row in await rig.store.feed(0, 100)] == [2, 3, 4, 5, 6]

    @behaviour
    async def test_a_trim_looks_back_only_so_far(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        many = [received(n, f"k-{n}") for n in range(3, VERSIONS_PER_BLOCK + 3)]
        await rig.done(Unit(order().workflow, order().id, expected_version=2, events=tuple(many)))
        await rig.done(_trimming("m-2", after=many[-1].version))
        assert (await rig.store.stream(order(), 0, 1))[0].event == "Began"
