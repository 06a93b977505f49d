"""Bodies encrypted with AES-GCM."""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from mainspring.errors import DamagedRecordError, SettingError
from mainspring.sealing.keys import Keys
from mainspring.sealing.seals import ERASED, About

KEYS_CACHED: Final = 10_000
RENEWALS_KEPT: Final = 100_000
"""How many renewed keys are remembered with the time they were first met. A forgotten one costs a read."""
_MARK: Final = b"\x02"
_NONCE_BYTES: Final = 12


class Encrypted:
    """Encrypts bodies under keys that can be rotated, and destroyed.

    `subject` says whose data a body is, from its workflow, instance, type and bytes: all of that one's bodies are under
    one key, and destroying it erases them everywhere, in backups too. Names of types, states and instances stay
    readable: put no secret into an id.

    The nonce is made from the body itself, so that the same message gives the same bytes and is known when it is
    repeated. A reader of the database can thus see that two bodies of one instance are equal, and nothing else.

    >>> from mainspring.sealing import StaticKeys
    >>> seal, about = Encrypted(StaticKeys({"2026": bytes(32)})), About("OrderFulfilment", "o-1", "PlaceOrder")
    >>> b"secret" in seal.close(b'{"card":"secret"}', about)
    False
    >>> seal.open(seal.close(b'{"card":"secret"}', about), about)
    b'{"card":"secret"}'
    """

    def __init__(self, keys: Keys, *, subject: Callable[[About, bytes], str | None] | None = None) -> None:
        try:
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415  an extra, imported where it is used
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  as above
        except ModuleNotFoundError as missing:
            raise SettingError("Encrypted", "not available", "Install mainspring[encryption].") from missing
        self._keys = keys
        self._subject = subject
        self._invalid = InvalidTag
        self._cipher: Callable[[bytes], Any] = lru_cache(KEYS_CACHED)(AESGCM)
        self._nonce_key = lru_cache(KEYS_CACHED)(_nonce_key)
        self._renewed: OrderedDict[str, int] = OrderedDict()
        self.renewals = 0

    def close(self, body: bytes, about: About) -> bytes:
        key = self._keys.current(None if self._subject is None else self._subject(about, body))
        if key.renewed and key.id not in self._renewed:
            self._meet(key.id)
        id, bound = key.id.encode(), _bound(about)
        nonce = hmac.digest(self._nonce_key(key.secret), bound + body, "sha256")[:_NONCE_BYTES]
        return b"".join((_MARK, bytes((len(id),)), id, nonce, self._cipher(key.secret).encrypt(nonce, body, bound)))

    def _meet(self, id: str) -> None:
        self.renewals += 1
        self._renewed[id] = self.renewals
        if len(self._renewed) > RENEWALS_KEPT:
            self._renewed.popitem(last=False)

    def renewal_of(self, stored: bytes) -> int:
        return self._renewed.get(_parts(stored)[0], 0)

    def open(self, stored: bytes, about: About) -> bytes:
        if not stored.startswith(_MARK):
            return stored
        where = f"{about.workflow}/{about.instance}"
        id, nonce, sealed = _parts(stored)
        try:
            secret = self._keys.find(id)
        except KeyError:
            # Of this record alone: the others may be under keys that are here.
            raise DamagedRecordError("bodies", f"{where}: sealed with the key {id!r}, which is not here") from None
        if secret is None:
            return ERASED
        try:
            return self._cipher(secret).decrypt(nonce, sealed, _bound(about))
        except (self._invalid, ValueError) as cause:
            raise DamagedRecordError("bodies", where) from cause


def _nonce_key(secret: bytes) -> bytes:
    """Return a second secret: what makes the nonce must not be what encrypts."""
    return hashlib.blake2b(secret, digest_size=32, person=b"nonce").digest()


def _parts(stored: bytes) -> tuple[str, bytes, bytes]:
    """Return the key's id, the nonce and the sealed body. What is cut off is found by decrypting."""
    begin = 2 + (stored[1] if len(stored) > 1 else 0)
    id = stored[2:begin].decode(errors="replace")
    return id, stored[begin : begin + _NONCE_BYTES], stored[begin + _NONCE_BYTES :]


def _bound(about: About) -> bytes:
    """Return what a body is bound to: one cannot be moved to another instance unseen."""
    return f"{about.workflow}/{about.instance}".encode()
