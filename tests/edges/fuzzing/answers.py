"""Readers of what others answer, and of what is kept of what came: services, brokers, rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from msgspec.structs import astuple, replace

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.undelivered import undelivered_in
from mainspring.brokers.nats_publishing import _outcome  # pyright: ignore[reportPrivateUsage]  what it reads
from mainspring.codec.wire import WireEnvelope
from mainspring.core.messages import type_of
from mainspring.engine.inputs.stored_input import from_inbox
from mainspring.engine.outputs.replies import Replies
from mainspring.errors import CallError, CodecError, DamagedRecordError, DoNotRetryError, RetryLaterError
from mainspring.port.records import EDGE, DeadLetter, InputRow, Remembered
from mainspring.port.tasks import TaskRow
from mainspring.remote.client import Answer, checked
from mainspring.remote.service import Service
from mainspring.remote.targets import target_of
from mainspring.stores.commit.rows import POSTED_FIELDS, posted_checksum, read_posted
from mainspring.stores.commit.task_rows import new_values, read_task
from mainspring.testing.samples import CountedThrice
from tests.edges.fuzzing.exchange import Exchange
from tests.edges.fuzzing.fuzz import Reader

URL: Final = "https://payments.example.com/commands"
ASKED: Final = WireEnvelope(id="Orders/o-1/3", type="Count", data=b"{}")
_STATUS: Final = re.compile(rb"([2-5][0-9]{2}) ")
LETTER: Final = DeadLetter(EDGE, "hook", "m-1", "undelivered", "Count", 1, b"", 0, b"{}", reason="it cannot be read")


def answer_readers(exchange: Exchange) -> list[Reader]:
    """Return those of what others answer."""

    def nats(data: bytes) -> str:
        said: Any = SimpleNamespace(headers=None, data=data)
        return type(_outcome(said, "orders")).__name__

    return [
        Reader("remote-answer", _remote(), (DoNotRetryError, RetryLaterError, CallError)),
        Reader("nats-answer", nats),
    ]


def _remote() -> Callable[[bytes], object]:
    """Return what reads an answer: a line with its status and when to try again, and the body behind it."""
    service = Service(Mainspring("memory://"), URL)
    declared = type_of(CountedThrice)
    internals_of(service._app).registry.codec.register(CountedThrice)  # noqa: SLF001  what it reads

    def read(data: bytes) -> object:
        head, _, body = data.partition(b"\n")
        status = _STATUS.match(head)
        after = head[status.end() :].decode("latin-1") if status else ""
        answer = Answer(int(status[1]) if status else 200, {"retry-after": after}, body)
        checked(target_of(URL), answer)
        return f"{len(service._results(answer, ASKED, {declared.name: declared}))} results"  # noqa: SLF001  as above

    return read


def kept_readers(exchange: Exchange) -> list[Reader]:
    """Return those of what is kept."""
    codec = internals_of(exchange.app).registry.codec

    def reply(data: bytes) -> str:
        async def remembered(_: str) -> Remembered:
            return Remembered("reply:r-1", "CountedThrice", 1, data, 0)

        replies: Any = SimpleNamespace(
            _store=SimpleNamespace(remembered=remembered), _registry=internals_of(exchange.app).registry
        )
        return str(exchange.run(Replies.kept(replies, "r-1"))[0])

    def undelivered(data: bytes) -> object:
        return str(bool(undelivered_in(replace(LETTER, body=data)).bytes))

    def posted(data: bytes) -> str:
        """Read a row as PostgreSQL gives it: the types are the columns'. Its checksum fits unless it says another."""
        texts, context, body = [*data.split(b"\n", 2), b"", b""][:3]
        kind, type, version, checksum = [*texts.decode(errors="replace").split(" "), "", "", "", ""][:4]
        number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else 1
        row = InputRow("Counter", "c-1", "m-1", kind, type, number, body, 0, context)
        told = int(checksum) if checksum.isascii() and checksum.isdigit() else posted_checksum(row)
        pending = from_inbox(codec, read_posted((5, *astuple(row)[:POSTED_FIELDS], told)))
        return f"{pending.kind} {pending.message is not None}"

    def task(data: bytes) -> object:
        """Read the two lists of a task's row."""
        answers, _, excludes = data.decode(errors="replace").partition("\n")
        values = list(new_values(7, TaskRow("Counter", "c-1", 3, "k", "Approve", ("Count",), 0, role="boss")))
        values[4], values[8] = answers, excludes
        return len(read_task(("Counter", "c-1", *values[1:])).answers)

    return [
        Reader("reply-kept", reply, (DamagedRecordError, CodecError)),
        Reader("undelivered", undelivered, (DamagedRecordError,)),
        Reader("posted", posted, (DamagedRecordError,)),
        Reader("task-row", task, (DamagedRecordError,)),
    ]
