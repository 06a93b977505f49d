"""A flow that sends a command which nobody carries out.

expect: MS302
"""

from __future__ import annotations

from dataclasses import dataclass

from mainspring import Mainspring
from mainspring.flows import call

app = Mainspring("memory://")


@dataclass(frozen=True)
class Start:
    id: str


@dataclass(frozen=True)
class Deliver:
    id: str


@dataclass(frozen=True)
class Delivered:
    id: str


@app.flow
async def sending(start: Start) -> None:
    await call(Deliver(start.id), Delivered)
