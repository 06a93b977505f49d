"""A property is tried on the same examples every time: alone, in another order and beside whatever else is imported."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT

# In an interpreter of its own: what Hypothesis has seen once, it keeps.
DRAW = """
import tests.conftest
from hypothesis import given, strategies as st

drawn = []

@given(st.text(), st.integers())
def draw(text, number):
    drawn.append((text, number))

draw()
print(ascii(drawn))
"""


def test_what_else_is_imported_changes_no_example() -> None:
    def examples(program: str) -> str:
        return subprocess.run(  # noqa: S603  our own
            [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout

    alone = examples(DRAW)
    assert alone.count("(") > 100
    assert examples("import tests.unit.purity.corpus, tests.unit.analysis.refunds\n" + DRAW) == alone
