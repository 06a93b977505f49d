"""A server that speaks as Amazon SQS does: moto's, run by `servers.py` in a process of its own.

Where moto's FIFO queues are not those of SQS, this makes them so: when the time of a message is up, its group begins
with its first again; a receipt whose time is up is no longer good; requests do not meet within a queue; the clock
stands still during a request. What moto does not have, no test here shows: lags that come late, limits of requests,
accounts and their rights.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, RLock
from typing import Any, Final

from moto.server import ThreadedMotoServer  # pyright: ignore[reportMissingTypeStubs]
from moto.sqs import models  # pyright: ignore[reportMissingTypeStubs]
from moto.sqs.exceptions import ReceiptHandleIsInvalid  # pyright: ignore[reportMissingTypeStubs]
from moto.sqs.models import Queue, SQSBackend  # pyright: ignore[reportMissingTypeStubs]

LOOK_SECONDS: Final = 0.005
PASSED_SECONDS: Final = "passed-seconds"
ONE_AT_A_TIME: Final = (
    *("send_message", "send_message_batch", "delete_message", "delete_message_batch"),
    *("change_message_visibility_batch", "get_queue_attributes"),
)

backend: Any = SQSBackend
look: Any = SQSBackend.receive_message
delete: Any = Queue.delete_message
change: Any = SQSBackend.change_message_visibility


class Clock:
    """The time of requests, each of which is alone: it stands still during one.

    Else a message could be seen again in the middle of a look for messages: those behind it would be given out, and it
    would be locked with its group as long as they are held.
    """

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()
        self.running: Callable[[], float] = lambda: (self._ahead + time.monotonic()) * 1000
        self._stopped: float | None = None
        self._lock = RLock()

    def millis(self) -> float:
        return self.running() if self._stopped is None else self._stopped

    def pass_time(self, seconds: float) -> None:
        self._ahead += seconds

    @contextmanager
    def stopped(self) -> Generator[None]:
        with self._lock:
            before, self._stopped = self._stopped, self.millis()
            try:
                yield
            finally:
                self._stopped = before


clock = Clock()


def alone(method: Callable[..., Any]) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        with clock.stopped():
            return method(*given, **named)

    return called


def receive(self: Any, queue_name: str, count: int, wait_seconds_timeout: int, *rest: Any, **named: Any) -> Any:
    """Look until there is something; moto's own wait would take all of the CPU while a group is locked."""
    until = time.monotonic() + wait_seconds_timeout
    while True:
        with clock.stopped():
            queue = self.get_queue(queue_name)
            queue.pending_messages.difference_update([each for each in queue.pending_messages if each.visible])
            found = look(self, queue_name, count, 0, *rest, **named)
        if found or time.monotonic() >= until:
            return found
        time.sleep(LOOK_SECONDS)  # the server of a test, in its own process: nobody tells it


def check(queue: Any, receipt: str) -> None:
    """Refuse a receipt whose time is up, or after which the message was received again."""
    for message in queue._messages:  # noqa: SLF001  moto has no other name for them
        if message.had_receipt_handle(receipt) and (message.visible or message.receipt_handle != receipt):
            raise ReceiptHandleIsInvalid


def delete_held(self: Any, receipt_handle: str) -> None:
    check(self, receipt_handle)
    delete(self, receipt_handle)


def change_held(self: Any, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
    check(self.get_queue(queue_name), receipt_handle)
    change(self, queue_name=queue_name, receipt_handle=receipt_handle, visibility_timeout=visibility_timeout)


def tag(self: Any, queue_name: str, tags: dict[str, str]) -> None:
    """Let time pass: what a test has to tell moto, and moto has no request for."""
    clock.pass_time(float(tags[PASSED_SECONDS]))


def main(port: int) -> None:
    for name in ONE_AT_A_TIME:
        setattr(backend, name, alone(getattr(backend, name)))
    backend.receive_message = receive
    backend.change_message_visibility = change_held
    backend.tag_queue = tag
    setattr(Queue, "delete_message", delete_held)  # noqa: B010  the type checker knows another one
    setattr(models, "unix_time_millis", clock.millis)  # noqa: B010  as above
    ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False).start()
    Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
