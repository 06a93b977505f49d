"""Webhooks in: what other services send, proven by its signature, read by a pure function, and taken once.

```
 request ──► proven? ──► fresh? ──► not too often? ──► read ──► durable ──► answered
             401         400        429                 │
                                                         └─ else kept as a dead letter, and answered
```

Nothing is parsed before the signature over the raw bytes is proven. The sender's own id becomes the message's: what is
sent again, by the sender or in a replay attack, is a duplicate.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar, cast

from msgspec import json

from mainspring.app.given import checked_texts
from mainspring.app.internals import Internals
from mainspring.app.outside import publish_outside
from mainspring.app.signatures import Scheme, StandardWebhooks, digest_of, keys_of
from mainspring.app.undelivered import keep_undelivered, undelivered_in
from mainspring.codec import BODY_LIMIT_BYTES
from mainspring.codec.strict import scan
from mainspring.core.messages import type_of
from mainspring.engine.handlers.policies import limits
from mainspring.engine.handlers.policies.checks import check_duration
from mainspring.engine.handlers.policies.limits import RateLimit
from mainspring.errors import SettingError, StoreError, WiringError
from mainspring.port.records import DeadLetter

F = TypeVar("F", bound=Callable[..., Any])

WINDOW: Final = timedelta(minutes=5)
BODY_BYTES: Final = 1_024 * 1_024
RATE: Final = RateLimit(per_second=100, burst=200)
MESSAGES: Final = 100
"""Of one request: more of them belong into one message."""
ID_CHARACTERS: Final = 500

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_MICROSECONDS: Final = 1_000_000
_MICROSECOND: Final = timedelta(microseconds=1)
HEADERS: Final = frozenset(
    {"content-type", "date", "user-agent", "webhook-id", "webhook-timestamp", "x-request-id"}
    | {"x-github-event", "x-github-delivery"}
)
"""The headers of a request that are passed on, unless its hook names more. All others may be a secret: every
service has a name of its own for what proves who it is."""

Reception = Literal["taken", "kept", "unproven", "stale", "too often"]


class Hook:
    """One webhook: who may call it, and what its payload means."""

    def __init__(
        self,
        internals: Internals,
        name: str,
        function: Callable[..., Any],
        *,
        scheme: Scheme,
        secrets: str | Iterable[str],
        window: timedelta,
        rate: RateLimit,
        body_bytes: int,
        headers: frozenset[str],
    ) -> None:
        self.name = name
        self.body_bytes = body_bytes
        self._internals = internals
        self._function = function
        self._headers_too = not isinstance(function, type) and len(inspect.signature(function).parameters) > 1
        self._scheme = scheme
        self._keys = keys_of(scheme, secrets)
        self._window = window
        self._rate = rate
        self._bucket = limits.BucketState()
        self._headers = headers

    async def take(self, headers: Mapping[str, str], body: bytes) -> Reception:
        """Take a request: what it says is durable when this returns `taken` or `kept`. Headers are in lower case."""
        engine = self._internals.engine
        proven = self._scheme.prove(self._keys, headers, body)
        if proven is None:
            return "unproven"
        now_us = engine.store.now_us()
        if proven.time_s is not None and abs(now_us - proven.time_s * _MICROSECONDS) > self._window // _MICROSECOND:
            return "stale"
        # Only now: a client that cannot sign must not use up the rate of those that can.
        passes, self._bucket = limits.take(self._rate, self._bucket, now_us)
        if not passes:
            return "too often"
        id = f"{self.edge}/{_printable(proven.id)}"
        known = self._known(headers)
        try:
            await self._accept(known, body, id, None)
        except StoreError:
            raise  # nothing is wrong with the request: its sender may retry
        except Exception as error:  # noqa: BLE001  the author's function, or what it returned, may fail in any way
            reason = "it was signed rightly, and could not be taken"
            await keep_undelivered(engine, self.edge, id=id, body=body, headers=known, reason=reason, error=error)
            return "kept"
        return "taken"

    async def again(self, letter: DeadLetter, message: Any, actor: str | None) -> None:
        """Take what was kept once more, or `message` in its place: its signature was proven when it came."""
        kept = undelivered_in(letter)
        if message is None:
            await self._accept(self._known(kept.headers), kept.bytes, letter.message_id, actor)
        else:
            await self._publish(message, letter.message_id, actor)

    @property
    def edge(self) -> str:
        """The name under which dead letters of this hook are kept."""
        return f"hook/{self.name}"

    @property
    def retry_seconds(self) -> int:
        """How long to wait before there is room for another request."""
        return -(-limits.wait_us(self._rate, self._bucket, self._internals.engine.store.now_us()) // _MICROSECONDS)

    def _known(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that are handed on: what is retried sees what was seen at first."""
        return {name: value for name, value in headers.items() if name in self._headers}

    async def _accept(self, headers: Mapping[str, str], body: bytes, id: str, actor: str | None) -> None:
        messages = self._messages(headers, body)
        for number, message in enumerate(messages, 1):
            await self._publish(message, id if len(messages) == 1 else f"{id}/{number}", actor)

    def _messages(self, headers: Mapping[str, str], body: bytes) -> list[Any]:
        if isinstance(self._function, type):
            declared = type_of(self._function)
            return [self._internals.registry.codec.decode_outside(declared.name, declared.version, body)]
        scan(f"A payload of {self.name}", body)
        payload = json.decode(body)
        found = self._function(payload, headers) if self._headers_too else self._function(payload)
        messages = list(cast("list[Any]", found)) if isinstance(found, list | tuple) else [found]
        messages = [message for message in messages if message is not None]
        if len(messages) > MESSAGES:
            raise WiringError(
                f"{self.name} made {len(messages):,} messages of one request", f"Make {MESSAGES} at most."
            )
        return messages

    async def _publish(self, message: Any, id: str, actor: str | None) -> None:
        registry = self._internals.registry
        if not registry.takers(message) and not registry.has_subscribers(message):
            raise WiringError(f"Nothing takes {type(message).__name__}", "Add a workflow that has it among its inputs.")
        await publish_outside(self._internals, message, id=id, actor=actor)


class Hooks:
    """Declares the webhooks of an app: `app.hook`.

    >>> from mainspring import Mainspring
    >>> from mainspring.app.internals import internals_of
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> @app.hook("doorbell", secrets="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    ... def rung(payload):
    ...     return Count(payload["door"])
    >>> list(internals_of(app).hooks)
    ['doorbell']
    """

    def __init__(self, internals: Internals) -> None:
        self._internals = internals

    def __call__(
        self,
        name: str,
        *,
        secrets: str | Iterable[str],
        scheme: Scheme = StandardWebhooks(),  # noqa: B008  frozen, and without state
        window: timedelta = WINDOW,
        rate: RateLimit = RATE,
        body_bytes: int = BODY_BYTES,
        headers: Iterable[str] = (),
    ) -> Callable[[F], F]:
        """Let other services send something to `POST /api/hooks/{name}`.

        The function is pure: it takes the payload, and the headers if it has a second parameter, and returns a message,
        several, or None for what is of no interest here. A message type instead of a function takes the payload as
        its fields. Several `secrets` are right at once while one is being replaced. `headers` names those that the
        function gets beside `HEADERS`; no others are kept where a request becomes a dead letter.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SettingError("The name of a hook", name, "Use small letters, digits and hyphens: it stands in a URL.")
        if name in self._internals.hooks:
            raise WiringError(f"Two hooks are named {name!r}", "Name one of them otherwise.")
        if type(body_bytes) is not int or not 0 < body_bytes <= BODY_LIMIT_BYTES:
            raise SettingError("body_bytes", body_bytes, f"Use a number from 1 to {BODY_LIMIT_BYTES:,}.")
        check_duration("window", window, timedelta(seconds=1))
        known = HEADERS | {header.lower() for header in checked_texts("headers", headers)}

        def declare(function: F) -> F:
            if not callable(function) or inspect.iscoroutinefunction(function):
                fix = "Use a plain function of the payload: what takes time belongs into a workflow."
                raise WiringError(f"What the hook {name} does is no plain function", fix)
            hook = Hook(
                self._internals,
                name,
                function,
                scheme=scheme,
                secrets=secrets,
                window=window,
                rate=rate,
                body_bytes=body_bytes,
                headers=known,
            )
            self._internals.hooks[name] = hook
            self._internals.services.edges[hook.edge] = hook
            return function

        return declare


def _printable(id: str) -> str:
    return id if id.isprintable() and len(id) <= ID_CHARACTERS else digest_of(id.encode(errors="backslashreplace"))
