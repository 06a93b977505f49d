"""How a test waits for what others bring about: rows, processes and servers send no signal, so it looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final

PATIENCE_SECONDS: Final = 60.0
"""What never comes is waited for so long on a busy machine; nothing else takes this time."""
LOOK_SECONDS: Final = 0.002


async def until(check: Callable[[], Any | Awaitable[Any]], seconds: float = PATIENCE_SECONDS) -> Any:
    """Wait until a call, or what it awaits, gives something true, and return that."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    while True:
        found = check()
        if isawaitable(found):
            found = await found
        if found:
            return found
        assert loop.time() < ends, f"it did not come true within {seconds:g} s"
        await asyncio.sleep(LOOK_SECONDS)  # between two looks
