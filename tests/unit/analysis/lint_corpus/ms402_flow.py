"""A flow that awaits what nothing recorded can end.

expect: MS402
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mainspring import Mainspring

app = Mainspring("memory://")


@dataclass(frozen=True)
class Start:
    id: str


@app.flow
async def endless(start: Start) -> None:
    await asyncio.Future()
