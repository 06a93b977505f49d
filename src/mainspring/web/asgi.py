"""The words of ASGI, as far as they are used here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def headers_of(scope: Scope) -> dict[str, str]:
    r"""Return the headers of a request by their names in lower case.

    Several with one name stand one below the other, as the value of a single one never can: a proxy may add its value
    behind that of its client, and neither is to be taken for the other.

    >>> headers_of({"headers": [(b"Host", b"localhost"), (b"x-user", b"ann"), (b"X-User", b"bob")]})
    {'host': 'localhost', 'x-user': 'ann\nbob'}
    """
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        known, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[known] = f"{found[known]}\n{text}" if known in found else text
    return found
