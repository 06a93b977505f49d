"""Real servers on loopback that answer as a test wants them to, and an authority that signs their certificates."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import json

from tests.support.listening import let_nobody_in

Reply: TypeAlias = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def envelope(self) -> Any:
        return json.decode(self.body)


@dataclass
class Server:
    """What came, and what is answered: the replies one after the other, the last one again and again."""

    replies: Sequence[Reply]
    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list[Request])
    names: list[str | None] = field(default_factory=list[str | None])

    @property
    def next_reply(self) -> Reply:
        return self.replies[min(len(self.requests), len(self.replies)) - 1]


def answered(status: int, body: Any = b"", *headers: str) -> bytes:
    content = body if isinstance(body, bytes) else json.encode(body)
    lines = [f"HTTP/1.1 {status} Because", f"content-length: {len(content)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + content


@asynccontextmanager
async def serving(
    *replies: Reply, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    server = Server(replies or (answered(200),))
    writers: set[asyncio.StreamWriter] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        writers.add(writer)
        try:
            while (request := await _request(reader)) is not None:
                server.requests.append(request)
                reply = server.next_reply
                if isinstance(reply, bytes):
                    writer.write(reply)
                    await writer.drain()
                else:
                    await reply(writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client has gone, as some tests want it to
        finally:
            writer.close()

    if tls is not None:
        tls.sni_callback = lambda _, name, __: server.names.append(name)
    made = await asyncio.start_server(connected, host, port, ssl=tls)
    server.port = made.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        await let_nobody_in(made)
        for writer in writers:
            writer.close()
        await asyncio.sleep(0)  # what was closed is gone in the next turn of the loop


async def _request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.splitlines()
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return Request(first.split()[1], headers, await reader.readexactly(int(headers.get("content-length", "0"))))


@cache
def authority() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    return _certificate("An authority of the tests", key, None), key


@cache
def certified(name: str, *, known: bool = True) -> ssl.SSLContext:
    """Return the context of a server with a certificate for a name, by the authority or by nobody."""
    key = ec.generate_private_key(ec.SECP256R1())
    folder = Path(mkdtemp())
    (folder / "certificate").write_bytes(
        _certificate(name, key, authority() if known else None).public_bytes(serialization.Encoding.PEM)
    )
    (folder / "key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    return context


def trusting() -> ssl.SSLContext:
    """Return the context of a client that trusts the authority of the tests and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority()[0].public_bytes(serialization.Encoding.PEM).decode())
    return context


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, by: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signer = (subject, key) if by is None else (by[0].subject, by[1])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if "." in name:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return made.sign(signer, hashes.SHA256())
