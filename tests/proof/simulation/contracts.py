"""A workflow in two versions: older processes know the first one only, newer ones both, and people migrate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from mainspring import Complete, Decisions, Event, Received, Send, Workflow


@dataclass(frozen=True)
class Draft:
    contract: str


@dataclass(frozen=True)
class Clause:
    contract: str
    words: int


@dataclass(frozen=True)
class Proofread:
    """`twice` is what the second version asks for: what another version decides is seen."""

    contract: str
    words: int
    twice: bool


@dataclass(frozen=True)
class Proofed:
    contract: str
    words: int


@dataclass(frozen=True)
class Sign:
    contract: str


@dataclass(frozen=True)
class Signed:
    contract: str
    version: int
    words: int


@dataclass(frozen=True)
class Text:
    words: int = 0


@dataclass(frozen=True)
class NumberedText:
    words: int = 0
    clauses: int = 0


Input = Draft | Clause | Proofed | Sign


class Contract(Workflow[Input, Text, Proofread | Signed]):
    """The first version."""

    begins = Draft
    initial_state = Text()
    snapshot_every: ClassVar[int | None] = 2

    def route(self, message: Input) -> str | None:
        return message.contract

    def evolve(self, state: Text, event: Event[Any, Any]) -> Text | None:
        match event:
            case Received(Clause(_, words)):
                return Text(state.words + words)

    def decide(self, message: Input, state: Text) -> Decisions[Any, Any] | None:
        match message:
            case Draft() | Proofed():
                return []
            case Clause(contract, words):
                return [Send(Proofread(contract, words, twice=False))]
            case Sign(contract):
                return [Complete(Signed(contract, 1, state.words))]


class NumberedContract(Workflow[Input, NumberedText, Proofread | Signed]):
    """The second version: another state, and other decisions."""

    name = "Contract"
    version = 2
    begins = Draft
    initial_state = NumberedText()
    snapshot_every: ClassVar[int | None] = 2

    def route(self, message: Input) -> str | None:
        return message.contract

    def evolve(self, state: NumberedText, event: Event[Any, Any]) -> NumberedText | None:
        match event:
            case Received(Clause(_, words)):
                return replace(state, words=state.words + words, clauses=state.clauses + 1)

    def decide(self, message: Input, state: NumberedText) -> Decisions[Any, Any] | None:
        match message:
            case Draft() | Proofed():
                return []
            case Clause(contract, words):
                return [Send(Proofread(contract, words, twice=True))]
            case Sign(contract):
                return [Complete(Signed(contract, 2, state.words))]


VERSIONS: Final[dict[int, Workflow[Any, Any, Any]]] = {1: Contract(), 2: NumberedContract()}
MESSAGES: Final = (Draft, Clause, Proofread, Proofed, Sign, Signed)
