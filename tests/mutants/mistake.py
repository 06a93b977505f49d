"""A mistake that an engineer could make, and the tests that ought to notice it."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """One of them. `name` says what goes wrong, `file` is below `src/mainspring`, `original` stands in it once.

    `tests` are paths, or pytest's names of tests; `keyword` is what `-k` selects of them.
    """

    name: str
    file: str
    original: str
    replacement: str
    tests: tuple[str, ...]
    keyword: str = ""
