"""botocore's client for SQS, whose calls block: each is made in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import islice
from threading import Lock
from time import monotonic
from typing import Any, Final

from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]  it has none
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError  # pyright: ignore[reportMissingTypeStubs]  as above
from botocore.session import Session  # pyright: ignore[reportMissingTypeStubs]  as above

from mainspring.brokers.adapters import going_on
from mainspring.errors import BrokerError

THREADS: Final = 16
CONNECTIONS: Final = 100
CONNECT_SECONDS: Final = 5
# Longer than SQS lets a receiver wait for messages.
ANSWER_SECONDS: Final = 25
BATCH: Final = 10
_NO_QUEUE: Final = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})

_config: Any = Config
_session: Any = Session
# What has read the descriptions of services: 50 ms, which each client of a process would take again.
_loaders: dict[Any, Any] = {}


class SqsClient:
    """A client that is made when it is first used. What botocore raises becomes a `BrokerError`."""

    def __init__(self, region: str, endpoint: str | None, given: Mapping[str, Any]) -> None:
        own = _config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=ANSWER_SECONDS,
            max_pool_connections=CONNECTIONS,
            retries={"mode": "standard", "total_max_attempts": 2},
        )
        theirs = given.get("config")
        config = own if theirs is None else own.merge(theirs)
        self._options = {**given, "region_name": region, "endpoint_url": endpoint, "config": config}
        self._making = Lock()
        self._client: Any = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="mainspring-sqs")

    async def call(self, operation: str, threads: Executor | None = None, **arguments: Any) -> tuple[Any, float]:
        """Return what SQS answers, and when that came."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads or self._threads, self._called, operation, arguments)

    async def call_in_tens(self, operation: str, url: str, entries: Iterable[Mapping[str, Any]]) -> set[int]:
        """Do something to many messages, ten in a request; return the numbers, from 0, of those that it failed for."""
        failed: set[int] = set()
        numbered = enumerate(entries)
        while batch := [{**entry, "Id": str(number)} for number, entry in islice(numbered, BATCH)]:
            answer, _ = await self.call(operation, QueueUrl=url, Entries=batch)
            failed |= {int(each["Id"]) for each in answer.get("Failed", ())}
        return failed

    def close(self) -> None:
        """Close the connections. Calls that are running end by themselves."""
        self._threads.shutdown(wait=False)
        if self._client is not None:
            with going_on("closing the connections to SQS"):
                self._client.close()

    def _called(self, operation: str, arguments: Mapping[str, Any]) -> tuple[Any, float]:
        try:
            with self._making:  # a session may not make two clients at once
                if self._client is None:
                    self._client = _made(self._options)
            return getattr(self._client, operation)(**arguments), monotonic()
        except ClientError as error:
            raise _refused(error) from error
        except BotoCoreError as error:
            raise BrokerError("sqs", f"cannot be asked: {error}", _fix(error)) from error


def _made(options: Mapping[str, Any]) -> Any:
    """Return a client of a session of its own, which keeps no other's credentials."""
    session = _session()
    loader = _loaders.setdefault(session.get_config_variable("data_path"), session.get_component("data_loader"))
    session.register_component("data_loader", loader)
    return session.create_client("sqs", **options)


def _refused(error: Any) -> BrokerError:
    told = error.response.get("Error", {})
    if told.get("Code") in _NO_QUEUE:
        return BrokerError("sqs", "has no such queue", "Create it as a FIFO queue, in this region.", of_message=True)
    problem = f"refused {error.operation_name}: {told.get('Code')}: {told.get('Message')}"
    return BrokerError("sqs", problem, "Look at the queue, its policy and the credentials.")


def _fix(error: Exception) -> str:
    if isinstance(error, ParamValidationError):
        return "Mend what it was given."
    return "Look at the credentials, the region and the network."
