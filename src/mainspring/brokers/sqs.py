"""Amazon SQS as a broker, by botocore.

An address is the name of a FIFO queue, which must be there. Its consumers share a queue, whatever the group: who wants
to have everything has a queue of its own. A message's key is its message group: SQS gives out nothing of a group while
something of it is out, so each is in order, and different keys go to different workers.

The deduplication id is a digest of the message's id; SQS forgets it after five minutes. What was received is hidden
from others for `takeover_seconds`, which is renewed while its consumer lives.

SQS takes texts that XML can carry, and ten attributes a message. So the headers are one attribute, a JSON object, and
a body that is no such text is base64, with an attribute that says so.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from json import dumps
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from mainspring.brokers.adapters import installed, published_by_address
from mainspring.brokers.port import Outgoing, Subscription
from mainspring.errors import BrokerError, DoNotRetryError, SettingError

with installed("sqs", "botocore", "botocore"):
    from mainspring.brokers.sqs_client import BATCH, SqsClient
    from mainspring.brokers.sqs_subscription import BASE64, ENCODING, HEADERS, SqsSubscription

TAKEOVER_SECONDS: Final = 30
LONGEST_TAKEOVER_SECONDS: Final = 3_600
POLL_SECONDS: Final = 5
LONGEST_POLL_SECONDS: Final = 20
# What a request with ten messages may have in any region, if one message may not have more.
REQUEST_BYTES: Final = 262_144
FIXED_GROUP: Final = "mainspring"
_QUEUE: Final = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
_REGION: Final = re.compile(r"[a-z0-9-]{1,50}")
# Letters, digits and punctuation of ASCII.
_GROUP: Final = re.compile(r"[!-~]{1,128}")
# What XML 1.0 cannot carry, and the \r that it would make a \n of.
_NOT_XML: Final = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEVER: Final = frozenset({"InvalidMessageContents", "InvalidParameterValue"})
_COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class _Queue(Struct, frozen=True):
    url: str
    message_bytes: int


class SqsBroker:
    """A broker by a region of AWS: `sqs://eu-west-1`, with `?endpoint=http://localhost:9324` for another server.

    Credentials are found as botocore finds them: environment, profile, role. `takeover_seconds` is after how long
    without a sign of life others get what a worker held. `poll_seconds` is how long a request for messages waits at
    SQS: longer costs fewer requests, and lets a worker that stops wait as long. `connect` is handed to botocore's
    `create_client` (`{"aws_access_key_id": …, "verify": …}`).

    >>> SqsBroker("sqs://eu-west-1")
    SqsBroker('sqs://eu-west-1')
    """

    def __init__(
        self,
        url: str,
        *,
        takeover_seconds: int = TAKEOVER_SECONDS,
        poll_seconds: int = POLL_SECONDS,
        connect: Mapping[str, Any] | None = None,
    ) -> None:
        self._region, self._endpoint = _place(url)
        self._takeover_seconds = _whole("takeover_seconds", takeover_seconds, LONGEST_TAKEOVER_SECONDS)
        self._poll_seconds = _whole("poll_seconds", poll_seconds, LONGEST_POLL_SECONDS)
        self._connect = dict(connect or {})
        self._found: SqsClient | None = None
        self._queues: dict[str, _Queue] = {}
        self._subscriptions: set[SqsSubscription] = set()

    def __repr__(self) -> str:
        endpoint = "" if self._endpoint is None else f"?endpoint={self._endpoint}"
        return f"SqsBroker({f'sqs://{self._region}{endpoint}'!r})"

    async def open(self) -> None:
        """Nothing to prepare: it connects on first use."""

    async def close(self) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.abandon()
        self._subscriptions.clear()
        self._queues.clear()
        client, self._found = self._found, None
        if client is not None:
            client.close()

    # ---- in

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        url, attributes = await self._attributes(address)
        if "RedrivePolicy" in attributes:
            problem = f"takes messages out of the queue {address!r} that come again too often (RedrivePolicy)"
            fix = "Remove the policy: what cannot be taken is kept as a dead letter by mainspring."
            raise BrokerError("sqs", problem, fix)
        subscription = SqsSubscription(
            self._client,
            address,
            url,
            prefetch,
            self._takeover_seconds,
            self._poll_seconds,
            self._subscriptions.discard,
        )
        self._subscriptions.add(subscription)
        return subscription

    async def lag(self, address: str, group: str) -> int | None:
        """Return how many are in the queue, about: SQS counts with a delay of up to a minute."""
        _, attributes = await self._attributes(address)
        return sum(int(attributes[name]) for name in _COUNTS)

    # ---- out

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        return await published_by_address(messages, self._published)

    async def _published(self, address: str, messages: list[Outgoing]) -> list[Exception | None]:
        outcomes: list[Exception | None] = [None] * len(messages)
        try:
            queue = await self._queue(address)
        except Exception as error:  # noqa: BLE001  the outcome of this address, and of no other
            return [error] * len(messages)
        entries: list[dict[str, Any]] = []
        for index, message in enumerate(messages):
            entry = _entry(index, message)
            if refused := _empty(message) or _too_large(entry, queue):
                outcomes[index] = refused
            else:
                entries.append(entry)
        failed: Exception | None = None
        for batch in _batches(entries, max(REQUEST_BYTES, queue.message_bytes)):
            told: dict[str, Exception] = {}
            if failed is None:
                try:
                    answer, _ = await self._client.call("send_message_batch", QueueUrl=queue.url, Entries=batch)
                    told = {each["Id"]: _refused(each) for each in answer.get("Failed", ())}
                except BrokerError as error:
                    self._queues.pop(address, None)
                    failed = error
            # What is behind a request that failed is not sent: it would be before the messages of that one.
            for entry in batch:
                outcomes[int(entry["Id"])] = failed or told.get(entry["Id"])
        return outcomes

    # ---- queues

    @property
    def _client(self) -> SqsClient:
        if self._found is None:
            self._found = SqsClient(self._region, self._endpoint, self._connect)
        return self._found

    async def _queue(self, address: str) -> _Queue:
        found = self._queues.get(address)
        if found is None:
            url, attributes = await self._attributes(address)
            found = self._queues[address] = _Queue(url, int(attributes["MaximumMessageSize"]))
        return found

    async def _attributes(self, address: str) -> tuple[str, dict[str, str]]:
        if not _QUEUE.fullmatch(address):
            fix = "Write the name of a FIFO queue, which ends with .fifo: others keep no order."
            raise SettingError("An address in SQS", address, fix)
        named, _ = await self._client.call("get_queue_url", QueueName=address)
        url = named["QueueUrl"]
        answer, _ = await self._client.call("get_queue_attributes", QueueUrl=url, AttributeNames=["All"])
        return url, answer["Attributes"]


def group_of(key: str | None) -> str:
    """Return the message group of a key.

    >>> group_of(None), group_of("Orders/o-1"), len(group_of("Orders/ö"))
    ('mainspring', 'Orders/o-1', 71)
    """
    if key is None:
        return FIXED_GROUP
    return key if _GROUP.fullmatch(key) else f"sha256:{sha256(key.encode()).hexdigest()}"


def text_of(body: bytes) -> tuple[str, bool]:
    r"""Return a body as SQS takes it, and whether it had to be encoded for that.

    >>> text_of(b'{"n":1}'), text_of(b"\xff"), text_of(b"\x00")
    (('{"n":1}', False), ('/w==', True), ('AA==', True))
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = None
    return (b64encode(body).decode(), True) if text is None or _NOT_XML.search(text) else (text, False)


def _entry(index: int, message: Outgoing) -> dict[str, Any]:
    body, encoded = text_of(message.body)
    attributes = {HEADERS: dumps(dict(message.headers))} if message.headers else {}
    if encoded:
        attributes[ENCODING] = BASE64
    return {
        "Id": str(index),
        "MessageBody": body,
        "MessageGroupId": group_of(message.key),
        "MessageDeduplicationId": sha256(message.id.encode()).hexdigest(),
        "MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()},
    }


def _bytes(entry: Mapping[str, Any]) -> int:
    """Return how many bytes of SQS's limit a message takes: its body, and its attributes with names and types."""
    attributes = entry["MessageAttributes"].items()
    beside = sum(len(name) + len(value["DataType"]) + len(value["StringValue"]) for name, value in attributes)
    return len(entry["MessageBody"].encode()) + beside


def _too_large(entry: Mapping[str, Any], queue: _Queue) -> Exception | None:
    if (size := _bytes(entry)) <= queue.message_bytes:
        return None
    return DoNotRetryError(
        f"SQS takes {queue.message_bytes:,} bytes in a message of this queue, and this one has {size:,} with its "
        "headers. Raise the queue's MaximumMessageSize, or keep what is large elsewhere and send where it is."
    )


def _empty(message: Outgoing) -> Exception | None:
    return None if message.body else DoNotRetryError("SQS takes no message without a body.")


def _batches(entries: Sequence[dict[str, Any]], limit: int) -> list[list[dict[str, Any]]]:
    """Return requests in their order: ten messages each at most, and no more bytes than SQS takes in one."""
    batches: list[list[dict[str, Any]]] = []
    room = 0
    for entry in entries:
        size = _bytes(entry)
        if not batches or len(batches[-1]) == BATCH or size > room:
            batches.append([])
            room = limit
        batches[-1].append(entry)
        room -= size
    return batches


def _refused(failure: Mapping[str, Any]) -> Exception:
    """Return why a message of a request was not taken."""
    said = f"{failure.get('Code')}: {failure.get('Message')}"
    if failure.get("Code") in _NEVER:
        return DoNotRetryError(f"SQS does not take this message: {said}")
    return BrokerError("sqs", f"did not take a message: {said}", "It is published again under the same id.")


def _place(url: object) -> tuple[str, str | None]:
    """Return the region of a URL, and the endpoint of a server that is not AWS."""
    fix = "Write sqs://eu-west-1, with ?endpoint=http://host:port for another server; keys go into `connect`."
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        given = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError:
        raise SettingError("SqsBroker.url", "no URL", fix) from None
    endpoint = given.pop("endpoint", None)
    is_place = parts.scheme == "sqs" and _REGION.fullmatch(parts.netloc) and parts.path in ("", "/")
    if not is_place or given or (endpoint is not None and not endpoint.startswith(("http://", "https://"))):
        raise SettingError("SqsBroker.url", parts.scheme or "no URL", fix)
    return parts.netloc, endpoint


def _whole(what: str, seconds: object, most: int) -> int:
    if type(seconds) is int and 1 <= seconds <= most:
        return seconds
    raise SettingError(f"SqsBroker.{what}", seconds, f"Use whole seconds from 1 to {most:,}.")
