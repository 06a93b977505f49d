"""A workflow whose one command is all work, and its handler: in threads, or in processes."""

from __future__ import annotations

from dataclasses import dataclass

from mainspring import Complete, Decisions, Event, Mainspring, Send, Workflow

# About 10 ms of Python that never waits: no thread beside it gets any further.
ROUNDS = 100_000
CORES = 2


@dataclass(frozen=True)
class Begin:
    id: str


@dataclass(frozen=True)
class Compute:
    id: str
    rounds: int


@dataclass(frozen=True)
class Computed:
    id: str
    value: int


@dataclass(frozen=True)
class Waiting:
    pass


class Computations(Workflow[Begin | Computed, Waiting, Compute]):
    """Sends one command that is all work, and completes."""

    begins = Begin
    initial_state = Waiting()

    def route(self, message: Begin | Computed) -> str | None:
        return message.id

    def evolve(self, state: Waiting, event: Event[Begin | Computed, Compute]) -> Waiting | None:
        return None

    def decide(self, message: Begin | Computed, state: Waiting) -> Decisions[Begin | Computed, Compute] | None:
        match message:
            case Begin(id):
                return [Send(Compute(id, ROUNDS))]
            case Computed():
                return [Complete()]


def compute(command: Compute) -> Computed:
    """Keep a core busy."""
    value = 1
    for number in range(command.rounds):
        value = (value * 31 + number) % 1_000_003
    return Computed(command.id, value)


def computing(url: str) -> Mainspring:
    """The handler in threads."""
    app = Mainspring(url)
    app.add(Computations())
    app.handler(compute)
    return app


def computing_in_processes(url: str) -> Mainspring:
    """The handler in a pool of processes."""
    app = Mainspring(url, processes=CORES)
    app.add(Computations())
    app.handler(executor="process")(compute)
    return app
