"""One way to run a test's asynchronous body."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

TEST_SECONDS: Final = 120.0
"""A test that hangs fails after this, on the busiest machine too."""


def run(body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a test's body in a loop of its own, and return what it returns; one that hangs fails."""

    async def bounded() -> T:
        async with asyncio.timeout(TEST_SECONDS):
            return await body()

    return asyncio.run(bounded())
