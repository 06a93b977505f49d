"""What a worker leaves to others when it claims, and what waits because nobody takes it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mainspring.port.records import Ref


class Leaves(Struct, frozen=True, gc=False):
    """Inputs of types and versions that a worker cannot read, with all that stands behind them; and whole instances.

    >>> Leaves(types=(("Charged", 2),)).instances
    ()
    """

    types: tuple[tuple[str, int], ...] = ()
    instances: tuple[Ref, ...] = ()


NOTHING: Final = Leaves()


class Waiting(Struct, frozen=True, gc=False):
    """So many inputs of a type and version wait for instances of a workflow, the oldest since a time.

    >>> Waiting("Orders", "Charged", 2, 3, 0).count
    3
    """

    workflow: str
    type: str
    type_version: int
    count: int
    oldest_us: int
