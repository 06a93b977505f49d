"""Many instances with streams of every kind, as rows: random, and the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mainspring.port.records import EventRow, Status, Unit
from mainspring.port.store import Store

SECOND_US = 1_000_000
FIRST_US = 1_700_000_000 * SECOND_US
WORKFLOWS = ("Orders", "Claims", "Fines")
STATES = ("New", "Waiting", "Checking", "Shipping", "Done")
COMMANDS = ("Charge", "Ship", "Notify")
UNITS_PER_COMMIT = 500
FAILED = "SendFailed"


@dataclass(frozen=True)
class Stream:
    """An instance: how it is now, and its events."""

    workflow: str
    id: str
    status: Status
    state: str
    events: tuple[EventRow, ...]

    @property
    def unit(self) -> Unit:
        return Unit(
            self.workflow,
            self.id,
            expected_version=0,
            events=self.events,
            status=self.status,
            state=self.state,
            context=b"{}",
        )


def streams(count: int, seed: int = 7) -> Iterator[Stream]:
    """Return so many instances."""
    dice = random.Random(seed)  # noqa: S311  no secret
    for number in range(count):
        yield _Writer(dice, number).stream()


async def fill(store: Store, count: int, seed: int = 7) -> None:
    """Write so many instances into an open store."""
    worker = await store.register_worker("filler", 60 * SECOND_US)
    units: list[Unit] = []
    for stream in streams(count, seed):
        units.append(stream.unit)
        if len(units) == UNITS_PER_COMMIT:
            await store.commit(worker, units)
            units = []
    await store.commit(worker, units)
    await store.release_worker(worker)


class _Writer:
    """Writes one stream."""

    def __init__(self, dice: random.Random, number: int) -> None:
        self._dice = dice
        self._number = number
        self._time_us = FIRST_US + dice.randrange(40 * 86_400) * SECOND_US
        self._events: list[EventRow] = []
        self._sent: list[int] = []
        self._state = STATES[0]

    def stream(self) -> Stream:
        dice = self._dice
        workflow = dice.choice(WORKFLOWS)
        self._add("Began")
        self._input("InitiatedBy", "Place", "command")
        status: Status = "running"
        for _ in range(dice.randrange(12)):
            self._pass()
            self._event()
        if dice.random() < 0.8:
            status = self._end()
        return Stream(workflow, f"i-{self._number}", status, self._state, tuple(self._events))

    def _event(self) -> None:
        roll = self._dice.random()
        if roll < 0.35 and self._sent:
            self._answer()
        elif roll < 0.85:
            self._input("Received", self._dice.choice(("Go", "Stop", "Wait")), self._dice.choice(("command", "timer")))
        elif roll < 0.9:
            self._add("Suspended", actor=self._dice.choice((None, "ann")))
            self._add("Resumed", actor="ann")
        elif roll < 0.93:
            self._add("Began")
            self._sent = []
            self._input("InitiatedBy", "Place", "command")
        else:
            self._add("Published", type="News", body=b"{}")

    def _input(self, event: str, type: str, kind: str, cause: int | None = None, **more: int | None) -> None:
        self._state = self._dice.choice(STATES)
        at = self._add(event, type=type, kind=kind, cause=cause, state=self._state, body=b"x" * 20, **more)
        for _ in range(self._dice.randrange(3)):
            self._sent.append(self._add("Sent", type=self._dice.choice(COMMANDS), body=b"y" * 7, cause=at))

    def _answer(self) -> None:
        cause = self._sent.pop(self._dice.randrange(len(self._sent)))
        type = FAILED if self._dice.random() < 0.1 else "Answered"
        attempt = 1 if self._dice.random() < 0.7 else self._dice.randrange(2, 6)
        took_us = round(self._dice.lognormvariate(11, 1.5))
        self._input("Received", type, "result", cause, attempt=attempt, duration_us=took_us)

    def _end(self) -> Status:
        status: Status = self._dice.choice(("completed", "completed", "failed", "cancelled", "terminated"))
        if status in ("cancelled", "terminated"):
            self._pass()
        self._add(status.capitalize(), actor="ann" if status in ("cancelled", "terminated") else None)
        return status

    def _pass(self) -> None:
        self._time_us += round(self._dice.lognormvariate(17, 2))

    def _add(self, event: str, **fields: Any) -> int:
        version = len(self._events) + 1
        self._events.append(EventRow(version, event, self._time_us, **fields))
        return version
