"""Golden histories: kept from a real store, and held against what a workflow would decide today."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Received, Schedule, Send, Workflow
from mainspring.errors import SettingError, WiringError
from mainspring.sealing import Encrypted, FileKeys
from mainspring.testing import HistoryChanged, replay_histories, save_histories
from tests.proof.golden.golden_app import Hands, shop
from tests.proof.golden.orders import Note, Order, Place
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass(frozen=True)
class Overdue:
    id: str


@dataclass(frozen=True)
class Review:
    id: str
    amount: int


@dataclass(frozen=True)
class Open:
    amount: int = 0


class Refund(Workflow[Claim | Overdue, Open, Review]):
    begins = Claim
    initial_state = Open()
    limit: ClassVar = 100
    factor: ClassVar = 1
    broken: ClassVar = False

    def route(self, message: Claim | Overdue) -> str | None:
        return message.id

    def evolve(self, state: Open, event: Event[Claim | Overdue, Review]) -> Open | None:
        match event:
            case Received(Claim(_, amount)):
                return Open(amount * self.factor)

    def decide(self, message: Claim | Overdue, state: Open) -> Decisions[Claim | Overdue, Review] | None:
        match message:
            case Claim() if self.broken:
                raise ZeroDivisionError("broken")
            case Claim(id, amount) if amount > self.limit:
                return [Send(Review(id, amount)), Schedule(Overdue(id), after=timedelta(days=1))]
            case Claim():
                return [Complete()]
            case Overdue():
                return []


def refunds(url: str) -> Mainspring:
    app = Mainspring(url)
    app.add(Refund())
    app.external(Review)
    return app


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Keep the history of a claim that is reviewed, and of one that is not."""
    path = tmp_path / "refunds.json"

    async def body() -> None:
        async with refunds(f"sqlite:///{tmp_path / 'refunds.db'}") as app:
            await app.send(Claim("c-1", 300), id="m-1")
            await app.send(Claim("c-2", 20), id="m-2")
            assert await save_histories(app, path) == 2

    run(body)
    return path


def test_what_is_decided_as_before_passes(kept: Path) -> None:
    assert replay_histories(refunds("memory://"), kept) == 2


def test_a_changed_decision_is_told_as_a_difference(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "limit", 1_000)

    with pytest.raises(HistoryChanged) as changed:
        replay_histories(refunds("memory://"), kept)
    assert str(changed.value).splitlines() == [
        "Refund/c-1, position 2: Claim(id='c-1', amount=300) in Open(amount=0) is decided otherwise",
        "- Sent(message=Review(id='c-1', amount=300))",
        "- Scheduled(message=Overdue(id='c-1'), after=datetime.timedelta(days=1), at=None, key='Overdue')",
        "+ Completed(result=None)",
    ]


def test_a_changed_state_is_told_with_its_fields(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "factor", 2)

    with pytest.raises(HistoryChanged) as changed:
        replay_histories(refunds("memory://"), kept)
    assert str(changed.value).splitlines() == [
        "Refund/c-1, position 2: Claim(id='c-1', amount=300) in Open(amount=0) leads to another state",
        "~ Open: amount: expected 300, is 600",
    ]


def test_a_decide_that_fails_now_is_a_difference(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "broken", True)

    with pytest.raises(HistoryChanged, match="it was decided, and now fails: ZeroDivisionError: broken"):
        replay_histories(refunds("memory://"), kept)


def test_an_evolve_that_fails_now_is_a_difference(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "factor", None)

    with pytest.raises(HistoryChanged) as changed:
        replay_histories(refunds("memory://"), kept)
    first, second = str(changed.value).splitlines()
    assert first.startswith("Refund/c-1 cannot be folded any more: TypeError: unsupported operand")
    assert second == "  while Refund evolved Open(amount=0) by InitiatedBy(message=Claim(id='c-1', amount=300))"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "one", "histories": []}', b"\xff"])
def test_a_file_that_holds_no_histories_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_bytes(content)
    with pytest.raises(WiringError, match=r"is no file of histories .* Save the histories again"):
        replay_histories(refunds("memory://"), tmp_path / "other.json")


def test_what_cannot_be_kept_is_refused_and_writes_no_file(tmp_path: Path) -> None:
    async def body() -> None:
        async with refunds("memory://") as app:
            with pytest.raises(WiringError, match="Order is not part of this app"):
                await save_histories(app, tmp_path / "none.json", workflow=Order)
            with pytest.raises(SettingError, match="limit is 0"):
                await save_histories(app, tmp_path / "none.json", limit=0)

    run(body)
    assert not (tmp_path / "none.json").exists()


def test_what_was_erased_is_left_out(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")

    def sealed() -> Mainspring:
        seal = Encrypted(keys, subject=lambda about, _: about.instance)
        app = Mainspring(f"sqlite:///{tmp_path / 'refunds.db'}", seal=seal)
        app.add(Refund())
        app.external(Review)
        return app

    async def body() -> None:
        async with sealed() as app:
            await app.send(Claim("c-1", 300))
            await app.send(Claim("c-2", 20))
        keys.destroy("c-1")
        async with sealed() as app:
            assert await save_histories(app, tmp_path / "refunds.json") == 1

    run(body)
    assert replay_histories(refunds("memory://"), tmp_path / "refunds.json") == 1


def test_a_history_of_a_workflow_that_is_not_there_is_refused(kept: Path) -> None:
    with pytest.raises(WiringError, match="histories of Refund"):
        replay_histories(Mainspring("memory://"), kept)


def test_what_operators_did_is_no_decision(tmp_path: Path) -> None:
    """Suspended, mended, reset and cancelled instances are replayed like others: only their inputs are decided."""

    async def body() -> None:
        app = shop(f"sqlite:///{tmp_path / 'shop.db'}", Hands(tmp_path / "effects"))
        async with app:
            order = app.instance(Order, "o-1")
            await app.send(Place("o-1", "timer"))

            async def packed() -> bool:
                return (await order.row()).position >= 8

            await until(packed)
            await app.send(Note("o-1", 1))
            await order.suspend()
            await app.send(Note("o-1", 2))
            await order.skip()
            await app.send(Note("o-1", 3))
            await order.reset(6, "once more")
            await app.send(Note("o-1", 4))
            await order.cancel()
            events = [type(entry.event).__name__ for entry in await order.stream()]
            assert {"Suspended", "Skipped", "Reset", "Cancelled"} <= set(events)
            await save_histories(app, tmp_path / "orders.json", workflow=Order)
        assert replay_histories(app, tmp_path / "orders.json") == events.count("Received") + 1

    run(body)
