"""Steps that compute in processes of their own, and a flow that awaits them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from mainspring import Mainspring
from mainspring.flows import each

app = Mainspring("memory://")


@dataclass(frozen=True)
class Sum:
    id: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Square:
    number: int
    by: int
    """The process."""


class NegativeError(Exception): ...


@app.step(executor="process", raises=NegativeError)
def square(number: int) -> Square:
    if number < 0:
        raise NegativeError(f"{number} is negative")
    return Square(number * number, os.getpid())


@app.flow
async def total(question: Sum) -> list[int]:
    """Return the sum of the squares, and the processes that computed them."""
    squares = list(await each(square(number) for number in question.numbers))
    with contextlib.suppress(NegativeError):
        await square(-1)
        return []
    return [sum(one.number for one in squares), *(one.by for one in squares)]
