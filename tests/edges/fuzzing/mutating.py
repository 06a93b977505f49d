"""Changes bytes as a broken program would, or somebody who means no good."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

LONGEST_BYTES: Final = 20_000
HOW_MANY: Final = (1, 1, 1, 1, 2, 2, 3, 6)

# What readers are known to stumble over, beside the bytes of the seeds themselves.
TOKENS: Final = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    b"null",
    b"true",
    b"NaN",
    b"-0",
    b"1e999",
    b"9223372036854775808",
    b"9" * 400,
    b"9" * 5_000,
    b"0.1",
    b'""',
    b"[]",
    b"{}",
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b'{"a":1,"a":2}',
    b"\r\n",
    b"\r\n\r\n",
    b"\n\n",
    b"%",
    b"%00",
    b"%ff",
    b"=",
    b";",
    b",",
    b":",
    b"2026-01-31T12:00:00",
    b"0001-01-01T00:00:00+14:00",
    b"9999-12-31T23:59:59-14:00",
    b"P1Y",
    "\u202e\u0662".encode(),
    b"../../etc/passwd",
    b"A" * 5_000,
)

Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def _flipped(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _cut(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    first, last = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    return data[:first] + data[last:]


def _doubled(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    first, last = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    return data[:last] + data[first:last] * chance.choice((1, 2, 50)) + data[last:]


def _put_in(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at, instead = chance.randrange(len(data) + 1), chance.choice((0, 1, 4, 12))
    return data[:at] + chance.choice(TOKENS) + data[at + instead :]


def _spliced(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = chance.choice(others)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def _value(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Put another value in the place of one: between a separator and the next."""
    ends = [at for at, byte in enumerate(data) if byte in b':,="{}[]&;\n ']
    if len(ends) < 2:
        return _put_in(chance, data, ())
    place = chance.randrange(len(ends) - 1)
    return data[: ends[place] + 1] + chance.choice(TOKENS) + data[ends[place + 1] :]


CHANGES: Final[tuple[Change, ...]] = (_flipped, _cut, _doubled, _put_in, _spliced, _value, _value)


def changed(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return bytes with some changes, the same for the same chance."""
    for _ in range(chance.choice(HOW_MANY)):
        data = chance.choice(CHANGES)(chance, data, others)[:LONGEST_BYTES]
    return data
