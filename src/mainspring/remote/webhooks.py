"""Webhooks out: what others subscribe to, posted to URLs that are on the allow-list, and signed."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.codec.wire import SOURCE, written
from mainspring.core.messages import Kind, type_of
from mainspring.engine.handlers.handler import Context, Handler, HandlerOptions
from mainspring.errors import DoNotRetryError, SettingError
from mainspring.remote.addresses import networks_of
from mainspring.remote.client import Client, checked
from mainspring.remote.service import GRACE, Caller, recorded_envelope
from mainspring.remote.targets import AllowList, Target

To: TypeAlias = str | Callable[[Any], str | None]

TIMEOUT: Final = timedelta(seconds=15)


class Webhooks:
    """Posts messages to others. Nothing leaves unless its URL is on the list of those that are allowed.

    `allow` names origins (`https://hooks.example.com`), or single URLs. Each request is signed as Standard Webhooks has
    it, with each of the `secrets`: two while one is being replaced. Addresses that are not public are refused unless
    they are in `networks`.

    >>> from mainspring.testing.samples import CountedThrice
    >>> app = Mainspring("memory://")
    >>> hooks = Webhooks(app, allow=["https://hooks.example.com"], secrets="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    >>> hooks.subscribe(CountedThrice, to="https://hooks.example.com/counted")
    """

    def __init__(
        self,
        app: Mainspring,
        *,
        allow: Iterable[str],
        secrets: str | Iterable[str],
        headers: Mapping[str, str] | None = None,
        networks: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        source: str = SOURCE,
        name: str = "webhooks",
    ) -> None:
        self._app = app
        self._allowed = AllowList(allow)
        given = (secrets,) if isinstance(secrets, str) else tuple(secrets)
        if not given:
            raise SettingError("secrets", given, "Give one: the receiver must be able to verify that it is you.")
        self._caller = Caller(given, headers)
        self._source = source
        self._resource = f"mainspring.remote:{name}"
        hosts = self._allowed.hosts
        app.resource(self._resource)(partial(Client, networks=networks_of(networks), hosts=hosts, tls=tls))

    def subscribe(self, event: type[Any], *, to: To, timeout: timedelta = TIMEOUT, **options: Any) -> None:
        """Post each published message of a type. `to` is a URL, or a function of the message; None: no one to post to.

        The other options are those of `app.subscribe`.
        """
        handler = self._handler(event, to, timeout, options, Kind.EVENT)
        internals_of(self._app).registry.add_subscriber(handler)

    def handle(self, command: type[Any], *, to: To, timeout: timedelta = TIMEOUT, **options: Any) -> None:
        """Post each sent message of a type; it is carried out when it is answered 2xx. It has no result.

        The other options are those of `app.handler`.
        """
        handler = self._handler(command, to, timeout, options, Kind.COMMAND)
        internals_of(self._app).registry.add_handler(handler)

    def _handler(self, cls: type[Any], to: To, timeout: timedelta, options: dict[str, Any], kind: Kind) -> Handler:
        fixed = self._allowed.target(to) if isinstance(to, str) else None

        async def post(message: Any, context: Context) -> None:
            target = fixed or self._target(to, message)
            if target is not None:
                await self._post(target, message, context, timeout, kind)

        post.__annotations__ = {"message": cls, "context": Context, "return": None}
        where = "a webhook" if fixed is None else f"the webhook at {fixed}"
        options.setdefault("name", f"{type_of(cls).name} to {where}")
        return Handler(post, HandlerOptions(timeout=timeout + GRACE, **options))

    def _target(self, to: To, message: Any) -> Target | None:
        url = to(message) if callable(to) else to
        try:
            return None if url is None else self._allowed.target(url)
        except SettingError as error:
            # It certainly did not happen, and another attempt would find the same URL.
            raise DoNotRetryError(str(error)) from None

    async def _post(self, target: Target, message: Any, context: Context, timeout: timedelta, kind: Kind) -> None:
        client: Client = context.resources[self._resource]
        envelope = await recorded_envelope(self._app, message, context, self._source)
        body = written(replace(envelope, kind=kind.value))
        headers = self._caller.headers(context, body, internals_of(self._app).engine.store.now_us())
        checked(target, await client.post(target, headers, body, timeout=timeout))
