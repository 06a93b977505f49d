"""A load of everything that comes and goes: jobs that begin and end, by all the ways that an instance has."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from mainspring import (
    CancelSchedule,
    Complete,
    Context,
    Decisions,
    DoNotRetryError,
    Event,
    Fail,
    FeedEntry,
    Mainspring,
    Publish,
    Received,
    Reply,
    Retry,
    Schedule,
    Send,
    SendFailed,
    Workflow,
)
from mainspring.engine.runtime import Runtime
from mainspring.errors import InstanceFailedError

# How a job goes: at once, at the second attempt, to a dead letter, by its timer, or with a result of some size.
How: TypeAlias = Literal["well", "again", "dead", "timer", "large"]
HOWS: tuple[How, ...] = ("well", "well", "large", "again", "timer", "well", "dead", "well")
LARGE = 20_000
NUDGE = timedelta(milliseconds=200)
QUICK = Retry(max_attempts=3, first=timedelta(milliseconds=5), cap=timedelta(milliseconds=20))
RESULT = timedelta(seconds=60)


@dataclass(frozen=True)
class Start:
    id: str
    how: How


@dataclass(frozen=True)
class Work:
    id: str
    how: How


@dataclass(frozen=True)
class Done:
    id: str
    text: str


@dataclass(frozen=True)
class Nudge:
    id: str


@dataclass(frozen=True)
class Finished:
    id: str


@dataclass(frozen=True)
class State:
    how: How = "well"
    text: str = ""


Input: TypeAlias = Start | Done | Nudge | SendFailed
Output: TypeAlias = Work | Finished


class Job(Workflow[Input, State, Output]):
    begins = Start
    initial_state = State()

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, SendFailed) else message.id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Received(Start(_, how)):
                return State(how)
            case Received(Done(_, text)):
                return State(state.how, text)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message:
            case Start(id, "timer"):
                return [Schedule(Nudge(id), after=NUDGE), Reply(Finished(id))]
            case Start(id, how):
                return [Send(Work(id, how)), Schedule(Nudge(id), after=timedelta(hours=1)), Reply(Finished(id))]
            case Done(id):
                return [CancelSchedule(Nudge), Publish(Finished(id)), Complete(Finished(id))]
            case Nudge(id):
                return [Complete(Finished(id))]
            case SendFailed(_, _, error):
                return [CancelSchedule(Nudge), Fail(error)]

    def attributes(self, state: State) -> dict[str, str]:
        return {"how": state.how}


def jobs(url: str, retention: timedelta | None = None, runtime: Runtime | None = None) -> Mainspring:
    """Return an app with jobs, a handler, a subscriber and a read model."""
    app = Mainspring(url, retention=retention, runtime=runtime)
    app.add(Job())

    @app.handler(retry=QUICK)
    async def work(command: Work, context: Context) -> Done:
        if command.how == "dead":
            raise DoNotRetryError("there is no such thing")
        if command.how == "again" and context.attempt == 1:
            raise ConnectionError("not yet")
        return Done(command.id, "x" * (LARGE if command.how == "large" else 10))

    @app.subscribe
    async def heard(message: Finished) -> None:
        await asyncio.sleep(0)

    @app.projections.add(name="running", key=lambda entry: entry.instance, workflows=[Job])
    def running(document: State | None, entry: FeedEntry) -> State | None:
        match entry.input:
            case Start(_, how):
                return State(how)
            case Done() | Nudge() | SendFailed():
                return None
            case _:
                return document

    return app


class Client:
    """Starts jobs, some of them twice or as requests, waits for their ends, and clears the dead letters away."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app
        self.started = self.ended = self.discarded = 0

    async def start(self) -> None:
        """Start the next job, and see it through to its end."""
        number = self.started
        self.started += 1
        id, how = f"job-{number:09d}", HOWS[number % len(HOWS)]
        if number % 5 == 0:
            await self.app.request(Start(id, how), timeout=RESULT, id=f"start-{id}")
        receipt = await self.app.send(Start(id, how), id=f"start-{id}")
        try:
            await receipt.result(timeout=RESULT)
        except InstanceFailedError:
            await self._discard(id)
        self.ended += 1

    async def _discard(self, id: str) -> None:
        """Discard the dead letter of a job that failed."""
        letters = [letter for letter in await self.app.dead_letters(1_000) if letter.instance.endswith(f"/{id}")]
        for letter in letters:
            await self.app.discard_dead_letter(letter.id)
            self.discarded += 1

    async def start_many(self, count: int, at_once: int = 20) -> None:
        """Start so many jobs, some at a time, and wait for all."""
        running: deque[asyncio.Task[None]] = deque()
        for _ in range(count):
            if len(running) >= at_once:
                await running.popleft()
            running.append(asyncio.create_task(self.start()))
        while running:
            await running.popleft()
