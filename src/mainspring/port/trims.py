"""How far a trim looks back: not far at most steps, and further the rarer.

What an output needs stays until a step looks at it again after the output was carried out. Each step looks at the last
VERSIONS_PER_BLOCK versions. One that begins a new block looks at as many more blocks as the largest power of two that
divides its number, up to BLOCKS: what was left is looked at again at ages that double, at a cost that does not grow.
"""

from __future__ import annotations

from typing import Final

from mainspring.port.records import Unit

VERSIONS_PER_BLOCK: Final = 100
BLOCKS: Final = 1_024


def trim_after(unit: Unit) -> int:
    """Return the version behind which a unit trims.

    >>> trim_after(Unit("W", "i", expected_version=450)), trim_after(Unit("W", "i", expected_version=0))
    (350, 0)
    """
    upto = unit.expected_version or 0
    block = (upto + len(unit.events)) // VERSIONS_PER_BLOCK
    more = min(block & -block, BLOCKS) if block > upto // VERSIONS_PER_BLOCK else 0
    return max(0, upto - (1 + more) * VERSIONS_PER_BLOCK)
