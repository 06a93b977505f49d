"""Requests: a message from outside whose Reply is awaited, and replies that came when nobody waited any more."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from mainspring.app.given import checked_seconds
from mainspring.app.instance import Instance
from mainspring.engine.engine import Engine
from mainspring.engine.intake import checked_message_id
from mainspring.engine.pending import Pending
from mainspring.engine.waiting import ELSEWHERE_SECONDS
from mainspring.errors import InstanceSuspendedError, OperationError, WaitTimeoutError
from mainspring.port.ids import plain

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring

REPLY_TIMEOUT: Final = timedelta(seconds=30)
INPUTS: Final = 1_000
"""So many inputs that wait are looked through for a request."""


async def request(
    app: Mainspring, message: Any, timeout: timedelta, id: str | None, actor: str | None, *, outside: bool = False
) -> Any:
    """Send a message and wait for the Reply to it."""
    engine, seconds = app.engine, checked_seconds(timeout)
    request = engine.runtime.new_id() if id is None else checked_message_id(id)
    pending = engine.intake.envelop(
        message,
        engine.intake.taker(message),
        id=request,
        actor=actor,
        reply_to=f"caller:{request}",
        outside=outside,
    )
    if pending is None:
        raise OperationError(type(message).__name__, "was skipped: route returned None", "Send it elsewhere.")
    future = engine.dispatcher.replies.expect(pending.ref, request)
    try:
        status = await engine.intake.answered(pending)
        if status == "dead letter":
            raise OperationError(
                f"{pending.type} {request}",
                f"was not taken by {pending.ref} and is a dead letter",
                "Begin the instance first; the dead letter says why.",
            )
        await _refuse_suspended(engine, pending, status)
        return await _awaited(app, engine, pending, future, seconds, look=status == "duplicate")
    finally:
        engine.dispatcher.replies.give_up(pending.ref, request, future)


async def _awaited(
    app: Mainspring,
    engine: Engine,
    pending: Pending,
    future: asyncio.Future[Any],
    seconds: float,
    *,
    look: bool,
) -> Any:
    """Wait for a reply made here, and look now and then for one that another process made; `look` begins so.

    That the instance is suspended is heard as by whoever waits for its end, in one look for all.
    """
    deadline_us = engine.store.now_us() + int(seconds * 1e6)
    while not future.done():
        if look:
            known, reply = await engine.dispatcher.replies.kept(pending.id, pending.ref)
            if known:
                return reply
        look = True
        left = (deadline_us - engine.store.now_us()) / 1e6
        if left <= 0:
            standing = await Instance[Any, Any, Any](app, pending.ref).standing()
            raise WaitTimeoutError(f"the reply to {pending.id}", seconds, f"{pending.ref} {standing}")
        sleeper = asyncio.ensure_future(engine.runtime.clock.sleep(min(left, ELSEWHERE_SECONDS)))
        end = engine.end_of(pending.ref)
        try:
            await asyncio.wait((future, sleeper, end), return_when=asyncio.FIRST_COMPLETED)
            if end.done() and not future.done():
                await _refuse_suspended(engine, pending)
                await asyncio.wait((future, sleeper), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            engine.forget_end_of(pending.ref, end)
    return future.result()


async def _refuse_suspended(engine: Engine, pending: Pending, status: str = "") -> None:
    """Let nobody wait for a reply of an instance that is suspended before it has taken the request."""
    [loaded] = await engine.store.load([pending.ref], 0) if status in ("", "suspended") else [None]
    if loaded is None or loaded.row.status != "suspended":
        return
    if status or any(plain(row.message_id) == pending.id for row in await engine.store.inbox(pending.ref, INPUTS)):
        raise InstanceSuspendedError(str(pending.ref), loaded.row.error)


async def kept_reply(app: Mainspring, id: str) -> Any:
    """Return the reply to a request, also one that came too late for whoever asked."""
    known, reply = await app.engine.dispatcher.replies.kept(checked_message_id(id))
    if not known:
        raise OperationError(
            f"Request {id}",
            "has no reply that is kept",
            "It has none yet, or it came more than a day ago; the stream of the instance that was asked tells.",
        )
    return reply
