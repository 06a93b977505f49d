"""Counts the calls of our own functions, by module."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import mainspring

_PACKAGE = f"{Path(mainspring.__file__).parent}/"
# From Python 3.12 on some of these are no calls any more.
_INLINED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>"})


@contextmanager
def counted_calls(under: str = "") -> Generator[Counter[str]]:
    """Count the calls of Python functions of mainspring below a folder, in this thread and in those begun meanwhile."""
    found: Counter[str] = Counter()
    folder = _PACKAGE + under

    def seen(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name not in _INLINED and code.co_filename.startswith(folder):
            found[f"{code.co_filename.removeprefix(_PACKAGE)}:{code.co_name}"] += 1

    before = sys.getprofile()
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
