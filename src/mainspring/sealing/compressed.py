"""Bodies compressed, where that is worth it."""

from __future__ import annotations

import zlib
from typing import Final

from mainspring.errors import DamagedRecordError, SettingError
from mainspring.sealing.seals import About

# More than any body may have, states included.
MOST_BYTES: Final = 64 * 1_024 * 1_024

_MARK: Final = b"\x01"


class Compressed:
    """Compresses bodies from `least_bytes` on, and keeps those that do not become smaller as they are.

    >>> seal, about = Compressed(), About("W", "i")
    >>> body = b'{"text":"' + b"again and " * 1_000 + b'"}'
    >>> len(seal.close(body, about)) < 100
    True
    >>> seal.open(seal.close(body, about), about) == body
    True
    """

    secret: Final = False
    """It hides nothing: see `Seal`."""

    def __init__(self, *, least_bytes: int = 1_024, level: int = 6) -> None:
        if not 0 <= level <= 9:
            raise SettingError("Compressed.level", level, "Use 0 (fast) to 9 (small).")
        self._least_bytes = least_bytes
        self._level = level

    def close(self, body: bytes, about: About) -> bytes:
        if len(body) < self._least_bytes:
            return body
        packed = _MARK + zlib.compress(body, self._level)
        return packed if len(packed) < len(body) else body

    def open(self, stored: bytes, about: About) -> bytes:
        if not stored.startswith(_MARK):
            return stored
        unpack = zlib.decompressobj()
        try:
            # A body that was made to grow without end must not take the memory of all.
            body = unpack.decompress(stored[1:], MOST_BYTES + 1)
        except zlib.error as cause:
            raise DamagedRecordError("bodies", f"{about.workflow}/{about.instance}") from cause
        if not unpack.eof or len(body) > MOST_BYTES:
            raise DamagedRecordError("bodies", f"{about.workflow}/{about.instance}")
        return body
