"""Read models and searches on the command line."""

import asyncio
import importlib
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.edges.cli.conftest import Run
from tests.support.waiting import until

READERS = """
from dataclasses import dataclass
from pathlib import Path

from mainspring import Decisions, Event, FeedEntry, Mainspring, Received, Workflow

@dataclass(frozen=True)
class Place:
    order: str
    customer: str
    amount: int

@dataclass(frozen=True)
class Placed:
    customer: str = ""
    amount: int = 0

@dataclass(frozen=True)
class Nothing:
    pass

class Sales(Workflow[Place, Placed, Nothing]):
    initial_state = Placed()

    def route(self, message: Place) -> str | None:
        return message.order

    def decide(self, message: Place, state: Placed) -> Decisions[Place, Nothing] | None:
        if message.amount < 0:
            raise ValueError("a negative amount")
        return []

    def evolve(self, state: Placed, event: Event[Place, Nothing]) -> Placed | None:
        match event:
            case Received(Place(_, customer, amount)):
                return Placed(customer, amount)

    def attributes(self, state: Placed):
        return {"customer": state.customer, "amount": state.amount}

app = Mainspring("sqlite:///readers.db")
app.add(Sales())

@app.projections.add(name="sales", key=lambda entry: entry.input and entry.input.customer)
def sales(document: Placed | None, entry: FeedEntry) -> Placed | None:
    if entry.input.amount == 13 and not Path("mended").exists():
        raise ValueError("unlucky")
    return Placed(entry.input.customer, (document or Placed()).amount + entry.input.amount)
"""


@pytest.fixture
def readers(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    (folder / "readers.py").write_text(READERS)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("MAINSPRING_APP", "readers:app")
    yield importlib.import_module("readers")
    sys.modules.pop("readers", None)


def place(readers: Any, *amounts: int) -> None:
    async def main() -> None:
        async with readers.app as app:
            for number, amount in enumerate(amounts):
                await app.send(readers.Place(f"o-{number}", f"c-{number % 2}", amount))

            async def settled() -> bool:
                status = await app.projections("sales").status()
                return status.stopped or (status.live is not None and not status.live.events)

            await until(settled)

    asyncio.run(main())


def test_a_read_model_is_listed_shown_and_rebuilt(run: Run, readers: Any) -> None:
    place(readers, 5, 7)
    assert run("projections", "list").text.splitlines()[1].split() == ["sales", "1", "nothing"]
    shown = run("projections", "show", "sales", "--json").document
    assert (shown["live"]["generation"], shown["live"]["events"], shown["building"]) == (1, 0, None)
    assert run("projections", "rebuild", "sales").text == "sales: generation 2 will be built by a worker\n"
    assert "building: generation 2" in run("projections", "show", "sales").text
    assert run("doctor").text.count("sales") == 0


def test_what_stopped_a_read_model_is_shown_by_the_doctor_too(run: Run, readers: Any) -> None:
    place(readers, 13, 7)
    shown = run("projections", "show", "sales")
    assert (shown.code, "stopped: Sales/o-0 position 2 (InitiatedBy Place)" in shown.text) == (1, True)
    doctor = run("doctor")
    assert doctor.code == 1
    assert "The projection sales, generation 1, is stopped: Sales/o-0 position 2" in " ".join(doctor.text.split())
    assert "Until then, what has ended since is not purged." in " ".join(doctor.text.split())


def test_a_read_model_that_is_not_there_is_told(run: Run, readers: Any) -> None:
    assert "no worker ran it yet" in run("projections", "list").text
    shown, rebuilt = run("projections", "show", "nothing"), run("projections", "rebuild", "nothing")
    assert (shown.code, rebuilt.code) == (3, 3)
    assert "does not exist" in shown.err
    assert "is not declared here" in rebuilt.err


def test_instances_are_found_by_attribute_error_and_time(run: Run, readers: Any) -> None:
    place(readers, 5, 7, -1)

    def found(*options: str) -> list[str]:
        return [document["id"] for document in run("ls", "--json", *options).documents]

    assert found("--attribute", "customer=c-1") == ["o-1"]
    assert found("--attribute", "amount>=5", "--attribute", "amount<7") == ["o-0"]
    assert found("--error", "negative amount", "--since", "1h") == ["o-2"]
    assert found("--until", "1h") == found("--began-until", "2026-01-01") == []
    assert found("--began-since", "2020-01-01T00:00Z", "--attribute", "customer='c-0'") == ["o-0"]
    assert "is no comparison" in run("ls", "--attribute", "customer").err
    for text in ("yesterday", "9999999d", "99999999999d"):
        assert "is no time" in run("ls", "--since", text).err
    assert run("bulk", "cancel", "--attribute", "customer=c-1", "--dry-run").text.startswith("1 instance found")
