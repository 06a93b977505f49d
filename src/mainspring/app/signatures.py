"""Signatures of webhooks: how each sender proves that a request is its own, and how we sign ours.

All of them are an HMAC over the raw bytes of the body, most of them together with a time. Everything is compared in
constant time, and the sender does not learn which part was wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, Protocol
from urllib.parse import quote

from msgspec import Struct, json

from mainspring.errors import SettingError

LEAST_SECRET_CHARACTERS: Final = 16
LEAST_KEY_BYTES: Final = 12
"""Which are those of 16 characters of base64."""
SECRETS: Final = 10
SIGNATURES_LOOKED_AT: Final = 20
HEADER_CHARACTERS: Final = 10_000
TIMESTAMP_DIGITS: Final = 12

_SECRET_PREFIX: Final = "whsec_"  # noqa: S105  what stands before a secret
# What stands in a path of a URL, but for the dot: it ends an id where an id and a time are signed together.
_SAFE: Final = "/-_~!$&'()*+,;=:@"


class Proven(Struct, frozen=True):
    """What a valid signature proves: the sender's id of the message, and when it was signed, if that is signed too."""

    id: str
    time_s: int | None = None


class Scheme(Protocol):
    """How a sender signs. Any object that can do this will do.

    >>> scheme: Scheme = StandardWebhooks()
    """

    def key(self, secret: str) -> bytes:
        """Return the key that a secret stands for."""
        ...

    def prove(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes) -> Proven | None:
        """Return what a request proves with one of the keys; None: nothing. Names of headers are in lower case."""
        ...


class StandardWebhooks(Struct, frozen=True):
    """Standard Webhooks (standardwebhooks.com): `webhook-id`, `webhook-timestamp` and `webhook-signature`, all signed.

    >>> scheme = StandardWebhooks()
    >>> keys = [scheme.key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    >>> headers = scheme.sign(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    >>> headers["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    >>> scheme.prove(keys, headers, b'{"test": 2432232314}')
    Proven(id='msg_p5jXN8AQM9LWM0D4loKWxJek', time_s=1614265330)
    """

    def key(self, secret: str) -> bytes:
        """Return the bytes of a secret such as `whsec_…`, which is base64."""
        text = _long_enough(secret).removeprefix(_SECRET_PREFIX)
        try:
            key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            fix = "It is base64, with whsec_ before it or without, as the sender shows it."
            raise SettingError("The secret of a webhook", "not readable", fix) from None
        if len(key) < LEAST_KEY_BYTES:
            fix = f"Use one of {LEAST_KEY_BYTES} bytes or more: 24 are usual."
            raise SettingError("The secret of a webhook", "too short", fix)
        return key

    def prove(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes) -> Proven | None:
        id, time = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        time_s = _timestamp(time)
        if time_s is None or not 0 < len(id) <= HEADER_CHARACTERS:
            return None
        signed = f"{id}.{time}.".encode() + body
        given = (part.partition(",") for part in _parts(headers.get("webhook-signature", ""), " "))
        signatures = [signature for version, _, signature in given if version == "v1"]
        expected = [base64.b64encode(_hmac(key, signed, "sha256")).decode() for key in keys]
        return Proven(id, time_s) if _any_equal(expected, signatures) else None

    def sign(self, keys: Sequence[bytes], id: str, time_s: int, body: bytes) -> dict[str, str]:
        """Return the headers that prove a body to be ours: with several keys, one signature for each."""
        id = header_id(id)
        signed = f"{id}.{time_s}.".encode() + body
        signatures = (base64.b64encode(_hmac(key, signed, "sha256")).decode() for key in keys)
        return {
            "webhook-id": id,
            "webhook-timestamp": str(time_s),
            "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
        }


class GitHub(Struct, frozen=True):
    """GitHub: `X-Hub-Signature-256`. Neither its delivery id nor its time is signed: the id is the body's digest.

    >>> keys = [GitHub().key("It's a Secret to Everybody")]
    >>> signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    >>> GitHub().prove(keys, {"x-hub-signature-256": signature}, b"Hello, World!").id[:8]
    'dffd6021'
    """

    def key(self, secret: str) -> bytes:
        return _long_enough(secret).encode()

    def prove(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes) -> Proven | None:
        return Hmac("x-hub-signature-256", prefix="sha256=").prove(keys, headers, body)


class Stripe(Struct, frozen=True):
    """Stripe: `Stripe-Signature` with a time and signatures of version 1. The id is the event's, in the signed body.

    >>> scheme = Stripe()
    >>> body = b'{"id":"evt_1"}'
    >>> signature = hmac.digest(b"whsec_test_secret", b"1492774577." + body, "sha256").hex()
    >>> scheme.prove([scheme.key("whsec_test_secret")], {"stripe-signature": f"t=1492774577,v1={signature}"}, body)
    Proven(id='evt_1', time_s=1492774577)
    """

    def key(self, secret: str) -> bytes:
        """Return the bytes of a secret such as `whsec_…`: with Stripe, all of it is the key, as it is written."""
        return _long_enough(secret).encode()

    def prove(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes) -> Proven | None:
        pairs = [part.partition("=") for part in _parts(headers.get("stripe-signature", ""), ",")]
        times = [value for name, _, value in pairs if name == "t"]
        time_s = _timestamp(times[0]) if len(times) == 1 else None
        if time_s is None:
            return None
        # Only version 1: who accepts what is weaker can be made to.
        signatures = [value for name, _, value in pairs if name == "v1"]
        signed = f"{times[0]}.".encode() + body
        expected = [_hmac(key, signed, "sha256").hex() for key in keys]
        return Proven(_event_id(body), time_s) if _any_equal(expected, signatures) else None


class Hmac(Struct, frozen=True):
    """An HMAC of the body in a header, as many services have it.

    Only the body is signed, so its digest is the id: what has the same body is the same message. Where two messages may
    well be equal, `id_header` names the header with the sender's id; but that is not signed: an attacker who can see a
    request can replay it under another one.

    >>> scheme = Hmac("x-signature", prefix="sha256=")
    >>> signature = hmac.digest(b"a-secret-of-some-length", b"{}", "sha256").hex()
    >>> scheme.prove([b"a-secret-of-some-length"], {"x-signature": f"sha256={signature}"}, b"{}").time_s is None
    True
    """

    header: str
    digest: Literal["sha256", "sha384", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: str = ""
    id_header: str | None = None

    def __post_init__(self) -> None:
        if self.digest not in ("sha256", "sha384", "sha512"):
            raise SettingError("Hmac.digest", self.digest, "Use sha256, sha384 or sha512; weaker ones are not safe.")
        if self.encoding not in ("hex", "base64"):
            raise SettingError("Hmac.encoding", self.encoding, "Use hex or base64.")

    def key(self, secret: str) -> bytes:
        return _long_enough(secret).encode()

    def prove(self, keys: Sequence[bytes], headers: Mapping[str, str], body: bytes) -> Proven | None:
        shown = headers.get(self.header.lower(), "").strip()
        if not shown.startswith(self.prefix) or len(shown) > HEADER_CHARACTERS:
            return None
        digests = [_hmac(key, body, self.digest) for key in keys]
        expected = [d.hex() if self.encoding == "hex" else base64.b64encode(d).decode() for d in digests]
        if not _any_equal(expected, [shown.removeprefix(self.prefix)]):
            return None
        if self.id_header is None:
            return Proven(digest_of(body))
        id = headers.get(self.id_header.lower(), "")
        return Proven(id) if 0 < len(id) <= HEADER_CHARACTERS else None


def keys_of(scheme: Scheme, secrets: str | Iterable[str]) -> tuple[bytes, ...]:
    """Return the keys of one secret, or of several: while one is being replaced, both are right.

    >>> len(keys_of(GitHub(), ["the-old-secret-of-the-hook", "the-new-secret-of-the-hook"]))
    2
    """
    given = (secrets,) if isinstance(secrets, str) else tuple(secrets)
    if not 0 < len(given) <= SECRETS:
        raise SettingError(
            "The number of secrets", len(given), f"Give one, or while it is replaced two; at most {SECRETS}."
        )
    return tuple(scheme.key(secret) for secret in given)


def digest_of(body: bytes) -> str:
    """Return a body's digest, which stands for it where nothing else does.

    >>> digest_of(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(body).hexdigest()


def header_id(id: str) -> str:
    """Return an id as it can stand in a header and be signed: what is not plain ASCII, and the dot, is percent-encoded.

    >>> header_id("OrderFulfilment/o-1/3"), header_id("Café/1.5")
    ('OrderFulfilment/o-1/3', 'Caf%C3%A9/1%2E5')
    """
    return quote(id, safe=_SAFE).replace(".", "%2E")


def _long_enough(secret: object) -> str:
    if not isinstance(secret, str) or len(secret) < LEAST_SECRET_CHARACTERS:
        fix = f"Use one of {LEAST_SECRET_CHARACTERS} characters or more, as secrets.token_urlsafe() makes them."
        # Never the secret itself: errors are logged.
        raise SettingError("The secret of a webhook", "too short, or no text", fix)
    return secret


def _parts(header: str, separator: str) -> list[str]:
    if len(header) > HEADER_CHARACTERS:
        return []
    return [part.strip() for part in header.split(separator)][:SIGNATURES_LOOKED_AT]


def _timestamp(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= TIMESTAMP_DIGITS else None


def _hmac(key: bytes, signed: bytes, digest: str) -> bytes:
    return hmac.digest(key, signed, digest)


def _any_equal(expected: list[str], given: list[str]) -> bool:
    """Return True if one is equal to one. All are compared: how long it takes says nothing about any of them."""
    found = [hmac.compare_digest(own.encode(), other.encode()) for own in expected for other in given]
    return any(found)


def _event_id(body: bytes) -> str:
    """Return the id that a signed event has, or its digest if it has none that could be one."""
    try:
        id = json.decode(body).get("id")
    except (ValueError, AttributeError, RecursionError):
        id = None
    return id if isinstance(id, str) and 0 < len(id) <= HEADER_CHARACTERS else digest_of(body)
