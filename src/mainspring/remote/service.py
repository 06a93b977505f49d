"""Services: commands that are carried out in another process and perhaps another language, over HTTP.

The command is posted in its envelope, with the same key at every attempt. What is answered decides:

200, 204        it is done; the envelopes in the body, if any, are its result
202             it is being done: the result comes later, by itself, and names the command that it answers
408 409 425 429 not now: retried, after what Retry-After says
other 4xx, 3xx  it will never be done: the command has failed, with the problem's own words
5xx, nothing    not known: retried, as the handler's retry has it
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, Union

from msgspec.structs import replace

from mainspring.app import Mainspring
from mainspring.app.answers import is_answered, sender_of
from mainspring.app.internals import internals_of
from mainspring.app.signatures import StandardWebhooks, header_id, keys_of
from mainspring.codec.wire import (
    BATCH_MEDIA_TYPE,
    ENVELOPE_BYTES,
    MEDIA_TYPE,
    SOURCE,
    WireEnvelope,
    envelope_of,
    read_envelopes,
    written,
)
from mainspring.core.messages import MessageType, type_of
from mainspring.engine.handlers.handler import Context, Handler, HandlerOptions
from mainspring.engine.recording.stored_values import instance_id, moment
from mainspring.errors import CallError, CodecError, DoNotRetryError, SettingError, WiringError
from mainspring.port.records import FAN_OUT, Ref
from mainspring.remote.addresses import networks_of
from mainspring.remote.client import Answer, Client, checked
from mainspring.remote.targets import own_networks, target_of
from mainspring.telemetry.w3c import headers_of

TIMEOUT: Final = timedelta(seconds=30)
GRACE: Final = timedelta(seconds=5)
"""Longer than the call, so that its own error is reported and not that of the attempt."""
RESERVED: Final = frozenset(
    {"content-length", "content-type", "host", "idempotency-key", "transfer-encoding", "connection", "accept"}
)


class Service:
    """A service that carries out commands.

    Requests are signed (Standard Webhooks) if there are `secrets`; `headers` go along with each of them. Addresses that
    are not public are refused unless they are in `networks`. `tls` is for a certificate authority of one's own.

    >>> from mainspring.testing.samples import Count, CountedThrice
    >>> app = Mainspring("memory://")
    >>> payments = Service(app, "https://payments.example.com/commands", networks=["10.1.0.0/16"])
    >>> payments.handles(Count, returns=CountedThrice)
    """

    def __init__(
        self,
        app: Mainspring,
        url: str,
        *,
        secrets: str | Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        networks: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        source: str = SOURCE,
    ) -> None:
        self._app = app
        self._target = target_of(url)
        self._caller = Caller(secrets, headers)
        self._source = source
        self._resource = f"mainspring.remote:{url}"
        hosts = {self._target.host: own_networks(self._target)}
        app.resource(self._resource)(partial(Client, networks=networks_of(networks), hosts=hosts, tls=tls))

    def handles(
        self,
        command: type[Any],
        *,
        returns: type[Any] | Iterable[type[Any]] = (),
        timeout: timedelta = TIMEOUT,
        **options: Any,
    ) -> None:
        """Let this service carry out a type of commands. `returns` are the types of its results, now or later.

        `timeout` is that of one call; the other options are those of `app.handler`.
        """
        types = (returns,) if isinstance(returns, type) else tuple(returns)
        known = {name: declared for cls in types for declared in (type_of(cls),) for name in _names(declared)}

        async def call(message: Any, context: Context) -> Any:
            return await self._call(message, context, known, timeout)

        # As if it were written so: who draws, checks or documents workflows reads there what comes back.
        call.__annotations__ = {"message": command, "context": Context, "return": Union[(*types, None)]}
        options.setdefault("name", f"{type_of(command).name} at {self._target.host}")
        if "batch" in options or "transaction" in options or "executor" in options:
            raise WiringError(
                f"{options['name']} is carried out elsewhere", "Leave batch, transaction and executor out."
            )
        internals_of(self._app).registry.codec.register(*types)
        internals_of(self._app).registry.add_handler(Handler(call, HandlerOptions(timeout=timeout + GRACE, **options)))

    async def _call(
        self, message: Any, context: Context, known: Mapping[str, MessageType], timeout: timedelta
    ) -> list[Any]:
        client: Client = context.resources[self._resource]
        envelope = await recorded_envelope(self._app, message, context, self._source)
        body = written(envelope)
        headers = self._caller.headers(context, body, internals_of(self._app).engine.store.now_us())
        target = self._target
        answer = await client.post(target, headers, body, timeout=timeout, most_bytes=ENVELOPE_BYTES)
        try:
            checked(target, answer)
        except DoNotRetryError as refused:
            # An earlier call may have been carried out all the same, and its answer lost.
            raise DoNotRetryError(refused.reason, definite=context.attempt == 1) from None
        if answer.status == 202:
            if context.instance.startswith(f"{FAN_OUT}/"):
                fix = "Answer 503 with Retry-After until it is done, or send it without a fan-out."
                problem = "answered 202, and a fan-out has to know the result"
                raise CallError(str(target), problem, fix, of_message=True)
            return []
        results = self._results(answer, envelope, known)
        if results and await self._came_before(context):
            return []
        return results

    def _results(self, answer: Answer, command: WireEnvelope, known: Mapping[str, MessageType]) -> list[Any]:
        """Return the messages in an answer."""
        url = str(self._target)
        if answer.cut:
            problem = f"answered more than {ENVELOPE_BYTES:,} bytes"
            raise CallError(url, problem, "Answer with less.", of_message=True)
        if not answer.body.strip():
            return []
        try:
            found = read_envelopes(answer.body)
            return [self._result(envelope, command, known) for envelope in found]
        except CodecError as error:
            problem = f"answered {answer.status} with what is no result: {error}"
            raise CallError(url, problem, "Mend it.", of_message=True) from None

    def _result(self, envelope: WireEnvelope, command: WireEnvelope, known: Mapping[str, MessageType]) -> Any:
        url = str(self._target)
        declared = known.get(envelope.type)
        if declared is None:
            types = ", ".join(sorted(known)) or "nothing"
            fix = f"It was declared to return {types}: add it there."
            raise CallError(url, f"answered {envelope.type}", fix, of_message=True)
        if envelope.causation_id not in (None, command.id):
            problem = f"answered {envelope.causation_id} instead of {command.id}"
            raise CallError(url, problem, "Mend it.", of_message=True)
        version = envelope.type_version or declared.version
        return internals_of(self._app).registry.codec.decode_outside(declared.name, version, envelope.data)

    async def _came_before(self, context: Context) -> bool:
        """Return True if the result came by itself before: its 202 was lost, and so it was asked again."""
        return await is_answered(internals_of(self._app).engine.store, *_place(context))


async def recorded_envelope(app: Mainspring, message: Any, context: Context, source: str) -> WireEnvelope:
    """Return a message in its envelope, the same at every attempt: its time is that at which it was recorded."""
    encoded = internals_of(app).registry.codec.encode(message)
    ref, version = _place(context)
    rows = await internals_of(app).engine.store.stream(ref, version - 1, 1)
    envelope = envelope_of(context.envelope, encoded.name, encoded.version, encoded.body, source=source)
    time = moment(rows[0].time_us) if rows and rows[0].version == version else None
    return replace(envelope, time=time, sender=sender_of(context.instance), reply_to=None)


class Caller:
    """What goes along with each call: key, signature, trace, and what the author adds.

    >>> Caller((), {"Host": "elsewhere.example.com"})
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: headers is 'host'. It is written by mainspring: leave it out.
    """

    def __init__(self, secrets: str | Iterable[str], headers: Mapping[str, str] | None) -> None:
        given = (secrets,) if isinstance(secrets, str) else tuple(secrets)
        self._scheme = StandardWebhooks()
        self._keys = keys_of(self._scheme, given) if given else ()
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        for name, value in self._headers.items():
            if name in RESERVED or name.startswith("webhook-"):
                raise SettingError("headers", name, "It is written by mainspring: leave it out.")
            if not (name + value).isascii() or not (name + value).isprintable():
                raise SettingError("headers", name, "Use visible ASCII characters.")

    def headers(self, context: Context, body: bytes, now_us: int) -> dict[str, str]:
        """Return the headers of a call."""
        key = context.idempotency_key
        signed = self._scheme.sign(self._keys, key, now_us // 1_000_000, body) if self._keys else {}
        return {
            "content-type": MEDIA_TYPE,
            "accept": f"{MEDIA_TYPE}, {BATCH_MEDIA_TYPE}",
            "accept-encoding": "identity",
            "user-agent": "mainspring",
            "idempotency-key": header_id(key),
            **headers_of(context.envelope.trace),
            **signed,
            **self._headers,
        }


def _place(context: Context) -> tuple[Ref, int]:
    """Return where the message stands that a handler has: the instance that sent it, and the version."""
    named = instance_id(context.instance)
    return Ref(named.workflow, named.id), int(context.envelope.id.rpartition("/")[2])


def _names(declared: MessageType) -> tuple[str, ...]:
    return (declared.name, *declared.aliases)
