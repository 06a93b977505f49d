"""How commands that read a whole store share the work among processes."""

from __future__ import annotations

import functools
import os

from mainspring.analysis.processes import Sharing
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.loading import load_app


def sharing_of(app: Mainspring, address: str, processes: int | None) -> Sharing | None:
    """Return among how many processes work on an app's store is shared; None where no other process can see it."""
    if internals_of(app).url.startswith("memory:"):
        return None
    return Sharing(functools.partial(load_app, address), processes or os.cpu_count() or 1)
