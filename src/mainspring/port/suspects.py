"""Suspects: work that was lost with the workers that held it, and may be what took them down."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mainspring.port.records import InputRow, OutputClaim

SUSPECT: Final = 2
"""How often work is lost before it is tried alone, where it takes nothing with it and nothing else is blamed."""


class Suspect(Struct, frozen=True, gc=False):
    """Work that is set aside, or tried alone just now: an output by its version, or an input without one.

    >>> Suspect("Orders", "o-1", "Charge", 3, 2).name
    'Charge (Orders/o-1/3)'
    """

    workflow: str
    instance: str
    type: str
    version: int | None
    lost: int
    destination: str = ""
    """Of an output: where it goes."""
    aside: bool = True
    """Whether it waits to be tried alone; if not, a worker tries it just now."""
    type_version: int = 1
    position: int | None = None
    """Of an input: where it waits."""

    @property
    def name(self) -> str:
        """What to call it."""
        at = f"{self.workflow}/{self.instance}"
        return f"{self.type} ({at}/{self.version})" if self.version is not None else f"{self.type}, an input of {at}"


class Alone(Struct, frozen=True, gc=False):
    """The one thing that a worker has taken to try it alone, and how often it was lost."""

    lost: int
    output: OutputClaim | None = None
    input: InputRow | None = None
