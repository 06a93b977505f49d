"""Texts that somebody has looked at and approved: a test compares, and MAINSPRING_APPROVE=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "approved"


def approved(name: str, text: str) -> None:
    """Hold a text against the approved one of a name, such as `diagram/order_processing.mmd`."""
    path = FOLDER / name
    if os.environ.get("MAINSPRING_APPROVE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"{name} was never approved: run it with MAINSPRING_APPROVE=1, and read what it writes"
    assert text == path.read_text(), f"{name} changed: if that was meant, run it with MAINSPRING_APPROVE=1"
