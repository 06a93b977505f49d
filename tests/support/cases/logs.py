"""Cases that went through a machine, over ten years: a fifth of them has never ended."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import json

from mainspring.port.attributes import AttributeRow
from mainspring.port.records import EventRow, Status
from tests.support.cases.machines import ANSWER, COMMAND, ENDS, Machine, Move

SECOND_US: Final = 1_000_000
DAY_US: Final = 86_400 * SECOND_US
FIRST_US: Final = 946_684_800 * SECOND_US
"""2000 begins."""
YEARS_US: Final = 3_653 * DAY_US
NEVER_ENDED: Final = 0.2
MOST_INPUTS: Final = 60
"""A case that goes round in loops for so long ends with what ends it next."""
REGIONS: Final = ("north", "south", "east", "west")
SLOW_REGION: Final = "north"
"""Where everything takes twice as long."""
CLERKS: Final = ("ann", "bob", "carla", "dev", "eve")


@dataclass(frozen=True)
class Taken:
    """An input that a case took. The answer of a handler has `attempt` and `duration_us`."""

    time_us: int
    source: str | None
    input: str
    target: str
    actor: str | None = None
    attempt: int | None = None
    duration_us: int | None = None


@dataclass(frozen=True)
class Case:
    """One case: what it took, in order."""

    workflow: str
    id: str
    amount: int
    region: str
    taken: tuple[Taken, ...]
    status: Status
    state: str
    events: tuple[EventRow, ...]

    @property
    def attributes(self) -> tuple[AttributeRow, ...]:
        """Return what it can be searched by."""
        return (
            AttributeRow("amount", "number", None, float(self.amount)),
            AttributeRow("region", "text", self.region),
        )


def cases(machine: Machine, count: int, seed: int = 1) -> Iterator[Case]:
    """Yield so many cases, in the order in which they begin."""
    dice = random.Random(f"{seed}/{machine.name}/{count}")  # noqa: S311  no secret
    slowness = {state: dice.lognormvariate(0, 1) for state in machine.states}
    begins = sorted(dice.randrange(YEARS_US) for _ in range(count))
    for number, begin_us in enumerate(begins):
        yield _Walk(machine, dice, slowness, number, begin_us).case()


class _Walk:
    """One case on its way."""

    def __init__(
        self, machine: Machine, dice: random.Random, slowness: dict[str, float], number: int, begin_us: int
    ) -> None:
        self._machine, self._dice, self._slowness = machine, dice, slowness
        self._id = f"{machine.name.lower()}-{number:07d}"
        self._amount = round(dice.lognormvariate(4, 1)) + 1
        self._region = dice.choice(REGIONS)
        self._taken: list[Taken] = []
        self._time_us = begin_us

    def case(self) -> Case:
        state = self._take(self._next(None))
        while not self._machine.ends(state):
            self._pass(state)
            state = self._take(self._next(state))
        if self._dice.random() < NEVER_ENDED:
            # It stays where it was at some time before its end.
            del self._taken[self._dice.randrange(1, len(self._taken)) :]
            state = self._taken[-1].target
        status: Status = "running" if state not in ENDS else "completed" if state == ENDS[0] else "failed"
        events = tuple(self._events(status))
        return Case(self._machine.name, self._id, self._amount, self._region, tuple(self._taken), status, state, events)

    def _next(self, state: str | None) -> Move:
        moves, weights = self._machine.ways[state]
        if len(self._taken) >= MOST_INPUTS and len(moves) > 1:
            return next(move for move in moves if self._machine.ends(move.target))
        return self._dice.choices(moves, weights)[0]

    def _take(self, move: Move) -> str:
        dice = self._dice
        if move.input == ANSWER and move.source == self._machine.asking:
            attempt = 1 if dice.random() < 0.8 else dice.randrange(2, 5)
            taken = Taken(
                self._time_us, move.source, move.input, move.target, None, attempt, round(dice.lognormvariate(12, 1.5))
            )
        else:
            actor = dice.choice(CLERKS) if dice.random() < 0.7 else None
            taken = Taken(self._time_us, move.source, move.input, move.target, actor)
        self._taken.append(taken)
        return move.target

    def _pass(self, state: str) -> None:
        """Let time pass, more of it in some states than in others."""
        if state == self._machine.asking:
            took_us = self._dice.lognormvariate(15, 2)
        else:
            took_us = self._dice.lognormvariate(0, 1.3) * self._slowness[state] * 9 * DAY_US
        self._time_us += round(took_us * (2 if self._region == SLOW_REGION else 1)) + 1

    def _events(self, status: Status) -> Iterator[EventRow]:
        yield EventRow(1, "Began", self._taken[0].time_us)
        version, asked = 1, 0
        for place, taken in enumerate(self._taken):
            version += 1
            yield self._input(version, asked, place, taken)
            if taken.target == self._machine.asking:
                yield EventRow(version + 1, "Sent", taken.time_us, COMMAND, body=self._body(), cause=version)
                version = asked = version + 1
        last_us = self._taken[-1].time_us
        if status == "completed":
            yield EventRow(version + 1, "Completed", last_us, "Finished", body=self._body())
        elif status == "failed":
            yield EventRow(version + 1, "Failed", last_us, detail=b'{"reason":"dismissed"}')

    def _input(self, version: int, asked: int, place: int, taken: Taken) -> EventRow:
        if taken.attempt is not None:
            return EventRow(
                *(version, "Received", taken.time_us, taken.input),
                body=self._body(),
                kind="result",
                cause=asked,
                state=taken.target,
                attempt=taken.attempt,
                duration_us=taken.duration_us,
            )
        message_id = f"{self._id}-{place}"
        return EventRow(
            *(version, "Received" if place else "InitiatedBy", taken.time_us, taken.input),
            body=self._body() if place else json.encode(self._first_fields()),
            kind="command",
            message_id=message_id,
            context=b'{"correlation_id":"%s"}' % message_id.encode(),
            actor=taken.actor,
            state=taken.target,
        )

    def _first_fields(self) -> dict[str, object]:
        return {"case": self._id, "amount": self._amount, "region": self._region}

    def _body(self) -> bytes:
        return b'{"case":"%s"}' % self._id.encode()


def inputs_between(case: Case, since_us: int, until_us: int) -> tuple[Taken, ...]:
    """Return what a case took from a moment on and before another."""
    times = [taken.time_us for taken in case.taken]
    return case.taken[bisect_left(times, since_us) : bisect_left(times, until_us)]
