"""Calls of clients, as they are written down: a line before each, and a line behind it.

A call without its second line was never answered: its client was killed. Times are of the monotonic clock, which all
processes of one machine share. The first is taken before the call and the second behind it, so a call was never
shorter than it is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import convert, to_builtins

from mainspring import Mainspring, MainspringError
from mainspring.core.story import Entry
from mainspring.errors import (
    DuplicateIdError,
    InstanceFailedError,
    NoReplyError,
    NoSuchInstanceError,
    OperationError,
    TaskRefusedError,
)
from tests.proof.crash.files import Lines, read_lines

T = TypeVar("T")

Verb = Literal["send", "request", "answer", "state", "stream", "last look", "result"]


@dataclass(frozen=True)
class Call:
    """One call: whom it was for, what was asked, and what came of it.

    | verb | outcomes |
    |---|---|
    | send | stepped, accepted, suspended, duplicate, dead letter, refused |
    | request | replied (value: the reply), dead letter, refused |
    | answer | first, later (value: status, who was first and with what), refused |
    | state, stream, last look | seen (value: the state), nothing |
    | result | completed (value: the result), failed |
    | any | unknown |
    """

    name: str
    to: str
    verb: Verb
    began: float
    ended: float | None = None
    outcome: str = "unknown"
    id: str = ""
    message: Any = None
    task: str | None = None
    value: Any = None


class Witness:
    """Calls an app as any client would, and writes down what it asked and what it was told."""

    def __init__(self, app: Mainspring, path: Path, name: str) -> None:
        self._app = app
        self._lines = Lines(path)
        self._name = name
        self._calls = 0

    async def send(self, to: str, message: Any, id: str) -> str:
        async def told() -> tuple[str, None]:
            return (await self._app.send(message, id=id)).status, None

        return (await self._call(to, "send", told(), id=id, message=message))[0]

    async def request(self, to: str, message: Any, id: str, **how: Any) -> Any:
        """Return the reply; None where there is none."""

        async def told() -> tuple[str, Any]:
            try:
                return "replied", await self._app.request(message, id=id, **how)
            except (NoReplyError, NoSuchInstanceError, OperationError):
                return "dead letter", None

        return (await self._call(to, "request", told(), id=id, message=message))[1]

    async def answer(self, to: str, task: str, key: str, message: Any, roles: Iterable[str]) -> str:
        """Answer a task as a person who does nothing else, so that who was first is known by name."""
        person = f"{self._name}-{self._calls + 1}"

        async def told() -> tuple[str, Any]:
            outcome = await self._app.tasks.complete(task, message, actor=person, roles=roles)
            value = {"status": outcome.status, "by": outcome.answered_by, "message": packed(outcome.message)}
            return "first" if outcome.first else "later", value

        return (await self._call(to, "answer", told(), id=person, message=message, task=key))[0]

    async def state(self, to: str, *, at_rest: bool = False) -> Any:
        async def told() -> tuple[str, Any]:
            try:
                return "seen", await self._app.instance_at(to).state()
            except NoSuchInstanceError:
                return "nothing", None

        return (await self._call(to, "last look" if at_rest else "state", told()))[1]

    async def stream(self, to: str, folded: Callable[[list[Entry]], Any]) -> Any:
        """Read the state as that of the whole stream."""

        async def told() -> tuple[str, Any]:
            try:
                return "seen", folded(await self._app.instance_at(to).stream())
            except NoSuchInstanceError:
                return "nothing", None

        return (await self._call(to, "stream", told()))[1]

    async def result(self, to: str, **how: Any) -> str:
        async def told() -> tuple[str, Any]:
            try:
                return "completed", await self._app.instance_at(to).result(**how)
            except InstanceFailedError:
                return "failed", None

        return (await self._call(to, "result", told()))[0]

    async def _call(
        self,
        to: str,
        verb: Verb,
        told: Coroutine[Any, Any, tuple[str, Any]],
        *,
        id: str = "",
        message: Any = None,
        task: str | None = None,
    ) -> tuple[str, Any]:
        self._calls += 1
        name = f"{self._name}-{self._calls}"
        asked = {"to": to, "verb": verb, "id": id, "message": packed(message), "task": task}
        self._lines.add(sync=False, call=name, began=time.monotonic_ns(), **asked)
        value, error = None, None
        try:
            outcome, value = await told
        except (DuplicateIdError, TaskRefusedError):
            outcome = "refused"
        except MainspringError as trouble:
            # Of the store, or a wait that was too long: it may have happened, or may happen yet.
            outcome, error = "unknown", str(trouble)
        ended = time.monotonic_ns()
        self._lines.add(sync=False, told=name, ended=ended, outcome=outcome, value=packed(value), error=error)
        return outcome, value


def packed(value: Any) -> Any:
    """Return a message or a state as it is written down: with its type's name. What is plain already stays so."""
    if value is None or isinstance(value, (str, int, dict)):
        return value
    return {"type": type(value).__name__, "body": to_builtins(value)}


def read_calls(paths: Iterable[Path], workflows: Container[str], types: Mapping[str, type[Any]]) -> list[Call]:
    """Read what clients have written down of some workflows."""
    calls: list[Call] = []
    for path in paths:
        lines = read_lines(path)
        told = {line["told"]: line for line in lines if "told" in line}
        asked = (line for line in lines if "call" in line and line["to"].partition("/")[0] in workflows)
        calls += [_call(line, told.get(line["call"]), types) for line in asked]
    return calls


def _call(line: dict[str, Any], told: dict[str, Any] | None, types: Mapping[str, type[Any]]) -> Call:
    call = Call(
        name=line["call"],
        to=line["to"],
        verb=line["verb"],
        began=line["began"],
        id=line["id"],
        message=unpacked(line["message"], types),
        task=line["task"],
    )
    if told is None:
        return call
    given = {"ended": told["ended"], "outcome": told["outcome"], "value": unpacked(told["value"], types)}
    return Call(**{**call.__dict__, **given})


def unpacked(value: Any, types: Mapping[str, type[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"type", "body"}:
        return convert(value["body"], types[value["type"]])
    return {name: unpacked(each, types) for name, each in value.items()}
