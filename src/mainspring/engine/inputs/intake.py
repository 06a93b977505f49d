"""Intake: a message from outside gets its envelope and its instance."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from mainspring.codec import Codec
from mainspring.core.messages import Kind
from mainspring.core.route import route
from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.pending import Answer, Pending, ReceiptStatus, read_context, read_kind
from mainspring.engine.inputs.refusals import precondition
from mainspring.engine.outputs.publication import PUBLICATION
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.engine.runtime import Runtime
from mainspring.errors import CodecError, DamagedRecordError, InvalidIdError, OperationError, WiringError
from mainspring.port.ids import MARK
from mainspring.port.records import Context, DeadLetter, InputRow, Ref
from mainspring.port.store import Store

INPUTS_IN_FLIGHT: Final = 10_000
# Of those that are sent together: then others get a turn of the event loop.
INPUTS_PER_TURN: Final = 100
# While a commit is under way. Its thread gives up the interpreter lock at each statement, and beside a loop that never
# rests it would wait a whole switch interval to get it back, every time.
REST_SECONDS: Final = 0.001
MESSAGE_ID_CHARACTERS: Final = 1_000
ACTOR_CHARACTERS: Final = 1_000
# The ideographic space, and the zero-width joiner and non-joiner.
NAME_JOINERS: Final = "\u3000\u200c\u200d"


class Envelopes:
    """Makes inputs of messages from outside. It needs no store: a process that only posts has none open."""

    def __init__(self, registry: Registry, runtime: Runtime, now_us: Callable[[], int]) -> None:
        self._registry = registry
        self._runtime = runtime
        self._now_us = now_us
        self._observer = runtime.observer

    def envelop(
        self,
        message: Any,
        entry: WorkflowEntry,
        *,
        id: str | None = None,
        kind: Kind = Kind.COMMAND,
        actor: str | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        instance: str | None = None,
        trace: str | None = None,
        outside: bool = False,
    ) -> Pending | None:
        """Return a message as an input of a workflow's instance; None if its route skips it.

        `trace` is what it carries from where it comes from, as `mainspring.telemetry.w3c` writes it. `outside` says
        that it is not the app's own code that sends it: see `mainspring.engine.inputs.outside_rule`.
        """
        instance = route(entry.workflow, message) if instance is None else instance
        if instance is None:
            return None
        checked_actor(actor)
        if correlation_id is not None:
            checked_message_id(correlation_id, "Correlation id")
        encoded = self._registry.codec.encode(message)
        message_id = self._runtime.new_id() if id is None else checked_message_id(id)
        pending = Pending(
            ref=Ref(entry.name, instance),
            message=message,
            type=encoded.name,
            type_version=encoded.version,
            body=encoded.body,
            id=message_id,
            kind=kind,
            context=Context(correlation_id or message_id, None, None, reply_to, trace, outside=outside),
            time_us=self._now_us(),
            actor=actor,
            answer=Answer(),
        )
        if self._observer is not None:
            self._observer.sending(pending)
        return pending

    def handed_over(self, pendings: list[Pending]) -> None:
        """Know that nobody here waits for inputs: they are part of somebody's transaction, and taken in later."""
        if self._observer is not None:
            for pending in pendings:
                self._observer.handed_over(pending)

    def taker(self, message: Any) -> WorkflowEntry:
        """Return the one workflow that a sent message goes to."""
        takers = self._registry.takers(message)
        name = type(message).__name__
        if not takers:
            known = ", ".join(self._registry.workflows) or "none"
            raise WiringError(
                f"No workflow takes {name}", f"Add a workflow that has it among its inputs; this app knows {known}."
            )
        if len(takers) > 1:
            raise WiringError(
                f"{name} is taken by several workflows: {', '.join(entry.name for entry in takers)}",
                "Publish it, so that each of them gets it.",
            )
        return takers[0]

    def sent(
        self,
        message: Any,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        must_exist: bool = False,
        expected_position: int | None = None,
        outside: bool = False,
    ) -> Pending:
        """Return a sent message as the input of the one workflow that takes it."""
        pending = self.envelop(
            message,
            self.taker(message),
            id=id,
            actor=actor,
            correlation_id=correlation_id,
            reply_to=reply_to,
            outside=outside,
        )
        if pending is None:
            raise OperationError(type(message).__name__, "was skipped: route returned None", "Send it elsewhere.")
        if must_exist or expected_position is not None:
            pending.requires = precondition(must_exist=must_exist, expected_position=expected_position)
        return pending

    def published(
        self,
        message: Any,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation_id: str | None = None,
        outside: bool = False,
    ) -> list[Pending]:
        """Return a published message as inputs of all that want it.

        Where functions are among them, it is the one input of the publication that brings it to everybody.
        """
        own = self._runtime.new_id() if id is None else checked_message_id(id)
        registry = self._registry
        if registry.has_subscribers(message):
            registry.add_publication()
            takers, instance = [registry.workflows[PUBLICATION]], own
        else:
            takers, instance = registry.takers(message), None
        found = (
            self.envelop(
                message,
                taker,
                id=own,
                kind=Kind.EVENT,
                actor=actor,
                correlation_id=correlation_id,
                instance=instance,
                outside=outside,
            )
            for taker in takers
        )
        return [pending for pending in found if pending is not None]


class Intake(Envelopes):
    """Makes inputs of messages and hands them to the stepper, no more at a time than memory should hold."""

    def __init__(self, store: Store, registry: Registry, runtime: Runtime, committer: Committer) -> None:
        super().__init__(registry, runtime, store.now_us)
        self._committer = committer
        self._submit: Callable[[Pending], None] = _nowhere
        self._in_flight = 0
        self._at_the_door: deque[asyncio.Future[None]] = deque()
        self._awaited: set[Answer] = set()

    def connect(self, submit: Callable[[Pending], None]) -> None:
        """Say who takes the inputs."""
        self._submit = submit

    def submit(self, pending: Pending) -> None:
        """Hand an input over."""
        self._submit(pending)

    def from_inbox(self, row: InputRow) -> Pending:
        """Return a row of the inbox as an input."""
        message, unreadable = read_message(self._registry.codec, row)
        mark, id = _split(row.message_id)
        kind, context = Kind.COMMAND, Context(id)
        try:
            kind, context = read_kind(row.kind), read_context(row.context)
        except DamagedRecordError as error:
            message, unreadable = None, error
        return Pending(
            ref=Ref(row.workflow, row.instance),
            message=message,
            type=row.type,
            type_version=row.type_version,
            body=row.body,
            id=id,
            kind=kind,
            context=context,
            time_us=row.time_us,
            mark=mark,
            actor=row.actor,
            cause=row.cause,
            position=row.position,
            timer_key=row.timer_key,
            unreadable=unreadable,
        )

    def from_dead_letter(self, letter: DeadLetter) -> Pending:
        """Return a dead letter as the input that it was."""
        if letter.workflow not in self._registry.workflows:
            raise WiringError(
                f"Dead letter {letter.id} was sent to {letter.workflow}, which is not part of this app",
                f"Use the app that has it; this one knows {', '.join(self._registry.workflows) or 'none'}.",
            )
        mark, id = _split(letter.message_id)
        return Pending(
            ref=Ref(letter.workflow, letter.instance),
            message=self._registry.codec.decode(letter.type, letter.type_version, letter.body),
            type=letter.type,
            type_version=letter.type_version,
            body=letter.body,
            id=id,
            kind=read_kind(letter.kind),
            context=read_context(letter.context),
            time_us=letter.time_us,
            mark=mark,
            actor=letter.actor,
            answer=Answer(),
            discards=(letter.id,),
        )

    async def room(self) -> None:
        """Take a place for one more input in flight. Those who wait for one get it in the order of their coming."""
        if self._in_flight < INPUTS_IN_FLIGHT:
            self._in_flight += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._at_the_door.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self.leave()  # it was given the place and cannot use it any more
            raise

    def leave(self) -> None:
        """Give a place to the next one at the door. Only that one is woken: the others would find no room."""
        while self._at_the_door:
            place = self._at_the_door.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._in_flight -= 1

    async def rest(self) -> None:
        """Let others have a turn, and the store's thread the time for a few statements if it is at a commit."""
        await asyncio.sleep(0 if self._committer.idle else REST_SECONDS)

    async def answered(self, pending: Pending) -> ReceiptStatus:
        """Submit an input and wait until it is durable. Return what became of it."""
        await self.room()
        return await self._answer(self._enter(pending))

    async def all_answered(self, pendings: Sequence[Pending]) -> None:
        """Submit inputs and wait until each is durable or failed; then the first that failed tells why."""
        first: Exception | None = None

        def note(outcome: ReceiptStatus | Exception) -> None:
            nonlocal first
            if first is None and isinstance(outcome, Exception):
                first = outcome

        await self._answers(pendings, note)
        if first is not None:
            raise first

    async def each_answered(self, pendings: Sequence[Pending]) -> list[ReceiptStatus | Exception]:
        """Submit inputs in their order and wait until each is durable. Return what became of each, or why it failed."""
        outcomes: list[ReceiptStatus | Exception] = []
        await self._answers(pendings, outcomes.append)
        return outcomes

    async def _answers(self, pendings: Sequence[Pending], take: Callable[[ReceiptStatus | Exception], None]) -> None:
        """Submit inputs in their order, and give away what became of each: nobody holds more than are in flight."""
        entered: deque[Answer] = deque()
        try:
            for number, pending in enumerate(pendings, 1):
                # Whoever waited at the door while it has places could wait for itself.
                while entered and self._in_flight >= INPUTS_IN_FLIGHT:
                    take(await self._outcome(entered.popleft()))
                if self._in_flight < INPUTS_IN_FLIGHT:
                    self._in_flight += 1
                else:
                    await self.room()
                entered.append(self._enter(pending))
                if number % INPUTS_PER_TURN == 0:
                    await self.rest()
            while entered:
                take(await self._outcome(entered.popleft()))
        finally:
            for answer in entered:
                self._left(answer)

    def give_up(self, error: Exception) -> None:
        """Let nobody wait any longer for what became of an input: nobody here will hear of it."""
        for answer in self._awaited:
            if answer.status == "pending" and answer.error is None:
                answer.fail(error)

    async def _outcome(self, answer: Answer) -> ReceiptStatus | Exception:
        try:
            return await answer.wait()
        except Exception as error:  # noqa: BLE001  it is what became of the input
            return error
        finally:
            self._left(answer)

    def _enter(self, pending: Pending) -> Answer:
        answer = pending.answer = pending.answer or Answer()
        try:
            self._submit(pending)
        except BaseException:
            self.leave()
            raise
        self._awaited.add(answer)
        return answer

    async def _answer(self, answer: Answer) -> ReceiptStatus:
        try:
            return await answer.wait()
        finally:
            self._left(answer)

    def _left(self, answer: Answer) -> None:
        """Wait no longer for an input that was handed over."""
        self._awaited.discard(answer)
        self.leave()
        if self._observer is not None:
            self._observer.sent(answer)


def read_message(codec: Codec, row: InputRow) -> tuple[Any, Exception | None]:
    """Return a row's message, or why it cannot be read."""
    try:
        return codec.decode(row.type, row.type_version, row.body), None
    except CodecError as error:
        return None, error


def _split(stored: str) -> tuple[str, str]:
    """Return the mark of a stored id, if it has one, and the id."""
    return (MARK, stored[1:]) if stored[:1] == MARK else ("", stored)


def checked_message_id(id: object, what: str = "Message id") -> str:
    """Return a message's id as it came, if it can be one.

    >>> checked_message_id("order-1")
    'order-1'
    """
    if not isinstance(id, str) or not 0 < len(id) <= MESSAGE_ID_CHARACTERS or not id.isprintable():
        raise InvalidIdError(
            id, "cannot be stored or shown safely", f"Use 1 to {MESSAGE_ID_CHARACTERS:,} visible characters.", what=what
        )
    return id


def is_name(text: object) -> bool:
    r"""Tell whether a text can name a person: visible, and with what names of some languages are joined by.

    >>> is_name("山田\u3000太郎"), is_name("a\nb"), is_name("")
    (True, False, False)
    """
    if not isinstance(text, str) or not 0 < len(text) <= ACTOR_CHARACTERS:
        return False
    return text.isprintable() or all(c.isprintable() or c in NAME_JOINERS for c in text)


def checked_actor(actor: object) -> str | None:
    """Return who acts, if that can be recorded; None says that nobody was named.

    >>> checked_actor("ann")
    'ann'
    """
    if actor is None:
        return None
    if not isinstance(actor, str) or not is_name(actor):
        fix = f"Use 1 to {ACTOR_CHARACTERS:,} visible characters, or None."
        raise InvalidIdError(actor, "cannot be recorded", fix, what="Actor")
    return actor


def _nowhere(_: Pending) -> None:
    raise WiringError("Nothing steps yet", "Start the engine first.")
