"""A line to a server that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tests.support.listening import let_nobody_in

GONE = (ConnectionError, asyncio.IncompleteReadError)


class Cable:
    """Forwards everything until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    def cut(self) -> None:
        """Cut every connection now; the next ones go through again."""
        for writer in list(self._writers):
            writer.transport.abort()

    @asynccontextmanager
    async def laid(self) -> AsyncGenerator[Cable]:
        listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            await let_nobody_in(listener)
            self.cut()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)  # what was aborted is closed in the next turn

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there, here = await asyncio.open_connection(*self._place)
            self._writers.add(here)
            await asyncio.gather(self._forward(reader, here), self._forward(there, writer))
            self._writers.discard(here)
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*GONE):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.transport.abort()
