"""The how-to page on testing shows a failure; this is the failure that is printed."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import pytest

from mainspring import Complete, Send
from tests.support.paths import ROOT
from tests.unit.testing.stories import failure

PAGE = (ROOT / "docs/how-to/test-a-workflow.md").read_text()


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType("how_to_page")
    monkeypatch.setitem(sys.modules, "how_to_page", module)
    for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(code, vars(module))  # noqa: S102  our own documentation
    return module


def test_the_page_shows_the_failure_as_it_is_printed(page: Any) -> None:
    scenario = page.given(page.Expense(), page.Submit("e-1", 120)).when(page.Approved("e-1"))
    text = failure(lambda: scenario.then(Send(page.PayOut("e-1", 121)), Complete()))
    assert f"```text\n{text}\n```" in PAGE
