"""Rows edited by hand, and rows that another release wrote: told, set aside, and no harm to the neighbour."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.core import events
from mainspring.engine.recording import event_rows
from mainspring.errors import DamagedRecordError, MainspringError, NewerTypeError, UnknownTypeError, WiringError
from mainspring.port.records import Committed, DeadLetter, EventRow, InputRow, OutputRow, Ref, Snapshot, Unit
from tests.edges.bad_input.conftest import Office, url_of
from tests.edges.bad_input.misbehaving import Desk, Go, Note, Yes, desk

CONTEXT: Final = b'{"correlation_id":"c"}'
NOTE: Final = b'{"id":"bad"}'
BAD: Final = "instance = (SELECT key FROM {s}instances WHERE id = 'bad')"


async def edit(store: str, url: str, sql: str) -> None:
    """Change rows behind the store: `{s}` is its schema, `{garbage}` no JSON, `{bad}` the instance of that id."""
    if store == "sqlite":
        with contextlib.closing(apsw.Connection(url.removeprefix("sqlite:///"))) as file:
            file.execute(_told(sql, "", "x'7b'"))
        return
    server, schema = re.fullmatch(r"(.*)[?&]schema=(.*)", url).groups()  # pyright: ignore[reportOptionalMemberAccess]  it has one
    library: Any = asyncpg
    connection = await library.connect(server)
    try:
        await connection.execute(_told(sql, f'"{schema}".', r"'\x7b'::bytea"))
    finally:
        await connection.close()


def _told(sql: str, schema: str, garbage: str) -> str:
    return sql.replace("{bad}", BAD).format(s=schema, garbage=garbage)


def on_edited(
    store: str, folder: Path, sql: str, then: Callable[[Mainspring], Coroutine[Any, Any, None]], *more: str
) -> None:
    """Edit a desk's rows while nobody runs, and try what can be done then; at the end the neighbour must go on."""
    url = url_of(store, folder)

    async def main() -> None:
        async with asyncio.timeout(60):
            async with desk(Mainspring(url)) as app:
                await app.send(Go("bad"))
                await app.send(Go("neighbour"))
                await app.projections("moves").caught_up()
            for statement in (sql, *more):
                await edit(store, url, statement)
            async with desk(Mainspring(url)) as app:
                await then(app)
                assert (await app.send(Note("neighbour"))).status == "stepped"
                assert (await app.instance(Desk, "neighbour").state()).notes == 1
                fresh = await app.send(Go("fresh"))
                assert fresh.status == "stepped"

    asyncio.run(main())


STREAMS: Final = {
    "a body of garbage": "UPDATE {s}events SET body = {garbage} WHERE {bad} AND version = 2",
    "another type": "UPDATE {s}events SET type = 'Nope' WHERE {bad} AND version = 2",
    "an unknown event class": "UPDATE {s}events SET event = 'Frobbed' WHERE {bad} AND version = 3",
    "a missing version": "DELETE FROM {s}events WHERE {bad} AND version = 2",
    "a version changed": "UPDATE {s}events SET version = 77 WHERE {bad} AND version = 5",
    "a detail of garbage": "UPDATE {s}events SET detail = {garbage} WHERE {bad} AND version = 4",
    "an instance's version too high": "UPDATE {s}instances SET version = 99 WHERE id = 'bad'",
    "an instance's version too low": "UPDATE {s}instances SET version = 2 WHERE id = 'bad'",
    "an instance's version below zero": "UPDATE {s}instances SET version = -5 WHERE id = 'bad'",
}


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("what", STREAMS)
def test_a_stream_that_was_edited_is_never_folded(store: str, what: str, tmp_path: Path) -> None:
    async def then(app: Mainspring) -> None:
        bad = app.instance(Desk, "bad")
        if (store, what) != ("postgres", "an instance's version too low"):
            # There what stands behind the version of its row is not read: somebody else may be about to commit it.
            with pytest.raises(DamagedRecordError, match="Restore it from a backup"):
                await bad.state()
        assert (await bad.row()).id == "bad"  # it can still be looked at
        try:
            # It waits in the inbox of an instance that is suspended with the reason, or it is refused.
            assert (await app.send(Note("bad"))).status == "suspended"
            assert "DamagedRecordError" in ((await bad.row()).error or "")
        except DamagedRecordError:
            assert await bad.waiting() == []
        assert [row.id for row in await app.instances(workflow="Desk")] == ["bad", "neighbour"]

    on_edited(store, tmp_path, STREAMS[what], then)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_version_cannot_be_there_twice(store: str, tmp_path: Path) -> None:
    async def then(app: Mainspring) -> None:
        assert len(await app.instance(Desk, "bad").stream()) == 5

    with pytest.raises((apsw.ConstraintError, asyncpg.UniqueViolationError)):
        on_edited(store, tmp_path, "UPDATE {s}events SET version = 3 WHERE {bad} AND version = 2", then)


OTHERS: Final = {
    "an output without its event": "UPDATE {s}outbox SET version = 77, due_us = 0, owner = NULL WHERE {bad}",
    "an output of an unknown kind": "UPDATE {s}outbox SET kind = 'zzz' WHERE {bad}",
    "an output with attempts below zero": "UPDATE {s}outbox SET attempts = -5 WHERE {bad}",
    "an output due before time began": "UPDATE {s}outbox SET due_us = -9223372036854775807 WHERE {bad}",
    "an output due at the end of time": "UPDATE {s}outbox SET due_us = 9223372036854775807 WHERE {bad}",
    "a worker whose lease is negative": "INSERT INTO {s}workers (name, lease_us, ends_us) VALUES ('zombie', -1, -9)",
    "an orphaned task": "UPDATE {s}tasks SET instance = 9999 WHERE {bad}",
    "a checkpoint below zero": "UPDATE {s}checkpoints SET position = -5",
    "a status that is none": "UPDATE {s}instances SET status = 'zzz' WHERE id = 'bad'",
    "a state's name that is none": "UPDATE {s}instances SET state = 'Nope' WHERE id = 'bad'",
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_rows_that_were_edited_stop_nobody(what: str, tmp_path: Path) -> None:
    async def then(app: Mainspring) -> None:
        assert (await app.send(Note("bad"))).status == "stepped"
        assert len(await app.instances(workflow="Desk")) == 2
        assert "Desk/neighbour/5" in [task.id for task in await app.tasks.list()]
        await app.stats()

    on_edited("sqlite", tmp_path, OTHERS[what], then)


def test_an_output_due_before_time_began_takes_no_figures_away(tmp_path: Path) -> None:
    url = url_of("sqlite", tmp_path)

    async def main() -> None:
        async with desk(Mainspring(url)) as app:
            await app.send(Go("bad"))
        await edit("sqlite", url, OTHERS["an output due before time began"])
        app = desk(Mainspring(url))
        await app.start(work=False)  # a worker would make a dead letter of it, now or in a moment
        stats = await app.stats()
        await app.stop()
        assert stats.oldest_due == datetime.min.replace(tzinfo=UTC)

    asyncio.run(main())


def test_an_instance_whose_row_was_edited_is_told(tmp_path: Path) -> None:
    async def then(app: Mainspring) -> None:
        with pytest.raises(DamagedRecordError, match="Restore it from a backup"):
            await app.send(Note("bad"))
        with pytest.raises(DamagedRecordError, match="Restore it from a backup"):
            await app.instance(Desk, "bad").state()

    sql = "UPDATE {s}instances SET created_us = 9223372036854775807, updated_us = -9223372036854775807 WHERE id = 'bad'"
    on_edited("sqlite", tmp_path, sql, then)


TASKS: Final = {
    "data of garbage": "data = {garbage}",
    "answers of garbage": "answers = 'zz'",
    "a status that is none": "status = 'zz'",
    "times out of range": "opened_us = 9223372036854775807",
}


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("what", TASKS)
def test_a_task_that_was_edited_hides_no_other(
    store: str, what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def then(app: Mainspring) -> None:
        assert [task.id for task in await app.tasks.list()] == ["Desk/neighbour/5"]
        if what == "data of garbage":  # which the store can read
            assert [task.id for task in await app.tasks.pick("boss", 2, actor="ann")] == ["Desk/neighbour/5"]
        with pytest.raises(DamagedRecordError):
            await app.tasks.get("Desk/bad/5")
        done = await app.tasks.complete("Desk/neighbour/5", Yes("neighbour"), actor="ann", roles=["boss"])
        assert done.first
        await app.send(Go("neighbour-2"))

    async def neighbour_ended() -> None:
        url = url_of(store, tmp_path)
        async with desk(Mainspring(url)) as app:
            await app.send(Go("bad"))
            await app.send(Go("neighbour"))
        await edit(store, url, "UPDATE {s}tasks SET {change} WHERE {bad}".replace("{change}", TASKS[what]))
        async with asyncio.timeout(60), desk(Mainspring(url)) as app:
            await then(app)

    asyncio.run(neighbour_ended())
    assert "Desk/bad/5" in caplog.text or what == "a status that is none"


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_dead_letter_that_was_edited_hides_no_other(
    store: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        url = url_of(store, tmp_path)
        async with desk(Mainspring(url)) as app:
            await app.send(Note("nobody"))
            await app.send(Note("nobody-2"))
        await edit(store, url, "UPDATE {s}dead_letters SET body = {garbage} WHERE instance = 'nobody'")
        async with asyncio.timeout(60), desk(Mainspring(url)) as app:
            assert [letter.instance for letter in await app.dead_letters()] == ["Desk/nobody-2"]
            with pytest.raises(DamagedRecordError):
                await app.retry_dead_letter(1)
            await app.send(Go("nobody-2"))
            await app.retry_dead_letter(2)
            assert await app.dead_letters() == []

    asyncio.run(main())
    assert "left out of a list" in caplog.text


# ---- rows that pass their checksums, as another release or a clever hand would write them


async def append(app: Mainspring, id: str, row: EventRow, **more: Any) -> None:
    """Append a row to a stream as a store itself would."""
    store = internals_of(app).engine.store
    instance = await app.instance(Desk, id).row()
    [outcome] = await store.commit(
        0,
        [
            Unit(
                "Desk",
                id,
                key=instance.key,
                expected_version=instance.position,
                events=(row,),
                status=instance.status,
                state=instance.state,
                **more,
            )
        ],
    )
    assert isinstance(outcome, Committed)
    internals_of(app).engine.stepper.lanes.forget(Ref("Desk", id))  # as if another process had written it


NEWER: Final = {
    "an event of a newer release": EventRow(6, "Frobbed", 0),
    "a type that nobody knows": EventRow(6, "Received", 0, "Nope", 1, NOTE, kind="command"),
    "a newer version of a type": EventRow(6, "Received", 0, "Note", 99, NOTE, kind="command"),
}
STRANGE: Final[dict[str, tuple[EventRow, type[MainspringError]]]] = {
    "a body of garbage": (EventRow(6, "Received", 0, "Note", 1, b"{", kind="command"), MainspringError),
    "a detail of garbage": (EventRow(6, "Suspended", 0, detail=b"{"), DamagedRecordError),
    "a detail of another shape": (EventRow(6, "Suspended", 0, detail=b'{"reason":7}'), DamagedRecordError),
    "a kind that is none": (EventRow(6, "Received", 0, "Note", 1, NOTE, kind="zzz"), DamagedRecordError),
    "a time out of range": (EventRow(6, "Received", 2**63 - 1, "Note", 1, NOTE, kind="command"), DamagedRecordError),
    "a fan-out that is none": (EventRow(6, "FannedOut", 0, "Note", 1, NOTE), DamagedRecordError),
    "a version that is none": (EventRow(6, "Received", 0, "Note", 0, NOTE, kind="command"), UnknownTypeError),
}


@pytest.mark.parametrize("what", NEWER)
def test_an_instance_with_a_row_of_newer_code_is_left_to_others(office: Office, what: str) -> None:
    id = f"newer {what}"
    office.run(office.app.send(Go(id)))
    office.settle()
    office.run(append(office.app, id, NEWER[what]))
    instance = office.app.instance(Desk, id)
    for reading in (instance.stream, instance.log, instance.state):
        with pytest.raises(NewerTypeError):
            office.run(reading())
    receipt = office.run(office.app.send(Note(id)))
    assert receipt.status == "accepted"
    row = office.run(receipt.row())
    assert (row.status, row.error) == ("running", None)
    assert [waiting.type for waiting in office.run(instance.waiting())] == ["Note"]
    office.neighbour_goes_on()
    office.run(instance.terminate())


@pytest.mark.parametrize("what", STRANGE)
def test_a_row_that_makes_no_sense_is_told_by_a_typed_error(office: Office, what: str) -> None:
    row, error = STRANGE[what]
    id = f"strange {what}"
    office.run(office.app.send(Go(id)))
    office.settle()
    office.run(append(office.app, id, row))
    with pytest.raises(error):
        office.run(office.app.instance(Desk, id).stream())
    with pytest.raises(error):
        office.run(office.app.instance(Desk, id).log())
    receipt = office.run(office.app.send(Note(id)))
    assert receipt.status in ("stepped", "suspended")
    if receipt.status == "suspended":
        with pytest.raises(error):
            office.run(office.app.instance(Desk, id).state())
        assert error.__name__ in (office.run(receipt.row()).error or "") or error is MainspringError
    office.neighbour_goes_on()


WAITING: Final[dict[str, tuple[str, bytes, bytes, str]]] = {
    "a body of garbage": ("command", b"{", CONTEXT, "DecodeError"),
    "a context of garbage": ("command", NOTE, b"zz", "DamagedRecordError"),
    "a kind that is none": ("zzz", NOTE, CONTEXT, "DamagedRecordError"),
}


@pytest.mark.parametrize("what", WAITING)
def test_an_input_that_makes_no_sense_suspends_its_instance(office: Office, what: str) -> None:
    kind, body, context, says = WAITING[what]
    id = f"waiting {what}"
    office.run(office.app.send(Go(id)))
    row = InputRow("Desk", id, "x", kind, "Note", 1, body, 0, context)
    office.run(internals_of(office.app).engine.store.commit(0, [Unit("Desk", id, accepts=(row,))]))
    office.run(wake(office.app))
    instance = office.app.instance(Desk, id)

    async def is_suspended() -> bool:
        return (await instance.row()).status == "suspended"

    office.until(is_suspended)
    assert says in (office.run(instance.row()).error or "")
    assert [waiting.message_id for waiting in office.run(instance.waiting())] == ["x"]
    office.run(instance.terminate())
    office.neighbour_goes_on()


async def wake(app: Mainspring) -> None:
    """Let the claims look now."""
    internals_of(app).engine.wakeups.due_at(0)


def test_an_output_of_an_unknown_kind_is_a_dead_letter(office: Office) -> None:
    office.run(office.app.send(Go("kinds")))
    office.settle()
    row = EventRow(6, "Sent", 0, "Work", 1, b'{"id":"kinds"}', cause=2)
    kind: Any = "zzz"
    office.run(append(office.app, "kinds", row, outputs=(OutputRow(6, kind, "Work"),)))
    office.run(wake(office.app))

    async def buried() -> bool:
        return any(letter.instance == "Desk/kinds" for letter in await office.app.dead_letters(1_000))

    office.until(buried)
    office.neighbour_goes_on()


def test_a_snapshot_of_other_code_is_not_used(office: Office) -> None:
    office.run(office.app.send(Go("snapshot")))
    office.settle()
    row = EventRow(6, "Received", 0, "Note", 1, b'{"id":"snapshot"}', kind="command", message_id="n")
    snapshot = Snapshot(6, "other code", "Nope", 7, b"{")
    office.run(append(office.app, "snapshot", row, snapshot=snapshot))
    assert office.run(office.app.instance(Desk, "snapshot").state()).notes == 1
    office.neighbour_goes_on()


@pytest.mark.parametrize(
    ("letter", "error"),
    [
        (DeadLetter("Desk", "l-1", "x", "zzz", "Note", 1, NOTE, 0, CONTEXT, reason="r"), DamagedRecordError),
        (DeadLetter("Desk", "l-2", "x", "command", "Note", 1, NOTE, 0, b"zz", reason="r"), DamagedRecordError),
        (DeadLetter("Desk", "l-3", "x", "command", "Note", 1, b"{", 0, CONTEXT, reason="r"), MainspringError),
        (DeadLetter("Desk", "l-4", "x", "command", "Nope", 1, NOTE, 0, CONTEXT, reason="r"), UnknownTypeError),
        (DeadLetter("Nope", "l-5", "x", "command", "Note", 1, NOTE, 0, CONTEXT, reason="r"), WiringError),
    ],
    ids=lambda given: given.instance if isinstance(given, DeadLetter) else given.__name__,
)
def test_a_dead_letter_that_makes_no_sense_stays_one(
    office: Office, letter: DeadLetter, error: type[MainspringError]
) -> None:
    office.run(
        internals_of(office.app).engine.store.commit(
            0, [Unit(letter.workflow, letter.instance, dead_letters=(letter,))]
        )
    )
    [found] = [
        each
        for each in office.run(office.app.dead_letters(1_000))
        if each.instance == f"{letter.workflow}/{letter.instance}"
    ]
    with pytest.raises(error):
        office.run(office.app.retry_dead_letter(found.id))
    assert found.id in [each.id for each in office.run(office.app.dead_letters(1_000))]
    office.run(office.app.discard_dead_letter(found.id))
    office.neighbour_goes_on()


def test_every_event_is_either_folded_or_stands_beside() -> None:
    """Else a release would call its own events unknown."""
    every = {
        name
        for name, value in vars(events).items()
        if isinstance(value, type) and hasattr(value, "folded") and not name.startswith("_")
    }
    known = event_rows._FOLDED | event_rows._BESIDE  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  what is to be checked
    assert every - known <= {"Recorded", "Occurrence"}  # the base of them, and what holds one of them
