"""How many examples a property is tried with: many in a soak, which takes others each time, and few in a test run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import hypothesis
import pytest

MOST_EXAMPLES: Final = 60
"""A test run takes the same ones each time: more of them would find what is there to be found only once."""


def limit_examples(items: Iterable[pytest.Item], most: int = MOST_EXAMPLES) -> None:
    """Let no property of these tests take more examples than `most`, whatever it asks for itself."""
    for item in items:
        function = getattr(item, "function", None)
        chosen: hypothesis.settings | None = getattr(function, "_hypothesis_internal_use_settings", None)
        if chosen is not None and chosen.max_examples > most:
            few = hypothesis.settings(chosen, max_examples=most)
            setattr(function, "_hypothesis_internal_use_settings", few)  # noqa: B010  hypothesis has no other way
