"""How a mistake is planted: under a name, with a sentence, by a function that patches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

Planting = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Plant:
    """A mistake: what it is, in a sentence, how it is put in, and a seed that has noticed it."""

    name: str
    what: str
    put_in: Planting
    first: int


class Plants:
    """Mistakes by their names."""

    def __init__(self) -> None:
        self.by_name: dict[str, Plant] = {}

    def plant(self, what: str, first: int = 0) -> Callable[[Planting], Planting]:
        """Keep a function that plants a mistake, under its own name."""

        def keep(put_in: Planting) -> Planting:
            name = put_in.__name__.replace("_", "-")
            self.by_name[name] = Plant(name, what, put_in, first)
            return put_in

        return keep
