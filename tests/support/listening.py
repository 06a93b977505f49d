"""How a listener of a test ends, so that nothing of it is left for the tests behind it."""

from __future__ import annotations

import asyncio
from typing import Final

TURNS: Final = 10


async def let_nobody_in(listener: asyncio.Server) -> None:
    """Close a listener when whoever was let in has been announced, a few turns of the loop later.

    asyncio forgets one who is let in while the listener is closed. It warns when that is found, by chance, and this
    fails whichever test runs at that moment.
    """
    for one in listener.sockets:
        asyncio.get_running_loop().remove_reader(one.fileno())
    for _ in range(TURNS):
        await asyncio.sleep(0)
    listener.close()
