"""What the corpus shares: the messages and states of a small order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Place:
    id: str
    amount: int = 1


@dataclass(frozen=True)
class Paid:
    id: str


@dataclass(frozen=True)
class Refused:
    id: str


@dataclass(frozen=True)
class Shipped:
    id: str


@dataclass(frozen=True)
class TimedOut:
    id: str


@dataclass(frozen=True)
class Pay:
    id: str


@dataclass(frozen=True)
class Ship:
    id: str


@dataclass(frozen=True)
class Answer:
    id: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Paying:
    id: str = ""


@dataclass(frozen=True)
class Shipping:
    id: str = ""


@dataclass(frozen=True)
class Done:
    pass


SOON = timedelta(minutes=5)
