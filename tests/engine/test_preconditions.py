"""What a sender asks of an instance: that it is there, or that it is where it was seen. Judged in the commit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Received, Workflow
from mainspring.app import Receipt
from mainspring.app.internals import internals_of
from mainspring.engine.inputs import intake
from mainspring.errors import (
    DuplicateIdError,
    InstancePurgedError,
    NoSuchInstanceError,
    PositionConflictError,
    SettingError,
    StoreBusyError,
)
from mainspring.testing.clock import VirtualClock
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Open:
    draft: str


@dataclass(frozen=True)
class Edit:
    draft: str
    text: str = ""


@dataclass(frozen=True)
class Import:
    draft: str


@dataclass(frozen=True)
class Close:
    draft: str


@dataclass(frozen=True)
class Closed:
    pass


Input = Open | Edit | Import | Close


@dataclass(frozen=True)
class Text:
    text: str = ""


class Drafts(Workflow[Input, Text, Closed]):
    begins = (Open,)
    mode: ClassVar[Any] = {Import: "inbox"}
    initial_state = Text()

    def route(self, message: Input) -> str:
        return message.draft

    def evolve(self, state: Text, event: Event[Input, Closed]) -> Text | None:
        match event:
            case Received(Edit(_, text)):
                return Text(text)
            case _:
                return None

    def decide(self, message: Input, state: Text) -> Decisions[Input, Closed]:
        match message:
            case Open() | Edit() | Import():
                return []
            case Close():
                return [Complete(Closed())]


def drafts(app: Mainspring) -> Mainspring:
    app.add(Drafts())
    return app


async def position(app: Mainspring, draft: str) -> int:
    return (await app.instance(Drafts, draft).row()).position


async def nothing_waits(app: Mainspring, draft: str) -> bool:
    return not await app.instance(Drafts, draft).waiting()


def test_a_message_to_an_id_that_nobody_has_raises_where_its_sender_asks_for_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            for message in (Edit("nobody"), Open("nobody"), Import("nobody")):
                with pytest.raises(NoSuchInstanceError) as raised:
                    await app.send(message, must_exist=True)
                assert raised.value.instance == "Drafts/nobody"
            assert await app.dead_letters() == []
            with pytest.raises(NoSuchInstanceError):
                await app.instance(Drafts, "nobody").row()
            assert (await app.send(Edit("nobody"))).status == "dead letter"

    run(main)


def test_what_is_there_takes_messages_that_need_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.send(Open("d-1"))
            assert (await app.send(Edit("d-1", "a"), must_exist=True)).status == "stepped"
            assert (await app.send(Open("d-1"), must_exist=True)).status == "stepped"
            assert (await app.send(Import("d-1"), must_exist=True)).status == "accepted"
            await until(lambda: nothing_waits(app, "d-1"))
            await app.instance(Drafts, "d-1").suspend()
            assert (await app.send(Edit("d-1", "b"), must_exist=True)).status == "suspended"

    run(main)


def test_another_process_that_has_begun_it_is_seen(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app, drafts(make_app()) as other:
            with pytest.raises(NoSuchInstanceError):
                await app.send(Edit("d-1"), must_exist=True)
            await other.send(Open("d-1"))
            assert (await app.send(Edit("d-1", "a"), must_exist=True)).status == "stepped"
            seen = await position(other, "d-1")
            await other.send(Edit("d-1", "b"), expected_position=seen)
            # What this process remembers of it is old; what its caller has seen is not.
            assert (await app.send(Edit("d-1", "c"), expected_position=seen + 1)).status == "stepped"

    run(main)


def test_a_pause_changes_nothing_in_what_is_asked_of_an_instance(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.send(Open("d-1"))
            seen = await position(app, "d-1")
            await app.pauses.pause(Drafts)
            for message in (Edit("nobody"), Open("nobody"), Import("nobody")):
                with pytest.raises(NoSuchInstanceError):
                    await app.send(message, must_exist=True)
            assert (await app.send(Open("d-2"))).status == "accepted"
            for draft in ("d-1", "d-2"):
                assert (await app.send(Edit(draft, "a"), must_exist=True)).status == "accepted"
            with pytest.raises(PositionConflictError, match="inputs wait"):
                await app.send(Edit("d-1", "b"), expected_position=seen)
            await app.pauses.resume(Drafts)
            for draft in ("d-1", "d-2"):
                await until(lambda draft=draft: nothing_waits(app, draft))
                assert await app.instance(Drafts, draft).state() == Text("a")
            assert await app.dead_letters() == []

    run(main)


def test_an_instance_is_there_for_what_waits_though_that_may_begin_none(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.pauses.pause(Drafts)
            assert (await app.send(Edit("nobody"))).status == "accepted"
            assert (await app.send(Edit("nobody"), must_exist=True)).status == "accepted"
            await app.pauses.resume(Drafts)
            await until(lambda: nothing_waits(app, "nobody"))
            assert [letter.type for letter in await app.dead_letters()] == ["Edit", "Edit"]

    run(main)


def test_in_a_batch_the_first_that_nobody_has_is_told_and_the_others_are_taken(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.send_many([Open("d-1"), Open("d-2")])
            batch = [Edit("d-1", "a"), Edit("nobody"), Edit("d-2", "b"), Edit("no one")]
            with pytest.raises(NoSuchInstanceError, match="nobody"):
                await app.send_many(batch, must_exist=True)
            assert await app.instance(Drafts, "d-2").state() == Text("b")
            assert await app.instance(Drafts, "d-1").state() == Text("a")
            assert await app.dead_letters() == []

    run(main)


def test_a_refusal_in_a_long_batch_comes_when_the_others_are_durable(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "INPUTS_IN_FLIGHT", 5)

    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.send(Open("d-1"))
            batch = [Edit("nobody"), *(Edit("d-1", f"{number}") for number in range(20)), Edit("no one")]
            with pytest.raises(NoSuchInstanceError, match="nobody"):
                await app.send_many(batch, must_exist=True)
            assert await app.instance(Drafts, "d-1").state() == Text("19")

    run(main)


async def is_text(app: Mainspring, draft: str, text: str) -> bool:
    return await app.instance(Drafts, draft).state() == Text(text)


def test_a_send_at_the_position_that_was_seen_is_taken_and_one_behind_it_is_told_where_it_is(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.send(Open("d-1"))
            seen = await position(app, "d-1")
            assert (await app.send(Edit("d-1", "mine"), expected_position=seen)).status == "stepped"
            with pytest.raises(PositionConflictError, match="Read it again") as raised:
                await app.send(Edit("d-1", "late"), expected_position=seen)
            conflict = raised.value
            assert (conflict.instance, conflict.expected, conflict.actual) == ("Drafts/d-1", seen, seen + 1)
            assert await app.instance(Drafts, "d-1").state() == Text("mine")
            assert (await app.send(Edit("d-1", "again"), expected_position=conflict.actual)).status == "stepped"

    run(main)


def test_of_many_who_have_seen_the_same_one_is_taken(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app, drafts(make_app()) as other:
            await app.send(Open("d-1"))
            seen = await position(app, "d-1")
            sends = [
                process.send(Edit("d-1", f"{number}"), expected_position=seen)
                for number in range(10)
                for process in (app, other)
            ]
            outcomes = await asyncio.gather(*sends, return_exceptions=True)
            refused = [outcome for outcome in outcomes if isinstance(outcome, PositionConflictError)]
            assert len(refused) == len(sends) - 1
            await until(lambda: nothing_waits(app, "d-1"))
            assert await position(app, "d-1") == seen + 1

    run(main)


def test_the_same_message_again_is_a_duplicate_and_no_conflict(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app, drafts(make_app()) as other:
            await app.send(Open("d-1"))
            seen = await position(app, "d-1")
            await app.send(Edit("d-1", "a"), id="m-1", expected_position=seen)
            for process in (app, other):
                again = await process.send(Edit("d-1", "a"), id="m-1", expected_position=seen)
                assert again.status == "duplicate"
                with pytest.raises(DuplicateIdError):
                    await process.send(Edit("d-1", "b"), id="m-1", expected_position=seen)

    run(main)


def test_inputs_that_wait_are_a_conflict(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.send(Open("d-1"))
            draft = app.instance(Drafts, "d-1")
            await draft.suspend()
            seen = await position(app, "d-1")
            assert (await app.send(Edit("d-1", "a"), expected_position=seen)).status == "suspended"
            for message in (Edit("d-1", "b"), Import("d-1")):
                with pytest.raises(PositionConflictError, match="inputs wait") as raised:
                    await app.send(message, expected_position=seen)
                assert (raised.value.actual, raised.value.waiting) == (seen, True)
            await draft.resume()
            await until(lambda: nothing_waits(app, "d-1"))
            assert await draft.state() == Text("a")

    run(main)


def test_a_message_that_goes_through_the_inbox_is_checked_when_it_is_accepted(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.send(Open("d-1"))
            seen = await position(app, "d-1")
            with pytest.raises(PositionConflictError):
                await app.send(Import("d-1"), expected_position=seen - 1)
            assert (await app.send(Import("d-1"), expected_position=seen)).status == "accepted"

    run(main)


def test_at_0_a_message_begins_or_is_a_conflict(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app, drafts(make_app()) as other:
            sends = [process.send(Open("d-1"), expected_position=0) for process in (app, other, app, other)]
            outcomes = await asyncio.gather(*sends, return_exceptions=True)
            assert len([outcome for outcome in outcomes if isinstance(outcome, PositionConflictError)]) == 3
            with pytest.raises(PositionConflictError, match="has no stream, and was expected at position 3") as raised:
                await app.send(Edit("nobody"), expected_position=3)
            assert raised.value.actual == 0

    run(main)


def test_to_one_that_has_ended_the_position_is_checked_before_it_is_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            await app.send(Open("d-1"))
            await app.send(Close("d-1"))
            seen = await position(app, "d-1")
            with pytest.raises(PositionConflictError):
                await app.send(Edit("d-1"), expected_position=seen - 1)
            assert await app.dead_letters() == []
            assert (await app.send(Edit("d-1"), expected_position=seen, must_exist=True)).status == "dead letter"

    run(main)


def test_one_that_was_purged_is_not_there(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with drafts(make_app(clock)) as app:
            await app.send(Open("d-1"))
            await app.send(Close("d-1"))
            seen = await position(app, "d-1")
            clock.advance(600)
            assert (await app.purge(older_than=timedelta(seconds=1))).instances == 1
            asked: list[dict[str, Any]] = [{"must_exist": True}, {"expected_position": seen}]
            for options in asked:
                with pytest.raises(InstancePurgedError):
                    await app.send(Edit("d-1"), **options)
            assert await app.dead_letters() == []

    run(main)


def test_a_transaction_of_ones_own_is_undone_by_an_instance_that_is_otherwise(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            if internals_of(app).url.startswith("memory:"):
                return
            await app.send_many([Open("d-1"), Open("d-2")])
            seen = await position(app, "d-1")
            async with app.transaction() as transaction:
                await transaction.execute("CREATE TABLE edits (text TEXT)")
                transaction.send(Edit("d-1", "a"), expected_position=seen)
            await until(lambda: is_text(app, "d-1", "a"))
            beside: list[Receipt[Any]] = []

            async def write(message: Edit, **options: Any) -> None:
                async with app.transaction() as transaction:
                    await transaction.execute("INSERT INTO edits VALUES ($1)", "b")
                    beside.append(transaction.send(Edit("d-2", "b")))
                    transaction.send(message, **options)

            with pytest.raises(PositionConflictError):
                await write(Edit("d-1", "b"), expected_position=seen)
            with pytest.raises(NoSuchInstanceError):
                await write(Edit("nobody"), must_exist=True)
            assert [receipt.status for receipt in beside] == ["pending", "pending"], "they were undone with the rest"
            async with app.transaction() as transaction:
                assert await transaction.fetchval("SELECT count(*) FROM edits") == 0
            assert await app.instance(Drafts, "d-2").state() == Text("")

    run(main)


def test_of_transactions_that_begin_one_instance_the_losers_are_told_where_it_is(make_app: MakeApp) -> None:
    async def main() -> None:
        async with drafts(make_app()) as app:
            if internals_of(app).url.startswith("memory:"):
                return

            async def begin(number: int) -> Exception | None:
                try:
                    async with app.transaction() as transaction:
                        await transaction.execute("SELECT 1")
                        transaction.send(Open("d-1"), id=f"m-{number}", expected_position=0)
                except (PositionConflictError, StoreBusyError) as error:
                    return error
                return None

            ended = await asyncio.gather(*(begin(number) for number in range(20)))
            assert [type(error) for error in ended if error is not None] == [PositionConflictError] * 19

    run(main)


@pytest.mark.parametrize("wrong", [-1, True, "3", 1.0])
def test_what_is_no_position_is_refused(wrong: Any) -> None:
    async def main() -> None:
        async with drafts(Mainspring("memory://")) as app:
            with pytest.raises(SettingError, match="expected_position"):
                await app.send(Open("d-1"), expected_position=wrong)
            with pytest.raises(SettingError, match="leave must_exist out"):
                await app.send(Open("d-1"), expected_position=0, must_exist=True)

    run(main)
