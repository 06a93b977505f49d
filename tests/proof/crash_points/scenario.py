"""What a scenario is: a small app, a script of what clients do, and what must be found at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mainspring import Mainspring
from tests.proof.crash.files import Place
from tests.proof.crash.tables import Tables
from tests.proof.crash.workload import Workload
from tests.proof.crash_points.client import Client
from tests.proof.crash_points.handler_effects import HandlerEffects

Script = Callable[[Client], Awaitable[None]]
Found = dict[str, Any]


def nothing_more(_tables: Tables, _place: Place) -> Found:
    """Look at nothing but streams, letters and effects."""
    return {}


@dataclass(frozen=True)
class Scenario:
    """One of them. Its script is told again after a crash: a client skips what it was told before.

    `before` is a script whose effects stand in the database when the counting begins; `age` makes that database look
    as an older release has left it, or as an app that has tables of its own. `found` returns, with plain SQL, what
    besides the streams must be as in a run without a crash; what is wrong by itself it says under keys that end in an
    exclamation mark.
    """

    name: str
    workload: Workload
    wire: Callable[[Mainspring, HandlerEffects], None]
    script: Script
    before: Script | None = None
    age: Callable[[Place], None] | None = None
    found: Callable[[Tables, Place], Found] = nothing_more
