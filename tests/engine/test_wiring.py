"""What is refused before the first message, and what makes a snapshot of other code."""

import importlib
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from mainspring import Complete, Context, Decisions, Event, Send, Workflow, sources
from mainspring.core.definition import definition_of
from mainspring.engine.recording.fingerprint import fingerprint_of
from mainspring.errors import WiringError
from tests.engine.jobs import Done, Job, Start, Work, Working
from tests.support.apps import MakeApp
from tests.support.running import run


class Taker(Workflow[Work, Working, Done]):
    """Takes what a Job sends."""

    initial_state = Working()

    def route(self, message: Work) -> str | None:
        return message.id

    def evolve(self, state: Working, event: Event[Work, Done]) -> Working | None:
        return None

    def decide(self, message: Work, state: Working) -> Decisions[Work, Done] | None:
        return [Complete(Done(message.id, message.part))]


class SecondTaker(Taker):
    pass


class Indirect(Job):
    """Sends by way of a variable."""

    def decide(self, message: Start | Done, state: Working) -> Decisions[Start | Done, Work] | None:
        command = Work(message.id, 0)
        return [Send(command)]


async def work(command: Work) -> Done:
    return Done(command.id, command.part)


def refused(make_app: MakeApp, *workflows: Workflow[Any, Any, Any], handler: bool = False) -> str:
    """How an app of these parts is refused at its start."""
    told: list[str] = []

    async def main() -> None:
        app = make_app()
        app.add(*workflows)
        if handler:
            app.handler(work)
        with pytest.raises(WiringError) as caught:
            await app.start()
        told.append(str(caught.value))

    run(main)
    return told[0]


def test_a_sent_message_that_two_workflows_take_is_refused_by_their_names(make_app: MakeApp) -> None:
    told = refused(make_app, Job(), Taker(), SecondTaker())
    assert "Work, which Job sends, is taken by the workflow Taker and the workflow SecondTaker" in told


def test_a_sent_message_that_a_workflow_and_a_handler_take_is_refused(make_app: MakeApp) -> None:
    told = refused(make_app, Job(), Taker(), handler=True)
    assert "is taken by the workflow Taker and the handler work" in told
    told = refused(make_app, Indirect(), Taker(), handler=True)
    assert "is taken by the workflow Taker and the handler work" in told


def test_handlers_without_a_workflow_are_refused(make_app: MakeApp) -> None:
    assert "Add the workflow that sends it" in refused(make_app, handler=True)


def test_an_output_that_is_perhaps_sent_and_that_nobody_takes_is_told_at_the_start(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Indirect())
        async with app:
            pass

    with caplog.at_level(logging.INFO, "mainspring.engine"):
        run(main)
    assert "Indirect declares the output Work, which nothing here takes" in caplog.text


def test_a_workflow_whose_outputs_are_all_accounted_for_starts_without_a_warning(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Job(), SecondTaker())
        async with app:
            pass

    with caplog.at_level(logging.INFO, "mainspring.engine"):
        run(main)
    assert "declares the output" not in caplog.text


def test_a_handler_with_parameters_that_nobody_fills_is_refused_at_once(make_app: MakeApp) -> None:
    async def three(command: Work, context: Context, bank: str) -> None: ...
    async def named(command: Work, *, bank: str) -> None: ...

    for function in (three, named):
        with pytest.raises(WiringError, match="parameters that nothing fills: bank"):
            make_app().handler(function)


def test_a_callable_object_is_refused_at_once(make_app: MakeApp) -> None:
    class Bank:
        def __call__(self, command: Any) -> None: ...

    with pytest.raises(WiringError, match="Bank is not a function"):
        make_app().handler(Bank())


SOURCE = """
from dataclasses import dataclass
from mainspring import *

@dataclass(frozen=True)
class Message:
    id: str

@dataclass(frozen=True)
class State:
    lines: tuple[held.Line, ...] = ()
    n: int = 0

def advance(state):
    return State(state.lines, state.n + 1)

class Flow(Workflow[Message, State, Message]):
    initial_state = State()
    def route(self, message): return message.id
    def decide(self, message, state): return []
    def evolve(self, state, event): return advance(state)
"""
LINE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Line:
    a: int
"""


def fingerprint(folder: Path, number: int, source: str, line: str) -> str:
    (folder / f"held_{number}.py").write_text(line)
    (folder / f"flow_{number}.py").write_text(source.replace("held.Line", "Line"))
    text = (folder / f"flow_{number}.py").read_text()
    # The import is the same text in all of them, so that only what a test changes can make a difference.
    (folder / f"flow_{number}.py").write_text(f"from held import Line\n{text}")
    sys.modules["held"] = importlib.import_module(f"held_{number}")
    flow = importlib.import_module(f"flow_{number}").Flow
    return fingerprint_of(flow, definition_of(flow))


def test_a_fingerprint_changes_with_helpers_and_with_what_states_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "held", sys)
    original = fingerprint(tmp_path, 1, SOURCE, LINE)
    same = fingerprint(tmp_path, 2, SOURCE, LINE)
    other_helper = fingerprint(tmp_path, 3, SOURCE.replace("n + 1", "n + 2"), LINE)
    other_field = fingerprint(tmp_path, 4, SOURCE, LINE + "    b: int = 0\n")

    assert original == same
    assert len({original, other_helper, other_field}) == 3


def test_a_fingerprint_is_that_of_the_code_that_runs_though_its_file_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "held", sys)
    before = fingerprint(tmp_path, 5, SOURCE, LINE)
    flow = sys.modules["flow_5"].Flow
    (tmp_path / "flow_5.py").write_text(f"from held import Line\n{SOURCE.replace('n + 1', 'n + 22')}")

    assert fingerprint_of(flow, definition_of(flow)) == before


def test_a_second_app_does_not_look_for_the_source_of_classes_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for: list[object] = []
    find = sources.class_lines

    def class_lines(cls: type[Any]) -> tuple[list[str], int]:
        looked_for.append(cls)
        return find(cls)

    async def main() -> None:
        for _ in range(2):
            looked_for.clear()
            app = make_app()
            app.add(Job())
            app.handler(work)
            async with app:
                pass

    monkeypatch.setattr(sources, "class_lines", class_lines)
    run(main)
    assert looked_for == []
