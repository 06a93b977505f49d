"""Whatever id somebody chooses, it takes no other message's place."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import Ask, Complete, Context, Event, Fail, Mainspring, Reply, Send, SendFailed, Workflow
from mainspring.app.internals import internals_of
from mainspring.core.messages import Kind
from mainspring.engine.inputs.pending import Pending
from mainspring.errors import DuplicateIdError, InstanceFailedError, InvalidIdError
from mainspring.port import ids, records
from mainspring.port.ids import MARK, plain
from mainspring.port.records import Ref
from tests.engine.jobs import Done, Job, Start, Work
from tests.support.apps import MakeApp
from tests.support.rows import letters_of
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Move:
    id: str
    account: str


@dataclass(frozen=True)
class Deposit:
    account: str
    amount: int = 7


@dataclass(frozen=True)
class Mark:
    account: str


@dataclass(frozen=True)
class Deposited:
    amount: int


@dataclass(frozen=True)
class Nothing:
    pass


class Transfer(Workflow[Move | Deposited | SendFailed, Nothing, Deposit]):
    """Lets an account take a deposit, and ends when it has."""

    begins = Move
    initial_state = Nothing()

    def route(self, message: Move | Deposited | SendFailed) -> str | None:
        return message.id if isinstance(message, Move) else None

    def decide(self, message: Move | Deposited | SendFailed, state: Nothing) -> Any:
        match message:
            case Move(_, account):
                return [Send(Deposit(account))]
            case Deposited():
                return [Complete()]
            case SendFailed():
                return [Fail(f"{message.type} {message.message_id} {message.definite}: {message.error}")]

    def evolve(self, state: Nothing, event: Event[Any, Any]) -> Nothing | None:
        return None


class Account(Workflow[Deposit | Mark, Nothing, Deposited]):
    """Takes deposits, and marks of anybody."""

    begins = Deposit | Mark
    initial_state = Nothing()

    def route(self, message: Deposit | Mark) -> str | None:
        return message.account

    def decide(self, message: Deposit | Mark, state: Nothing) -> Any:
        return [Reply(Deposited(message.amount))] if isinstance(message, Deposit) else []

    def evolve(self, state: Nothing, event: Event[Any, Any]) -> Nothing | None:
        return None


def bank(app: Mainspring) -> Mainspring:
    app.add(Transfer(), Account())
    return app


async def deposits(app: Mainspring) -> int:
    stream = await app.instance(Account, "a").stream()
    return sum(entry.kind == Kind.COMMAND and "Deposit" in str(entry.event) for entry in stream)


@pytest.mark.parametrize("chosen", [Mark("a"), Deposit("a", 9), Deposit("a")])
def test_a_command_of_an_instance_is_taken_though_somebody_chose_its_id(make_app: MakeApp, chosen: Any) -> None:
    async def main() -> None:
        async with bank(make_app()) as app:
            await app.send(chosen, id="Transfer/t9/3")
            await (await app.send(Move("t9", "a"))).result()
            assert await app.dead_letters() == []
            taken = [entry.message_id for entry in await app.instance(Account, "a").stream() if entry.kind]
            assert taken == ["Transfer/t9/3", "Transfer/t9/3"]

    run(main)


def test_a_chosen_id_that_comes_later_is_taken_too(make_app: MakeApp) -> None:
    async def main() -> None:
        async with bank(make_app()) as app:
            await (await app.send(Move("t9", "a"))).result()
            assert (await app.send(Mark("a"), id="Transfer/t9/3")).status == "stepped"
            assert (await app.send(Mark("a"), id="Transfer/t9/3")).status == "duplicate"
            with pytest.raises(DuplicateIdError, match="Transfer/t9/3"):
                await app.send(Deposit("a"), id="Transfer/t9/3")

    run(main)


def test_no_id_that_is_given_can_hold_the_mark(make_app: MakeApp) -> None:
    async def main() -> None:
        async with bank(make_app()) as app:
            for call in (app.send, app.publish):
                with pytest.raises(InvalidIdError):
                    await call(Mark("a"), id=f"{MARK}Transfer/t9/3")

    run(main)


def test_a_reply_goes_to_the_instance_that_asked_and_not_to_who_chose_its_id(make_app: MakeApp) -> None:
    async def main() -> None:
        async with bank(make_app()) as app:
            await app.send(Move("t9", "a"))
            await app.instance(Transfer, "t9").result()
            # The reply of the account has an id as well, which somebody might choose at the instance that waits for it.
            await app.send(Mark("b"), id="Account/a/3")
            await (await app.send(Move("t8", "b"))).result()

    run(main)


def test_the_second_result_of_a_handler_is_taken_though_somebody_chose_its_id(make_app: MakeApp) -> None:
    keys: list[str] = []

    class Twice(Job):
        def decide(self, message: Start | Done, state: Any) -> Any:
            match message:
                case Start(id):
                    return [Send(Work(id, 0))]
                case Done(_, part):
                    return [Complete()] if part == 2 else []

    async def main() -> None:
        app, go_on = make_app(), asyncio.Event()
        app.add(Twice())

        @app.handler
        async def work(command: Work, context: Context) -> list[Done]:
            keys.append(context.idempotency_key)
            await go_on.wait()
            return [Done(command.id, 1), Done(command.id, 2)]

        async with app:
            job = await app.send(Start("j-1"))
            await until(lambda: keys)
            await app.send(Done("j-1", 0), id="Twice/j-1/3/2")
            go_on.set()
            await job.result()

    run(main)
    assert keys == ["Twice/j-1/3"]  # what others see has no mark


@dataclass(frozen=True)
class Approve:
    id: str


class Approval(Workflow[Start | Approve | Mark, Nothing, Work]):
    begins = Start
    initial_state = Nothing()

    def route(self, message: Start | Approve | Mark) -> str | None:
        return message.account if isinstance(message, Mark) else message.id

    def decide(self, message: Start | Approve | Mark, state: Nothing) -> Any:
        match message:
            case Start():
                return [Ask("May it?", answer=Approve, role="boss")]
            case Approve():
                return [Complete()]
            case Mark():
                return []

    def evolve(self, state: Nothing, event: Event[Any, Any]) -> Nothing | None:
        return None


def test_a_task_is_answered_though_somebody_chose_the_answers_id(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Approval())
        async with app:
            begun = await app.send(Start("x"))
            (task,) = await app.tasks.list()
            await app.send(Mark("x"), id=f"{task.id}/answer")
            outcome = await app.tasks.complete(task.id, Approve("x"), actor="ann", roles=("boss",))
            assert outcome.first
            await begun.result()

    run(main)


# ---- messages from inside with the same id


def earlier(app: Mainspring, message: Any) -> Pending:
    """Return a message that an instance of the same name has sent before, as it is brought to its account."""
    encoded = internals_of(app).registry.codec.encode(message)
    context = records.Context("c-1")
    ref = Ref("Account", "a")
    return Pending(ref, message, encoded.name, 1, encoded.body, "Transfer/t9/3", Kind.COMMAND, context, 0, mark=MARK)


def test_the_same_message_from_inside_counts_once(make_app: MakeApp) -> None:
    async def main() -> None:
        async with bank(make_app()) as app:
            internals_of(app).engine.stepper.submit(earlier(app, Deposit("a")))
            transfer = await app.send(Move("t9", "a"))

            async def settled() -> bool:
                return await transfer.outputs() == []

            await until(settled)
            assert await deposits(app) == 1
            assert await app.dead_letters() == []

    run(main)


def test_another_message_with_the_same_id_is_a_dead_letter_and_its_sender_is_told(make_app: MakeApp) -> None:
    async def main() -> None:
        async with bank(make_app()) as app:
            internals_of(app).engine.stepper.submit(earlier(app, Mark("a")))
            await until(lambda: _has(app, "a"))
            with pytest.raises(
                InstanceFailedError,
                match="Deposit Transfer/t9/3 True: its id was used before, for another message",
            ):
                await (await app.send(Move("t9", "a"))).result()
            (letter,) = await letters_of(app)
            assert (letter.workflow, letter.instance, plain(letter.message_id), letter.body) == (
                "Account",
                "a",
                "Transfer/t9/3",
                b'{"account":"a","amount":7}',
            )
            assert await deposits(app) == 0

    run(main)


async def _has(app: Mainspring, account: str) -> bool:
    rows = await internals_of(app).engine.store.stream(Ref("Account", account), 0, 10)
    return bool(rows)


def test_a_reply_with_the_id_of_another_is_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with bank(make_app()) as app:
            begun = await app.send(Move("t9", "b"))
            await begun.result()
            again = earlier(app, Deposited(9))
            again.ref, again.kind, again.id = Ref("Transfer", "t9"), Kind.REPLY, "Account/b/3"
            internals_of(app).engine.stepper.submit(again)
            (letter,) = await until(app.dead_letters)
            assert (letter.type, letter.reason) == ("Deposited", "its id was used before, for another message")

    run(main)


# ---- workers of two releases


def unmarked(patch: pytest.MonkeyPatch) -> None:
    """Make all that is derived from now on as a release before the mark did."""
    for module in list(sys.modules.values()):
        if module is not ids and getattr(module, "MARK", None) is MARK and module.__name__.startswith("mainspring"):
            patch.setattr(module, "MARK", "")


def stored_ids(rows: list[Any]) -> list[str]:
    return [row.message_id for row in rows if row.message_id is not None]


def test_what_an_older_release_has_stored_is_taken_once_and_keeps_its_id(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        with monkeypatch.context() as patch:
            unmarked(patch)
            async with bank(make_app()) as old:
                await old.send(Mark("a"), id="m-1")
                await old.instance(Account, "a").suspend()
                await old.send(Move("t9", "a"))
                await until(waiting_in(old))
                rows = await internals_of(old).engine.store.inbox(Ref("Account", "a"), 10)
                assert stored_ids(rows) == ["Transfer/t9/3"]
        async with bank(make_app()) as new:
            # Somebody who sends it again is told so: it waits there.
            with pytest.raises(DuplicateIdError):
                await new.send(Mark("a"), id="Transfer/t9/3")
            await new.instance(Account, "a").resume()
            await new.instance(Transfer, "t9").result()
            assert await deposits(new) == 1
            rows = await internals_of(new).engine.store.stream(Ref("Account", "a"), 0, 20)
            assert stored_ids(rows)[-1] == "Transfer/t9/3"
            await (await new.send(Move("t8", "a"))).result()
            rows = await internals_of(new).engine.store.stream(Ref("Account", "a"), 0, 20)
            assert stored_ids(rows)[-1] == f"{MARK}Transfer/t8/3"

    run(main)


def waiting_in(app: Mainspring) -> Callable[[], Any]:
    return lambda: internals_of(app).engine.store.inbox(Ref("Account", "a"), 10)


def test_an_older_release_takes_what_a_newer_one_has_left_waiting(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with bank(make_app()) as new:
            await new.send(Mark("a"), id="m-1")
            await new.instance(Account, "a").suspend()
            await new.send(Move("t9", "a"))
            await until(waiting_in(new))
        with monkeypatch.context() as patch:
            unmarked(patch)
            async with bank(make_app()) as old:
                await old.instance(Account, "a").resume()
                await old.instance(Transfer, "t9").result()
                rows = await internals_of(old).engine.store.stream(Ref("Account", "a"), 0, 20)
                assert stored_ids(rows)[-1] == f"{MARK}Transfer/t9/3"
        async with bank(make_app()) as new:
            assert await deposits(new) == 1

    run(main)
