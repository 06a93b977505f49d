"""Every error is documented, and none that does not exist."""

import re

from mainspring import errors
from tests.support.paths import ROOT

PAGE = ROOT / "docs/reference/errors.md"
FAMILIES = {"MainspringError", "StepError", "CodecError"}


def test_every_error_stands_in_the_reference() -> None:
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}

    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)) == defined - FAMILIES


def test_the_tree_in_the_docstring_is_complete() -> None:
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}

    assert set(re.findall(r"\w+Error", errors.__doc__ or "")) == defined
