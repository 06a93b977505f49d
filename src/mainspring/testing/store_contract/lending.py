"""Lending: what a handler writes, and what is accepted beside it, are committed together or not at all."""

# ruff: noqa: S101, S608  a conformance suite asserts, and names its own table

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Final

from mainspring.errors import LendingError
from mainspring.port.loans import Loan
from mainspring.port.preconditions import Precondition, Unmet
from mainspring.port.records import Committed, Duplicate, Relayed
from mainspring.testing.store_contract.rig import Rig, Suite, accept, behaviour, input_row

LIMIT_SECONDS: Final = 5.0
# Of this run: a server that was running already may have others on it.
TABLE: Final = f"lent_{os.getpid()}"


class LendingTests(Suite):
    """Stores without a database to write to refuse, and say so."""

    @behaviour
    async def test_what_is_written_and_what_is_accepted_are_committed_together(self, rig: Rig) -> None:
        async with _table(rig) as lends:
            if lends:
                loan = await _written(rig, "a")
                outcomes = await loan.accept([input_row("m-1"), input_row("m-2")])
                assert [type(outcome) for outcome in outcomes] == [Committed, Committed]
                assert await rig.waiting() == ["m-1", "m-2"]
                assert await _rows(rig) == ["a"]

    @behaviour
    async def test_an_input_that_is_there_already_is_no_obstacle(self, rig: Rig) -> None:
        async with _table(rig) as lends:
            if lends:
                await rig.done(accept("m-1"))
                loan = await _written(rig, "a")
                first, second = await loan.accept([input_row("m-1"), input_row("m-2")])
                assert (first, type(second)) == (Duplicate(same=True), Committed)
                assert await rig.waiting() == ["m-1", "m-2"]
                assert await _rows(rig) == ["a"]

    @behaviour
    async def test_an_id_that_was_used_for_another_message_undoes_everything(self, rig: Rig) -> None:
        async with _table(rig) as lends:
            if lends:
                await rig.done(accept("m-1"))
                loan = await _written(rig, "a")
                outcomes = await loan.accept([input_row("m-2"), input_row("m-1", body=b'{"other":1}')])
                assert outcomes[1] == Duplicate(same=False)
                assert await rig.waiting() == ["m-1"]
                assert await _rows(rig) == []

    @behaviour
    async def test_an_instance_that_is_not_as_its_sender_asks_undoes_everything(self, rig: Rig) -> None:
        async with _table(rig) as lends:
            if lends:
                loan = await _written(rig, "a")
                outcomes = await loan.accept(
                    [input_row("m-1"), input_row("m-2", "o-2")], [None, Precondition(exists=True)]
                )
                assert outcomes[1] == Unmet(0, waiting=False)
                assert await rig.waiting() == []
                assert await _rows(rig) == []

    @behaviour
    async def test_what_is_written_without_any_input_is_committed(self, rig: Rig) -> None:
        async with _table(rig) as lends:
            if lends:
                loan = await _written(rig, "a")
                assert await loan.accept([]) == []
                assert await _rows(rig) == ["a"]

    @behaviour
    async def test_what_is_rolled_back_leaves_nothing(self, rig: Rig) -> None:
        async with _table(rig) as lends:
            if lends:
                loan = await _written(rig, "a")
                await loan.roll_back()
                assert await _is_refused(loan.accept([input_row("m-1")]))
                assert await rig.waiting() == []
                assert await _rows(rig) == []

    @behaviour
    async def test_where_nothing_was_posted_nothing_is_relayed(self, rig: Rig) -> None:
        await rig.done(accept("m-1"))
        assert await rig.store.relay(10) == Relayed(0)
        assert await rig.waiting() == ["m-1"]


@asynccontextmanager
async def _table(rig: Rig) -> AsyncGenerator[bool]:
    """Have a table of our own for a while; False where there is no database, which must be said by the store."""
    if not rig.store.lends:
        assert await _is_refused(rig.store.lend(rig.worker, LIMIT_SECONDS))
        yield False
        return
    await _run(rig, f"CREATE TABLE {TABLE} (id text PRIMARY KEY)")
    try:
        yield True
    finally:
        await _run(rig, f"DROP TABLE {TABLE}")


async def _run(rig: Rig, statement: str) -> None:
    loan = await rig.store.lend(rig.worker, LIMIT_SECONDS)
    await loan.connection.execute(statement)
    await loan.accept([])


async def _written(rig: Rig, id: str) -> Loan:
    loan = await rig.store.lend(rig.worker, LIMIT_SECONDS)
    await loan.connection.execute(f"INSERT INTO {TABLE} VALUES ($1)", id)
    return loan


async def _rows(rig: Rig) -> list[Any]:
    loan = await rig.store.lend(rig.worker, LIMIT_SECONDS)
    try:
        return [row["id"] for row in await loan.connection.fetch(f"SELECT id FROM {TABLE} ORDER BY id")]
    finally:
        await loan.roll_back()


async def _is_refused(asked: Awaitable[Any]) -> bool:
    try:
        await asked
    except LendingError:
        return True
    return False
