"""A workflow whose people answer wrongly, and whose commands are poison for a handler with a breaker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mainspring import Ask, Complete, Decisions, Event, Fail, Received, Send, SendFailed, Workflow


class DoubtError(Exception):
    """As planned."""


@dataclass(frozen=True)
class File:
    petition: str
    poison: bool


@dataclass(frozen=True)
class Grant:
    petition: str
    by: str


@dataclass(frozen=True)
class Doubt:
    """An answer that nothing can be decided on: it is skipped, and its task is open again."""

    petition: str
    by: str


@dataclass(frozen=True)
class Stamp:
    petition: str
    poison: bool


@dataclass(frozen=True)
class Stamped:
    petition: str


@dataclass(frozen=True)
class Filed:
    poison: bool = False


class Petition(Workflow[File | Grant | Doubt | Stamped | SendFailed, Filed, Stamp]):
    """Is granted by somebody, and stamped; or refused by whoever stamps."""

    begins = File
    initial_state = Filed()

    def route(self, message: Any) -> str | None:
        return None if isinstance(message, SendFailed) else message.petition

    def evolve(self, state: Filed, event: Event[Any, Any]) -> Filed | None:
        match event:
            case Received(File(_, poison)):
                return Filed(poison)
            case _:
                return None

    def decide(self, message: Any, state: Filed) -> Decisions[Any, Any] | None:
        match message:
            case File(petition):
                return [Ask(f"Grant {petition}", Grant | Doubt, role="manager", key="grant")]
            case Grant(petition):
                return [Send(Stamp(petition, state.poison))]
            case Doubt():
                raise DoubtError("nothing can be decided on a doubt")
            case SendFailed():
                return [Fail("nobody stamps it")]
            case Stamped():
                return [Complete()]
            case _:
                return None


MESSAGES: Final = (File, Grant, Doubt, Stamp, Stamped)
