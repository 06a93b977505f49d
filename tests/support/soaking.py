"""How a test is parametrized that has more cases than each run needs: the others wait for a soak."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some_of(cases: Iterable[Any], in_each_run: Collection[Any]) -> list[Any]:
    """Return all cases, of which each run has those that are named; the rest is for `make soak`."""
    cases = list(cases)
    assert [case for case in in_each_run if case not in cases] == [], "there is no such case"
    return [case if case in in_each_run else pytest.param(case, marks=pytest.mark.soak) for case in cases]
