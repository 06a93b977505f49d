"""Requests: a message from outside whose Reply is awaited, and replies that came after the caller stopped waiting."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final, TypedDict

from mainspring.app.given import checked_seconds
from mainspring.app.instance import Instance
from mainspring.app.internals import Internals
from mainspring.engine.engine import Engine
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.senders import checked_message_id
from mainspring.engine.outputs.awaited_ends import ELSEWHERE_SECONDS, STANDING
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import (
    InstancePurgedError,
    InstanceSuspendedError,
    NoReplyError,
    NoSuchInstanceError,
    OperationError,
    UnexpectedReplyError,
    WaitTimeoutError,
)
from mainspring.port.ids import plain
from mainspring.port.records import ENDED, InstanceRow

REPLY_TIMEOUT: Final = timedelta(seconds=30)
INPUTS: Final = 1_000
"""How many waiting inputs are searched for a request."""
OUTPUTS: Final = 1_000
"""How many outputs that are not carried out are searched for a reply."""


class RequestOptions(TypedDict, total=False):
    """What may be said of a request: how long to wait (30 s by default), and what may be said of any message.

    >>> options: RequestOptions = {"timeout": timedelta(seconds=5), "id": "stock-17"}
    """

    timeout: timedelta
    id: str | None
    actor: str | None
    must_exist: bool
    expected_position: int | None


class AskOptions(RequestOptions, total=False):
    """What may be said of a request to an app: also which workflow is meant, where several take the message.

    >>> options: AskOptions = {"workflow": "Stock"}
    """

    workflow: str | type[Any] | None


async def request(
    internals: Internals,
    message: Any,
    reply: Any = None,
    *,
    timeout: timedelta = REPLY_TIMEOUT,
    id: str | None = None,
    actor: str | None = None,
    must_exist: bool = False,
    expected_position: int | None = None,
    outside: bool = False,
    workflow: str | type[Any] | None = None,
) -> Any:
    """Send a message and wait for the Reply to it, which has to be an instance of `reply` if that is given."""
    engine, seconds = internals.engine, checked_seconds(timeout)
    request = engine.runtime.new_id() if id is None else checked_message_id(id)
    pending = engine.intake.sent(
        message,
        id=request,
        actor=actor,
        reply_to=f"caller:{request}",
        must_exist=must_exist,
        expected_position=expected_position,
        workflow=workflow,
        outside=outside,
    )
    future = engine.dispatcher.replies.expect(pending.ref, request)
    try:
        status = await engine.intake.answered(pending)
        if status == "dead letter":
            raise await _not_taken(engine, pending)
        # One that was sent before may have had its reply, or may never get one.
        stands = status in ("suspended", "duplicate")
        given = await _awaited(internals, engine, pending, future, seconds, stands=stands)
    finally:
        engine.dispatcher.replies.give_up(pending.ref, request, future)
    if reply is not None and not isinstance(given, reply):
        raise UnexpectedReplyError(str(pending.ref), request, given, reply)
    return given


async def _awaited(
    internals: Internals, engine: Engine, pending: Pending, future: asyncio.Future[Any], seconds: float, *, stands: bool
) -> Any:
    """Wait for a reply made here, and look now and then for one that another process made.

    That the instance `stands` still is noticed as for callers that wait for its end, by one look for all. Where it may
    stand already, a look begins.
    """
    deadline_us = engine.store.now_us() + int(seconds * 1e6)
    look, end = stands, engine.ends.end_of(pending.ref)
    try:
        while not future.done():
            # Also when time is up, raise why none comes: the look for all may not have been since the end.
            over = engine.store.now_us() >= deadline_us
            # Before the look for the reply: what is in no outbox any more by then is kept, if it was there.
            in_vain = await _in_vain(engine, pending) if stands or over else None
            if look or over:
                known, reply = await engine.dispatcher.replies.kept(pending.id, pending.ref)
                if known:
                    return reply
            if in_vain is not None:
                raise in_vain
            look = True
            if over:
                standing = await Instance[Any, Any](internals, pending.ref).standing()
                raise WaitTimeoutError(f"the reply to {pending.id}", seconds, f"{pending.ref} {standing}")
            left = max((deadline_us - engine.store.now_us()) / 1e6, 0.0)
            sleeper = asyncio.ensure_future(engine.runtime.clock.sleep(min(left, ELSEWHERE_SECONDS)))
            try:
                await asyncio.wait((future, sleeper, end), return_when=asyncio.FIRST_COMPLETED)
            finally:
                sleeper.cancel()
            # Not before it is done: the look for all is as often as those here, and would miss a caller that just left.
            if stands := end.done():
                engine.ends.forget(pending.ref, end)
                end = engine.ends.end_of(pending.ref)
    finally:
        engine.ends.forget(pending.ref, end)
    return future.result()


async def _in_vain(engine: Engine, pending: Pending) -> Exception | None:
    """Return why no reply will come; None while one may be on its way."""
    ref, store = pending.ref, engine.store
    # The inbox before the row: if the request has left it by then, the row is the one that the request has left.
    inbox = await store.inbox(ref, INPUTS)
    [loaded] = await store.load([ref], 0)
    waits = len(inbox) == INPUTS or any(plain(waiting.message_id) == pending.id for waiting in inbox)
    if loaded is None:
        return None if waits else NoSuchInstanceError(str(ref))
    if loaded.row.status not in STANDING:
        return None
    outputs = await store.outputs(ref, timers=False, limit=OUTPUTS)
    if len(outputs) == OUTPUTS or any(output.kind == "reply" for output in outputs):
        return None
    row = loaded.row
    if row.status == "suspended":
        return InstanceSuspendedError(str(ref), row.error)
    return None if waits else _ended(pending, row)  # while it waits, one may begin anew by it, or bury it


async def _not_taken(engine: Engine, pending: Pending) -> Exception:
    """Return why a request became a dead letter."""
    [loaded] = await engine.store.load([pending.ref], 0)
    if loaded is None:
        return NoSuchInstanceError(str(pending.ref))
    if loaded.row.status in ENDED:
        return _ended(pending, loaded.row)
    return OperationError(
        f"{pending.type} {pending.id}",
        f"was not taken by {pending.ref}, which is {loaded.row.status}, and is a dead letter",
        "The dead letter says why.",
    )


def _ended(pending: Pending, row: InstanceRow) -> Exception:
    if row.purged_us is not None:
        return InstancePurgedError(str(pending.ref), row.status, moment(row.purged_us))
    return NoReplyError(str(pending.ref), pending.id, row.status)


async def kept_reply(internals: Internals, id: str) -> Any:
    """Return the reply to a request, also one that came too late for its caller."""
    known, reply = await internals.engine.dispatcher.replies.kept(checked_message_id(id))
    if not known:
        raise OperationError(
            f"Request {id}",
            "has no reply that is kept",
            "It has none yet, or it came more than a day ago; the stream of the instance that was asked tells.",
        )
    return reply
