"""Between a store and its server: a line that can be cut at a chosen moment, a pooler in transaction mode, and TLS.

The first two read PostgreSQL's messages (a type, a length, the rest), which is all that they know of the protocol.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from tests.support.listening import let_nobody_in

Cut = Literal["before", "after", "silence"]
GONE = (ConnectionError, asyncio.IncompleteReadError)
# The first message of a client that wants TLS: its length, and a number that is no version.
SSL_REQUEST = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")


class Line(NamedTuple):
    """One end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def message(self) -> bytes:
        """Return the next message whole."""
        head = await self.reader.readexactly(5)
        return head + await self.reader.readexactly(int.from_bytes(head[1:], "big") - 4)

    async def startup(self) -> bytes:
        """Return the first message, which has no type."""
        length = await self.reader.readexactly(4)
        return length + await self.reader.readexactly(int.from_bytes(length, "big") - 4)

    async def until_ready(self) -> list[bytes]:
        """Return all messages up to the one that says that the server is ready."""
        messages = [await self.message()]
        while messages[-1][:1] != b"Z":
            messages.append(await self.message())
        return messages


def through(url: str, port: int, sslmode: str = "disable") -> str:
    """Return the URL of the same database by another port, mostly without encryption: the messages are read."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    query = f"{parts.query}&sslmode={sslmode}" if parts.query else f"sslmode={sslmode}"
    return urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{port}", query=query))


def _statement(message: bytes) -> str:
    """Return the statement of a message, without what is set for it alone."""
    return re.sub(r"^SET LOCAL [^;]*;", "", message[5:].rstrip(b"\0").decode(errors="replace"))


class Cable:
    """Forwards everything, until `cut_at` says that a statement is one to be cut before or after its execution.

    While `flows` is clear nothing passes in either direction, and nothing is lost.
    """

    sslmode = "disable"

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self.cut_at: Callable[[str], Cut | None] = lambda _: None
        self.cuts = 0
        self.broken = False
        self.flows = asyncio.Event()
        self.flows.set()
        self._deaf: set[asyncio.StreamWriter] = set()
        self._lines: set[asyncio.StreamWriter] = set()
        self._servers: set[asyncio.StreamWriter] = set()

    def cut_once(self, statement: str, when: Cut) -> None:
        """Cut at the next statement that begins so."""

        def cut(text: str) -> Cut | None:
            if not text.startswith(statement):
                return None
            self.cut_at = lambda _: None
            return when

        self.cut_at = cut

    def cut_all(self) -> None:
        """Cut every connection now."""
        for writer in list(self._lines):
            writer.transport.abort()

    def half_open(self) -> None:
        """End every connection at the server's end alone: whoever is at the other hears nothing more, not even that."""
        self._deaf |= self._lines
        for server in list(self._servers):
            server.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.broken:
            writer.transport.abort()
            return
        self._lines.add(writer)
        try:
            with suppress(*GONE):
                await self._forward(Line(reader, writer))
        finally:
            writer.transport.abort()
            for known in (self._lines, self._deaf):
                known.discard(writer)

    async def _forward(self, client: Line) -> None:
        server = Line(*await asyncio.open_connection(self._url.hostname, self._url.port))
        self._lines.add(server.writer)
        self._servers.add(server.writer)
        back = asyncio.ensure_future(self._back(client, server))
        try:
            server.writer.write(await client.startup())
            while True:
                message = await client.message()
                await self.flows.wait()
                if client.writer in self._deaf:
                    continue
                cut = self.cut_at(_statement(message)) if message[:1] == b"Q" else None
                if cut == "before":
                    break
                if cut is not None:
                    back.cancel()
                    await asyncio.wait({back})
                    server.writer.write(message)
                    await server.until_ready()
                    if cut == "silence":
                        await client.message()  # there will be none: the client waits
                    break
                server.writer.write(message)
        finally:
            self.cuts += 1
            back.cancel()
            server.writer.transport.abort()
            for known in (self._lines, self._servers, self._deaf):
                known.discard(server.writer)

    async def _back(self, client: Line, server: Line) -> None:
        with suppress(*GONE):
            while data := await server.reader.read(65_536):
                await self.flows.wait()
                client.writer.write(data)
        if client.writer not in self._deaf:
            client.writer.transport.abort()


class Pooler:
    """Lends its few connections to the server for one transaction each."""

    sslmode = "disable"

    def __init__(self, url: str, size: int) -> None:
        self._url = urlsplit(url)
        self._free: asyncio.Queue[Line] = asyncio.Queue()
        self._left = size
        self._greeting: list[bytes] = []
        self._lines: set[asyncio.StreamWriter] = set()
        self.transactions = 0

    def cut_all(self) -> None:
        """Cut every connection now."""
        for writer in list(self._lines):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines.add(writer)
        try:
            with suppress(*GONE):
                await self._lend(Line(reader, writer))
        finally:
            writer.transport.abort()

    async def _lend(self, client: Line) -> None:
        hello = await client.startup()
        self._free.put_nowait(await self._take(hello))
        client.writer.writelines(self._greeting)
        while (message := await client.message())[:1] != b"X":
            server = await self._take(hello)
            self.transactions += 1
            await self._transaction(client, server, message)
            self._free.put_nowait(server)

    async def _transaction(self, client: Line, server: Line, message: bytes) -> None:
        """Forward both ways until the server says that no transaction is open."""

        async def forward() -> None:
            while True:
                server.writer.write(await client.message())

        server.writer.write(message)
        forwarding = asyncio.ensure_future(forward())
        try:
            while True:
                answer = await server.message()
                client.writer.write(answer)
                if answer == b"Z\0\0\0\x05I":
                    return
        finally:
            forwarding.cancel()
            await asyncio.gather(forwarding, return_exceptions=True)

    async def _take(self, hello: bytes) -> Line:
        if self._left and self._free.empty():
            self._left -= 1
            server = Line(*await asyncio.open_connection(self._url.hostname, self._url.port))
            self._lines.add(server.writer)
            server.writer.write(hello)
            self._greeting = await server.until_ready()
            return server
        return await self._free.get()


class Encrypting:
    """Speaks TLS with clients, as a server with a certificate does: the test's server is built without it."""

    sslmode = "require"

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        self._url = urlsplit(url)
        self._context = context
        self._lines: set[asyncio.StreamWriter] = set()

    def cut_all(self) -> None:
        """Cut every connection now."""
        for writer in self._lines:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readexactly(len(SSL_REQUEST))
        assert asked == SSL_REQUEST, asked
        writer.write(b"S")
        await writer.start_tls(self._context)
        server = Line(*await asyncio.open_connection(self._url.hostname, self._url.port))
        self._lines |= {writer, server.writer}
        await asyncio.gather(_pass_on(reader, server.writer), _pass_on(server.reader, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(*GONE):
        while data := await reader.read(65_536):
            writer.write(data)
    writer.transport.abort()


@asynccontextmanager
async def serving(proxy: Cable | Pooler | Encrypting, url: str) -> AsyncGenerator[str]:
    """Let a proxy listen, and give the URL that leads through it."""
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(proxy.serve(reader, writer)))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield through(url, listener.sockets[0].getsockname()[1], proxy.sslmode)
    finally:
        await let_nobody_in(listener)
        proxy.cut_all()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # what was aborted is closed in the next turn
