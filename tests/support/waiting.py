"""How a test waits for what others bring about: rows, processes and servers send no signal, so it looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final

PATIENCE_SECONDS: Final = 60.0
"""What never comes is waited for so long on a busy machine; nothing else takes this time."""
LOOK_SECONDS: Final = 0.002
LOOK_PART: Final = 0.1
"""What has not come for long may come a little later: looking without rest would take time from those who bring it."""
MOST_LOOK_SECONDS: Final = 0.02


async def until(check: Callable[[], Any | Awaitable[Any]], seconds: float = PATIENCE_SECONDS) -> Any:
    """Wait until a call, or what it awaits, gives something true, and return that."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while True:
        found = check()
        if isawaitable(found):
            found = await found
        if found:
            return found
        waited = loop.time() - begun
        assert waited < seconds, f"it did not come true within {seconds:g} s"
        # Between two looks.
        await asyncio.sleep(min(max(LOOK_SECONDS, waited * LOOK_PART), MOST_LOOK_SECONDS))
