"""A decide that does not return: the worker says so, ends it if it can, and goes on with the others."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from mainspring import Complete, Decisions, Event, Workflow
from mainspring.engine.engine import Engine
from mainspring.engine.watching import code_watch as watch
from mainspring.engine.watching.code_watch import CodeWatch
from mainspring.errors import SlowStepError, StoreError
from tests.support.apps import MakeApp
from tests.support.heard import hearing
from tests.support.running import run
from tests.support.waiting import PATIENCE_SECONDS, until


@dataclass(frozen=True)
class Ask:
    id: str


@dataclass(frozen=True)
class Again:
    id: str


@dataclass(frozen=True)
class Thinking:
    pass


@dataclass(frozen=True)
class Told:
    """Nobody is."""


class Endless(Workflow[Ask | Again, Thinking, Told]):
    """Thinks about some questions for ever."""

    begins = Ask
    initial_state = Thinking()

    def route(self, message: Ask | Again) -> str | None:
        return message.id

    def evolve(self, state: Thinking, event: Event[Ask | Again, Told]) -> None:
        while endless.is_set():
            _think()

    def decide(self, message: Ask | Again, state: Thinking) -> Decisions[Ask | Again, Told] | None:
        while message.id.startswith("hard"):
            try:
                _think()
            except Exception:  # noqa: BLE001, S112  as authors do
                continue
        return [] if message.id.startswith("slow") else [Complete()]


endless = threading.Event()


def _think() -> None:
    """Do nothing of use."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(watch, "STEP_SECONDS", 0.2)


def test_a_step_without_an_end_is_ended_and_its_instance_suspended(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Endless())
        async with app:
            receipt = await app.send(Ask("hard-1"))
            assert receipt.status == "suspended"
            await (await app.send(Ask("easy-1"))).result()
            (row,) = await app.instances(status="suspended")
            assert row.id == "hard-1"
            assert "its step for Ask had not ended after 0.2 s" in (row.error or "")

    run(main)
    (said,) = [
        record for record in caplog.records if record.name == "mainspring.engine" and "decided" in record.message
    ]
    assert said.levelno == logging.ERROR
    assert said.message.startswith("Endless/hard-1: Ask is being decided on for 0 s")


def test_who_only_sends_is_watched_too(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Endless())
        await app.start(work=False)
        try:
            assert (await app.send(Ask("hard-1"))).status == "suspended"
        finally:
            await app.stop()

    run(main)


def test_a_fold_without_an_end_is_ended_when_its_instance_is_loaded(make_app: MakeApp) -> None:
    async def main() -> None:
        for turn in range(2):
            app = make_app()
            app.add(Endless())
            async with app:
                receipt = await app.send(Ask("slow-1") if not turn else Again("slow-1"))
                assert receipt.status == ("suspended" if turn else "stepped")
            endless.set()
        endless.clear()

    run(main)


def _pending() -> Any:
    return type("Pending", (), {"ref": "W/i", "type": "Ask"})()


def test_a_step_that_ends_by_itself_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may end just when it is to be ended: nothing is raised in what comes after it."""
    monkeypatch.setattr(watch, "STEP_SECONDS", 0.02)
    stepped = CodeWatch()
    stepped.start()
    try:
        for _ in range(20):
            end = time.monotonic() + 0.02
            with suppress(SlowStepError):  # it was ended first
                stepped.call(_pending(), lambda end=end: [None for _ in iter(lambda: time.monotonic() < end, False)])
            for _ in range(1_000):
                _think()
    finally:
        stepped.stop()


def test_whoever_goes_through_it_step_by_step_may_take_the_time() -> None:
    stepped = CodeWatch()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return trace

    def debugged() -> str:
        assert heard.first.wait(PATIENCE_SECONDS)
        return "done"

    before = sys.gettrace()
    with hearing("mainspring.engine") as heard:
        stepped.start()
        sys.settrace(trace)
        try:
            assert stepped.call(_pending(), debugged) == "done"
        finally:
            sys.settrace(before)
            stepped.stop()
    assert heard.records[0].getMessage().startswith("W/i: Ask is being decided on")


def _watching() -> set[threading.Thread]:
    """Return the threads that watch, in other tests too: a worker that was killed there has not stopped."""
    return {thread for thread in threading.enumerate() if thread.name == "mainspring-watch"}


def test_nobody_watches_when_the_worker_has_stopped(make_app: MakeApp) -> None:
    async def main() -> None:
        app, others = make_app(), _watching()
        app.add(Endless())
        async with app:
            (own,) = _watching() - others
        await until(lambda: not own.is_alive())

    run(main)


def test_nobody_watches_or_looks_when_the_worker_could_not_start(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> int:
        raise StoreError("the store", "is in trouble", "Wait.")

    async def main() -> None:
        app, others, tasks = make_app(), _watching(), asyncio.all_tasks()
        app.add(Endless())
        with monkeypatch.context() as patched:
            patched.setattr(Engine, "_register", refused)
            with pytest.raises(StoreError):
                await app.start()
        assert {task.get_name() for task in asyncio.all_tasks() - tasks if not task.done()} == set()
        await until(lambda: not _watching() - others)
        async with app:
            assert len(_watching() - others) == 1

    run(main)
