"""The page for users says what the tests try, and nothing else."""

import re

from tests.edges.bad_input import inputs
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "bad-input.md"


def test_the_page_has_a_row_for_every_bad_input_with_its_error() -> None:
    tables = [value for value in vars(inputs).values() if isinstance(value, tuple)]
    tried = {(case.name, case.error.__name__) for table in tables for case in table if isinstance(case, inputs.Case)}
    told = set(re.findall(r"^\| ([^|]+) \| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE))
    assert told == tried
    assert len(tried) > 80
