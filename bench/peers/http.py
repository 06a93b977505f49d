"""A client that keeps its connections and costs little: what it takes of the machine, the measured server has not."""

from __future__ import annotations

import asyncio
from typing import Self

STATUS = slice(9, 12)


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection to this machine, one request at a time; `request` returns status and body."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    @classmethod
    async def to(cls, port: int) -> Self:
        _, made = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server has closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        answer = parsed(self._received)
        if answer is not None and self._answer is not None and not self._answer.done():
            self._received.clear()
            self._answer.set_result(answer)

    def request(self, path: str, body: bytes) -> asyncio.Future[tuple[int, bytes]]:
        """Post JSON."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._transport.write(head.encode() + body)
        return self._answer

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


def parsed(received: bytes | bytearray) -> tuple[int, bytes] | None:
    r"""Return the status and the body of an answer that has come whole; None before that.

    >>> parsed(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{")
    >>> parsed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    (200, b'{}')
    >>> parsed(b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n")
    (202, b'{"a":1}')
    """
    head, found, rest = bytes(received).partition(b"\r\n\r\n")
    if not found:
        return None
    status = int(head[STATUS])
    headers = dict(line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:])
    if b"chunked" in headers.get(b"transfer-encoding", b""):
        body = unchunked(rest)
        return None if body is None else (status, body)
    length = int(headers.get(b"content-length", b"0"))
    return (status, rest[:length]) if len(rest) >= length else None


def unchunked(rest: bytes) -> bytes | None:
    """Return a body that was sent in pieces; None while pieces are missing."""
    body = b""
    while True:
        size, found, rest = rest.partition(b"\r\n")
        if not found:
            return None
        length = int(size.split(b";")[0], 16)
        if len(rest) < length + 2:
            return None
        if not length:
            return body
        body, rest = body + rest[:length], rest[length + 2 :]
