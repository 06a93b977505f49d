"""What authors' code can do wrong: it blocks its own instance with the reason, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from mainspring import Ask, CancelSchedule, DoNotRetryError, Fail, Mainspring, Reply, Schedule, Send
from mainspring.app.blocking import Blocking, EventLoopThread
from mainspring.errors import RouteError, WiringError
from mainspring.stores.memory import MemoryStore
from tests.edges.bad_input.conftest import Office, url_of
from tests.edges.bad_input.inputs import DELAYS
from tests.edges.bad_input.misbehaving import (
    DECIDES,
    EVOLVES,
    HANDLES,
    ROUTES,
    Desk,
    Done,
    Go,
    Later,
    Note,
    Open,
    Rude,
    Work,
    desk,
)


def raising(error: BaseException | type[BaseException]) -> Callable[..., NoReturn]:
    def raises(*_: object) -> NoReturn:
        raise error

    return raises


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("not to be told")

    __repr__ = __str__


def recursion(*_: object) -> Any:
    return deeper()


def deeper() -> Any:
    # With parameters in a tuple, Python 3.13.0 would never say that it is too deep, and take all memory.
    return deeper()


def halfway(go: Go, _: Open) -> Any:
    yield Send(Work(go.id))
    raise ValueError("halfway")


def changing_the_state(_: Go, state: Open) -> Any:
    state.notes = 9  # pyright: ignore[reportAttributeAccessIssue]  that is the point
    return []


def changing_the_message(go: Go, _: Open) -> Any:
    go.id = "other"  # pyright: ignore[reportAttributeAccessIssue]  that is the point
    return []


# What decide does, and what the instance says of it.
IN_DECIDE: Final[dict[str, tuple[Callable[[Go, Open], Any], str]]] = {
    "raises": (raising(KeyError("no such rate")), "KeyError: 'no such rate'"),
    "returns a text": (lambda *_: "Complete()", "InvalidDecisionError"),
    "returns a number in a list": (lambda *_: [7], "InvalidDecisionError"),
    "returns a dict": (lambda *_: {"a": 1}, "InvalidDecisionError"),
    "returns None": (lambda *_: None, "UnknownTransitionError"),
    "returns 10,001 outputs": (lambda go, _: [Send(Work(go.id))] * 10_001, "TooManyOutputsError"),
    "returns a generator that raises halfway": (halfway, "InvalidDecisionError"),
    "changes the state": (changing_the_state, FrozenInstanceError.__name__),
    "changes the message": (changing_the_message, FrozenInstanceError.__name__),
    "recurses without end": (recursion, "RecursionError"),
    "raises SystemExit": (raising(SystemExit(3)), "LeftError: Desk left decide by SystemExit"),
    "raises CancelledError": (raising(asyncio.CancelledError()), "LeftError: Desk left decide by CancelledError"),
    "raises GeneratorExit": (raising(GeneratorExit()), "LeftError: Desk left decide by GeneratorExit"),
    "raises a group of KeyboardInterrupt": (raising(BaseExceptionGroup("all", [KeyboardInterrupt()])), "LeftError"),
    "raises what cannot be told": (raising(UnspeakableError()), "UnspeakableError"),
    "raises 10 MB of text": (raising(ValueError("x" * 10**7)), "(10000012 characters)"),
    "raises lone surrogates and NUL": (raising(ValueError("\ud800 \0")), "ValueError: \\ud800 \\x00"),
    "sends NaN": (lambda *_: [Send(Work(float("nan")))], "EncodeError"),  # pyright: ignore[reportArgumentType]  that is the point
    "sends 3 MB": (lambda *_: [Send(Work("x" * 3_000_000))], "BodyTooLargeError"),
    "sends what is not declared": (lambda *_: [Send(Open())], "UndeclaredOutputError"),
    "decides behind the end": (lambda go, _: [Fail("no"), Send(Work(go.id))], "DecisionAfterEndError"),
    "fails with a lone surrogate": (lambda *_: [Fail("\ud800")], "InvalidDecisionError"),
    "fails with NUL": (lambda *_: [Fail("a\0b")], "InvalidDecisionError"),
    "fails with a number": (lambda *_: [Fail(7)], "InvalidDecisionError"),  # pyright: ignore[reportArgumentType]  that is the point
    "fails with 10 MB of text": (lambda *_: [Fail("x" * 10**7)], "InvalidDecisionError"),
    "replies to a broken id": (lambda go, _: [Reply(Done(go.id), to="\ud800")], "InvalidDecisionError"),
    "cancels a timer by a number": (lambda *_: [CancelSchedule(7)], "InvalidDecisionError"),  # pyright: ignore[reportArgumentType]  that is the point
    "asks with NUL in the title": (lambda *_: [Ask("a\0", Done, role="boss")], "InvalidDecisionError"),
    "asks with NaN in the data": (
        lambda *_: [Ask("Ok?", Done, role="boss", data={"a": float("nan")})],
        "InvalidDecisionError",
    ),
    **{
        f"schedules with {case.name}": (lambda go, _, given=case.given: [Schedule(Later(go.id), **given)], case.says)
        for case in DELAYS
    },
}
IN_EVOLVE: Final[dict[str, tuple[Callable[[Open], Any], str]]] = {
    "raises": (raising(ValueError("no such state")), "ValueError: no such state"),
    "returns a number": (lambda _: 7, "InvalidStateError"),
    "returns a class": (lambda _: Open, "InvalidStateError"),
    "recurses without end": (recursion, "RecursionError"),
    "raises SystemExit": (raising(SystemExit(3)), "LeftError: Desk left evolve by SystemExit"),
    "raises CancelledError": (raising(asyncio.CancelledError()), "LeftError: Desk left evolve by CancelledError"),
    "raises lone surrogates": (raising(ValueError("\ud800")), "ValueError: \\ud800"),
}


async def hanging(_: Work) -> None:
    await asyncio.Event().wait()


async def deaf(work: Work) -> Done:
    """Ignores that it is told to stop, and goes on to its end."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return Done(work.id)


def blocking(work: Work) -> Done:
    """Holds the event loop itself for a while."""
    threading.Event().wait(0.05)
    return Done(work.id)


def deep(work: Work) -> Done:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return Done(work.id, value)


# What the handler does, and what is said of it: in the instance's error, which is then suspended, or nothing.
IN_HANDLER: Final[dict[str, tuple[Callable[[Work], Any], str | None]]] = {
    "hangs": (hanging, "TimeoutError: desk.<locals>.work took longer than 0:00:00.200000"),
    "ignores its cancellation": (deaf, None),
    "blocks the event loop": (blocking, None),
    "returns NaN": (lambda work: Done(work.id, float("nan")), "EncodeError: Done: value must be a JSON value"),
    "returns a lambda": (lambda work: Done(work.id, lambda: 1), "EncodeError"),
    "returns a text": (lambda _: "done", "UnknownTypeError: str"),
    "returns an object": (lambda _: object(), "UnknownTypeError: object"),
    "returns a generator": (lambda work: (Done(work.id) for _ in range(3)), "UnknownTypeError: generator"),
    "returns 10,001 messages": (lambda work: [Done(work.id)] * 10_001, "returned 10,001 messages; the limit is 2,000"),
    "returns 3 MB": (lambda work: Done(work.id, "x" * 3_000_000), "BodyTooLargeError"),
    "returns 100,000 levels": (deep, "at most 64 levels"),
    "raises SystemExit": (raising(SystemExit(4)), "raised SystemExit"),
    "raises CancelledError": (raising(asyncio.CancelledError()), "raised CancelledError by itself"),
    "raises GeneratorExit": (raising(GeneratorExit()), "raised GeneratorExit"),
    "raises a group of KeyboardInterrupt": (
        raising(BaseExceptionGroup("all", [KeyboardInterrupt()])),
        "raised BaseExceptionGroup",
    ),
    "raises what cannot be told": (raising(UnspeakableError()), "UnspeakableError"),
    "raises 10 MB of text": (raising(DoNotRetryError("x" * 10**7)), "characters)"),
    "raises lone surrogates and NUL": (raising(DoNotRetryError("\ud800 \0")), "DoNotRetryError: \\ud800 \\x00"),
    "recurses without end": (recursion, "RecursionError"),
}


@pytest.fixture(scope="module", autouse=True)
def mistakes() -> Generator[None]:
    logging.disable(logging.CRITICAL)  # tracebacks with lone surrogates in them cannot be sent to who collects the logs
    with pytest.MonkeyPatch.context() as patch:
        for what, (decide, _) in IN_DECIDE.items():
            patch.setitem(DECIDES, f"decide {what}", decide)
        for what, (evolve, _) in IN_EVOLVE.items():
            patch.setitem(EVOLVES, f"evolve {what}", evolve)
        for what, (handle, _) in IN_HANDLER.items():
            patch.setitem(HANDLES, f"handler {what}", handle)
        yield
    logging.disable(logging.NOTSET)


def suspended(office: Office, id: str, what: str, says: str) -> None:
    """Fail unless a message is durable in an instance that is suspended with the reason, and all can be looked at."""
    receipt = office.run(office.app.send(Go(id, what), id=f"m-{id}"))
    assert receipt.status == "suspended"
    row = office.run(receipt.row())
    assert (row.status, row.position) == ("suspended", 0)
    assert says in (row.error or "")
    assert len(row.error or "") < 5_000
    assert [waiting.message_id for waiting in office.run(receipt.waiting())] == [f"m-{id}"]
    assert office.run(receipt.stream()) == []
    assert office.run(receipt.state()) == Open()
    office.neighbour_goes_on()


@pytest.mark.parametrize("what", IN_DECIDE)
def test_a_decide_that_fails_blocks_its_own_instance(office: Office, what: str) -> None:
    suspended(office, f"d {what}", f"decide {what}", IN_DECIDE[what][1])


@pytest.mark.parametrize("what", IN_EVOLVE)
def test_an_evolve_that_fails_blocks_its_own_instance(office: Office, what: str) -> None:
    suspended(office, f"e {what}", f"evolve {what}", IN_EVOLVE[what][1])


@pytest.mark.parametrize("what", IN_HANDLER)
def test_a_handler_that_fails_leaves_a_dead_letter_and_a_suspended_instance(office: Office, what: str) -> None:
    says = IN_HANDLER[what][1]
    receipt = office.run(office.app.send(Go(f"h {what}", f"handler {what}")))
    assert receipt.status == "stepped"

    async def over() -> bool:
        stream = await receipt.stream()
        return len(stream) > 5 and (says is not None) == ((await receipt.row()).status == "suspended")

    office.until(over)
    letters = [letter for letter in office.run(office.app.dead_letters(1_000)) if letter.instance == str(receipt)]
    if says is None:
        assert letters == []
    else:
        [letter] = letters
        assert says in (letter.error or "")
        assert says in (office.run(receipt.row()).error or "")
        assert len(letter.error or "") < 5_000
    office.neighbour_goes_on()


@pytest.mark.parametrize("error", [KeyError("no id"), SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_a_route_that_fails_is_told_to_the_sender(
    office: Office, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ROUTES, "lost", raising(error))
    before = office.kept()
    with pytest.raises(RouteError, match="Desk could not route"):
        office.run(office.app.send(Go("r", "lost")))
    assert office.kept() == before
    office.neighbour_goes_on()


def test_a_message_that_cannot_be_shown_or_compared_is_kept_all_the_same(office: Office) -> None:
    receipt = office.run(office.app.send(Rude("rude"), id="m-rude"))
    assert receipt.status == "suspended"
    assert office.run(receipt.row()).error == "ValueError: rude"
    assert office.run(office.app.send(Rude("rude"), id="m-rude")).status == "duplicate"
    office.neighbour_goes_on()


def test_timers_in_1960_and_in_the_year_9999_are_timers(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    early, late = datetime(1960, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    monkeypatch.setitem(
        DECIDES,
        "far",
        lambda go, _: [Schedule(Later(go.id), at=early, key="early"), Schedule(Later(go.id), at=late, key="late")],
    )
    receipt = office.run(office.app.send(Go("far", "far")))

    async def fired() -> bool:
        return len(await receipt.outputs(timers=True)) == 1

    office.until(fired)
    assert [str(entry.event) for entry in office.run(receipt.stream())][-1].startswith("Received(message=Later")
    office.run(receipt.terminate())


# ---- what ends a process


@pytest.mark.parametrize("where", ["decide", "handler"])
def test_a_keyboard_interrupt_ends_the_process_and_loses_nothing(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table: dict[str, Any] = DECIDES if where == "decide" else HANDLES
    monkeypatch.setitem(table, "stop", raising(KeyboardInterrupt))
    url = url_of("sqlite", tmp_path)
    bounds: list[asyncio.Timeout] = []

    async def first() -> None:
        async with asyncio.timeout(60) as bound, desk(Mainspring(url)) as app:
            bounds.append(bound)
            await app.send(Go("neighbour"))
            await app.send(Go("bad", "stop"), id="m-1")
            await asyncio.Event().wait()

    async def second() -> None:
        async with asyncio.timeout(60), desk(Mainspring(url)) as app:
            assert (await app.send(Note("neighbour"))).status == "stepped"
            again = await app.send(Go("bad", "stop"), id="m-1")
            assert again.status == ("stepped" if where == "decide" else "duplicate")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(first())
    assert not bounds[0].expired()  # it did not hang: nobody else would be told
    gc.collect()  # else a task that nobody asks any more tells its error in the middle of another test
    monkeypatch.delitem(table, "stop")
    asyncio.run(second())


def test_a_keyboard_interrupt_does_not_wait_for_a_commit_that_nobody_makes_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds: list[asyncio.Timeout] = []

    async def interrupted(*_: object) -> NoReturn:
        asyncio.get_running_loop().call_soon(raising(KeyboardInterrupt))
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def main() -> None:
        async with asyncio.timeout(60) as bound, desk(Mainspring("memory://")) as app:
            bounds.append(bound)
            await app.send(Go("neighbour"))
            monkeypatch.setattr(MemoryStore, "commit", interrupted)
            await app.send(Go("bad"))

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert not bounds[0].expired()
    gc.collect()  # as above


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # that is how the loop ends here
def test_who_waits_for_a_blocking_app_is_told_when_its_loop_ends() -> None:
    loop = EventLoopThread()
    loop.start()
    told: list[BaseException] = []

    class Slow:
        async def wait(self) -> None:
            asyncio.get_running_loop().call_soon(raising(SystemExit(1)))
            await asyncio.Event().wait()

    def ask() -> None:
        try:
            blocking: Any = Blocking(Slow(), loop)
            blocking.wait()
        except WiringError as error:
            told.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join(20)
    assert [str(error) for error in told] == ["The app's event loop has ended. Start the app again."]
    loop.stop()


def test_an_answer_that_was_given_just_before_keeps_nobody_from_being_told(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = EventLoopThread()
    loop.start()
    told: list[str] = []
    waiting = threading.Event()

    class Slow:
        async def wait(self) -> None:
            waiting.set()
            await asyncio.Event().wait()

    class Late(set[Any]):
        """Has one more that was answered, and whose thread has not come to its turn yet."""

        def __iter__(self) -> Any:
            given: Any = Future[None]()
            given.set_result(None)
            return iter([given, *super().__iter__()])

    def ask() -> None:
        try:
            blocking: Any = Blocking(Slow(), loop)
            blocking.wait()
        except WiringError as error:
            told.append(str(error))

    monkeypatch.setattr(loop, "_awaited", Late())
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert waiting.wait(20)
    loop.stop()
    asking.join(20)
    assert told == ["The app's event loop has ended. Start the app again."]


def test_a_desk_is_what_the_tests_think(office: Office) -> None:
    """A Go that names no mistake does none: else the tests above would prove nothing."""
    receipt = office.run(office.app.send(Go("plain")))
    assert receipt.status == "stepped"
    names = [type(entry.event).__name__ for entry in office.run(office.app.instance(Desk, "plain").stream())]
    assert names == ["Began", "InitiatedBy", "Sent", "Scheduled", "Asked"]
