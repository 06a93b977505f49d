"""A job that sends some commands, for tests of handlers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mainspring import Complete, Decisions, Event, Fail, Mainspring, Received, Retry, Send, SendFailed, Workflow
from mainspring.app.internals import internals_of
from mainspring.errors import StoreError
from tests.support.waiting import until

if TYPE_CHECKING:
    import pytest  # processes import this module, and it would be a fifth of what they import


@dataclass(frozen=True)
class Start:
    id: str
    times: int = 1


@dataclass(frozen=True)
class Work:
    id: str
    part: int


@dataclass(frozen=True)
class Done:
    id: str
    part: int


@dataclass(frozen=True)
class Unexpected:
    text: str


@dataclass(frozen=True)
class Working:
    left: int = 0


class Job(Workflow[Start | Done, Working, Work]):
    """Sends some commands and completes when all are done."""

    begins = Start
    initial_state = Working()

    def route(self, message: Start | Done) -> str | None:
        return message.id

    def evolve(self, state: Working, event: Event[Start | Done, Work]) -> Working | None:
        match event:
            case Received(Start(_, times)):
                return Working(times)
            case Received(Done()):
                return Working(state.left - 1)

    def decide(self, message: Start | Done, state: Working) -> Decisions[Start | Done, Work] | None:
        match message:
            case Start(id, times):
                return [Send(Work(id, part)) for part in range(times)]
            case Done():
                return [Complete()] if state.left == 1 else []


class Listening(Workflow[Start | Done | SendFailed, Working, Work]):
    """Is told when a command failed for good."""

    begins = Start
    initial_state = Working()

    def route(self, message: Start | Done | SendFailed) -> str | None:
        return message.id if isinstance(message, Start) else None

    def evolve(self, state: Working, event: Event[Start | Done | SendFailed, Work]) -> Working | None:
        return None

    def decide(
        self, message: Start | Done | SendFailed, state: Working
    ) -> Decisions[Start | Done | SendFailed, Work] | None:
        match message:
            case Start(id):
                return [Send(Work(id, 0))]
            case Done():
                return [Complete()]
            case SendFailed(type, _, error, attempts):
                return [Fail(f"{type} failed {attempts} times: {error}")]


QUICK = Retry(max_attempts=3, first=timedelta(milliseconds=1), cap=timedelta(milliseconds=2))


def job(app: Mainspring, handle: Callable[..., Any], **options: Any) -> Mainspring:
    app.add(Job())
    app.handler(**options)(handle) if options else app.handler(handle)
    return app


async def look_for_work(app: Mainspring) -> None:
    """Let a worker look once for what is due, begin with what it finds, and give back what it may not begin.

    A look from before may be answered only now, and bring what was paused meanwhile: that is given back by a commit.
    """
    claimer, committer = internals_of(app).engine.claimer, internals_of(app).engine.committer
    await until(lambda: committer.idle)
    looked = claimer.rounds
    internals_of(app).engine.wakeups.due_at(0)
    await until(lambda: claimer.rounds > looked and claimer.idle and committer.idle)


async def has_status(app: Mainspring, id: str, status: str) -> bool:
    return (await app.instance(Job, id).row()).status == status


async def has_length(app: Mainspring, id: str, least: int) -> bool:
    return len(await app.instance(Job, id).stream()) >= least


def fail_once(app: Mainspring, monkeypatch: "pytest.MonkeyPatch") -> list[str]:
    """Let the next look for a remembered result fail. Return the keys that were looked for in vain."""
    store, failed = internals_of(app).engine.store, list[str]()
    original = store.remembered

    async def remembered(key: str) -> Any:
        if not failed:
            failed.append(key)
            raise StoreError("test", "is busy", "Wait.")
        return await original(key)

    monkeypatch.setattr(store, "remembered", remembered)
    return failed
