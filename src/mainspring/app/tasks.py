"""People: the tasks that workflows ask them, and what they do with them. Reached as `app.tasks`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import MsgspecError, to_builtins
from msgspec.structs import replace

from mainspring.app.forms import filled, forms_of
from mainspring.app.given import LARGEST, checked_limit, checked_text, checked_texts, optional_text
from mainspring.app.internals import Internals
from mainspring.app.task_views import data_of, task_of
from mainspring.core.messages import Kind, type_of
from mainspring.engine.inputs.pending import Pending, ReceiptStatus
from mainspring.engine.inputs.senders import ACTOR_CHARACTERS, is_name
from mainspring.engine.inputs.stored_streams import pinned
from mainspring.engine.recording.stored_values import moment, read_context
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import (
    DamagedRecordError,
    EncodeError,
    InvalidIdError,
    NoSuchTaskError,
    OperationError,
    RouteError,
    TaskRefusedError,
    shown,
)
from mainspring.logs import logger
from mainspring.port.ids import MARK, plain
from mainspring.port.pages import Page
from mainspring.port.records import Context, DeadLetter, EventRow, InputRow, Ref
from mainspring.port.tasks import Hand, Refused, TaskAnswer, TaskFilter, TaskRow
from mainspring.views import Form, Task, TaskOutcome

# Said here, because inside the class `list` is the method.
TaskList: TypeAlias = list[Task]
FormList: TypeAlias = list[Form]

PAGE: Final = 100
MOST_PICKED: Final = 1_000
EVENTS_PER_READ: Final = 1_000
INPUTS_PER_READ: Final = 1_000
LETTERS_PER_READ: Final = 1_000
# How many are searched for an answer that became one; there are few as a rule, and operators see to them.
LETTERS_LOOKED_AT: Final = 10_000

PASSED_OVER: Final = ("Skipped", "AnswerRefused")

log = logger("mainspring.tasks")


class Tasks:
    """What people are asked to do. A task's id is the text `workflow/instance/position`.

    Who acts is for the caller to know: `actor` is the signed-in person, `roles` are theirs at this moment. Both are
    checked against the task inside the transaction that changes it.

    >>> import asyncio
    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Leave, LeaveRequests, RequestLeave
    >>> app = Mainspring("memory://")
    >>> app.add(LeaveRequests())
    >>> async def main() -> None:
    ...     async with app:
    ...         await app.send(RequestLeave("l-1"), actor="ann")
    ...         (task,) = await app.tasks.list(role="manager", person="bob")
    ...         first = await app.tasks.complete(task.id, Leave("l-1", granted=True), actor="bob", roles=["manager"])
    ...         again = await app.tasks.complete(task.id, Leave("l-1", granted=False), actor="bob", roles=["manager"])
    ...         print(task.id, first.first, again.first, again.message)
    >>> asyncio.run(main())
    LeaveRequests/l-1/3 True False Leave(leave_id='l-1', granted=True)
    """

    def __init__(self, internals: Internals) -> None:
        self._internals = internals

    # ---- looking

    async def list(
        self,
        *,
        role: str | Iterable[str] = (),
        person: str | None = None,
        workflow: str | None = None,
        overdue: bool = False,
        limit: int = PAGE,
        after: str | None = None,
    ) -> TaskList:
        """Return open tasks, the next due first, then those of older instances; `after` is the last one seen.

        `role` (one or several) and `person` say who looks: they see what was asked of them. A person does not see what
        excludes them or what another person holds. Without either, all open tasks are listed.
        """
        store = self._internals.engine.store
        now_us = store.now_us()
        where = TaskFilter(
            checked_texts("role", role),
            optional_text("person", person),
            optional_text("workflow", workflow),
            now_us if overdue else None,
        )
        spot = None if after is None else _spot(after)
        if after is not None:
            await self._row(after)  # raises for an unknown task: an empty page behind it would mislead
        page = Page[TaskRow, Task](checked_limit(limit), lambda row: _readable(row, now_us))
        while page.wants:
            page.take(await store.tasks(where, page.wants, spot))
            if page.last is not None:
                spot = (Ref(page.last.workflow, page.last.instance), page.last.version)
        return page.records

    async def get(self, id: str) -> Task:
        """Return a task, open or not."""
        return task_of(await self._row(id), self._internals.engine.store.now_us())

    async def forms(self, id: str) -> FormList:
        """Return the forms of a task: for each type that answers it, its fields, with what is known filled in."""
        row = await self._row(id)
        return forms_of(self._answers(row), data_of(row), row.reject)

    # ---- claiming

    async def claim(self, id: str, *, actor: str, roles: Iterable[str] = ()) -> Task:
        """Claim a task, so that no other person can. Claiming it again is no error."""
        return await self._hand(id, Hand("claim", _actor(actor), checked_texts("roles", roles)))

    async def release(self, id: str, *, actor: str | None = None) -> Task:
        """Give a task back to all who were asked. Without an actor, an operator does it for its holder."""
        return await self._hand(id, Hand("release", None if actor is None else _actor(actor)))

    async def delegate(self, id: str, to: str, *, actor: str | None = None, roles: Iterable[str] = ()) -> Task:
        """Give a task to one person, who may then answer it whatever their roles. An excluded person stays excluded."""
        by = None if actor is None else _actor(actor)
        return await self._hand(id, Hand("delegate", by, checked_texts("roles", roles), _actor(to)))

    async def pick(self, role: str, count: int = 1, *, actor: str) -> TaskList:
        """Claim the next unclaimed tasks of a role: of many who pick at once, no two get the same."""
        store = self._internals.engine.store
        if type(count) is not int or not 0 < count <= MOST_PICKED:
            raise OperationError("pick", f"was asked for {shown(count, 40)} tasks", f"Use 1 to {MOST_PICKED:,}.")
        rows = await store.pick(checked_text("role", role), _actor(actor), count)
        return [task for row in rows if (task := _readable(row, store.now_us())) is not None]

    # ---- answering

    async def complete(
        self, id: str, answer: object, fields: Mapping[str, Any] | None = None, *, actor: str, roles: Iterable[str] = ()
    ) -> TaskOutcome:
        """Answer a task, and return its outcome when that is durable.

        `answer` is a message, or the name of its type with the form's `fields`. It goes to the instance that asked, and
        one for which `route` names another instance is refused. Of many answers one wins: the others change nothing,
        and get the outcome of the first: `duplicate`, or `accepted` while that waits to be taken, and may be refused.
        One that the workflow refuses is a TaskRefusedError with its reason.
        """
        row = await self._row(id)
        message = self._message(row, answer, fields) if isinstance(answer, str) else answer
        await self._check_answer(row, message)
        if row.status != "open":
            return await self._outcome_of_first(row, actor)
        pending = self._pending(row, message, TaskAnswer(row.version, _actor(actor), checked_texts("roles", roles), ""))
        try:
            status = await self._internals.engine.intake.answered(pending)
        except TaskRefusedError as refused:
            if refused.reason != "answered":
                raise
            return await self._outcome_of_first(await self._row(id), actor)
        if status == "refused":
            raise TaskRefusedError(id, "guard", actor, pending.refusal or "")
        row = await self._row(id)
        if status == "duplicate":  # another process took the very same answer before
            return await self._outcome_of_first(row, actor)
        # Its answer may have been skipped meanwhile, and the task answered anew: not all that was read is its own.
        return replace(_outcome(row, status, message, first=True), answered_by=actor, answer=pending.type)

    async def reject(
        self, id: str, reason: str, *, actor: str, roles: Iterable[str] = (), fields: Mapping[str, Any] | None = None
    ) -> TaskOutcome:
        """Reject a task: answer with the type that its Ask named as `reject`, with the reason in its field `reason`."""
        row = await self._row(id)
        if row.reject is None:
            choice = " or ".join(row.answers)
            raise TaskRefusedError(id, "answer", actor, f"has no answer that means no; it is answered by {choice}")
        takes_reason = any(field.name == "reason" for field in self._form(row, row.reject).fields)
        given = {**({"reason": reason} if takes_reason else {}), **(fields or {})}
        return await self.complete(id, row.reject, given, actor=actor, roles=roles)

    def _pending(self, row: TaskRow, message: Any, answer: TaskAnswer) -> Pending:
        intake = self._internals.engine.intake
        envelope = intake.envelop(
            message, self._entry(row), id=_answer_id(row), kind=Kind.ANSWER, actor=answer.actor, instance=row.instance
        )
        assert envelope is not None  # noqa: S101  it was given its instance
        begun = read_context(row.context)
        trace = envelope.context.trace or begun.trace
        envelope.mark = MARK
        envelope.context = Context(begun.correlation_id, str(row), trace=trace, task=row.key)
        envelope.task_answer = replace(answer, type=envelope.type)
        return envelope

    async def _outcome_of_first(self, row: TaskRow, actor: str | None) -> TaskOutcome:
        if row.status != "answered":
            raise TaskRefusedError(str(row), row.status, actor)
        engine = self._internals.engine
        # The inbox first: it goes from there to the stream, and must not be missed on its way.
        for input in await engine.store.inbox(Ref(row.workflow, row.instance), INPUTS_PER_READ):
            if _is_answer(row, input):
                waits = engine.registry.codec.decode(input.type, input.type_version, input.body)
                return _outcome(row, "accepted", waits, first=False)
        return _outcome(row, "duplicate", await self._given(row), first=False)

    async def _given(self, row: TaskRow) -> Any:
        """Return the message that answered a task, from the stream.

        Where its instance ended before, it is a dead letter. None: that was discarded, or there are too many of them.
        """
        engine, ref = self._internals.engine, Ref(row.workflow, row.instance)
        after = row.version
        while events := await engine.store.stream(ref, after, EVENTS_PER_READ):
            for event in events:
                if _is_answer(row, event) and event.type is not None and event.event not in PASSED_OVER:
                    return engine.registry.codec.decode(event.type, event.type_version, event.body or b"")
            after = events[-1].version
        return await self._buried(row)

    async def _buried(self, row: TaskRow) -> Any:
        """Return an answer that came too late for its instance, from among the dead letters."""
        engine, own, after = self._internals.engine, (row.workflow, row.instance), 0
        for _ in range(LETTERS_LOOKED_AT // LETTERS_PER_READ):
            letters = await engine.store.dead_letters(LETTERS_PER_READ, after)
            for letter in letters:
                if (letter.workflow, letter.instance) == own and _is_answer(row, letter):
                    return engine.registry.codec.decode(letter.type, letter.type_version, letter.body)
            if len(letters) < LETTERS_PER_READ:
                break
            after = letters[-1].id
        return None

    # ---- what answers a task

    def _answers(self, row: TaskRow) -> Sequence[type[Any]]:
        """Return the types that answer a task, also those that were renamed since."""
        known: dict[str, type[Any]] = {}
        for cls in self._entry(row).definition.inputs:
            known |= dict.fromkeys((type_of(cls).name, *type_of(cls).aliases), cls)
        return [known[name] for name in row.answers if name in known]

    def _form(self, row: TaskRow, name: str) -> Form:
        for form in forms_of(self._answers(row), data_of(row), row.reject):
            if form.answer == name:
                return form
        problem = f"is not answered by {name}, but by {' or '.join(row.answers)}"
        raise TaskRefusedError(str(row), "answer", None, problem)

    def _message(self, row: TaskRow, name: str, fields: Mapping[str, Any] | None) -> Any:
        form = self._form(row, name)
        try:
            given = json.dumps(to_builtins(filled(form, fields or {})), allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError, MsgspecError) as error:
            raise EncodeError(
                name, f"its fields are no JSON ({error})", "Use texts, numbers, booleans or None."
            ) from None
        return self._internals.engine.registry.codec.decode_outside(name, form.message_version, given)

    async def _check_answer(self, row: TaskRow, message: object) -> None:
        if type(message) not in self._answers(row):
            choice = " or ".join(row.answers)
            problem = f"is not answered by {type(message).__name__}, but by {choice}"
            raise TaskRefusedError(str(row), "answer", None, problem)
        named = await self._named(row, message)
        if named not in (None, row.instance):
            problem = f"was asked by {shown(row.instance, 100)}, and this answer names {shown(named, 100)}"
            raise TaskRefusedError(str(row), "instance", None, problem)

    async def _named(self, row: TaskRow, message: object) -> str | None:
        """Return the instance that an answer is for by its own words; one that cannot be routed says nothing."""
        entry: WorkflowEntry | None = self._entry(row)
        if len(entry.versions) > 1:  # each may route otherwise, and the instance runs under one of them
            (loaded,) = await self._internals.engine.store.load([Ref(row.workflow, row.instance)], 0)
            entry = pinned(entry, loaded)
        try:
            return None if entry is None else entry.route(message)
        except (RouteError, InvalidIdError):
            return None

    def _entry(self, row: TaskRow) -> WorkflowEntry:
        entry = self._internals.engine.registry.workflows.get(row.workflow)
        if entry is None:
            raise NoSuchTaskError(str(row))
        return entry

    async def _hand(self, id: str, hand: Hand) -> Task:
        store = self._internals.engine.store
        row = await store.hand(*_spot(id), hand)
        if not isinstance(row, Refused):
            return task_of(row, store.now_us())
        if row.reason == "missing":
            raise NoSuchTaskError(id)
        raise TaskRefusedError(id, row.reason, hand.to if row.reason == "excluded" and hand.to else hand.actor)

    async def _row(self, id: str) -> TaskRow:
        row = await self._internals.engine.store.task(*_spot(id))
        if row is None:
            raise NoSuchTaskError(id)
        return row


def _answer_id(row: TaskRow) -> str:
    """Return the id of the message that answers a task: another after one was passed over."""
    return f"{row}/answer" if row.ended_us is None else f"{row}/answer/{row.ended_us}"


def _is_answer(row: TaskRow, given: InputRow | EventRow | DeadLetter) -> bool:
    """Return True if a message answered a task. Its id alone does not say so: a caller may choose such an id."""
    id = plain(given.message_id or "")
    return given.kind == Kind.ANSWER and (id == f"{row}/answer" or id.startswith(f"{row}/answer/"))


def _readable(row: TaskRow, now_us: int) -> Task | None:
    try:
        return task_of(row, now_us)
    except DamagedRecordError as error:
        log.error("task %s is left out of a list: %s", row, error)  # noqa: TRY400  one must not hide the others; it says all
        return None


def _spot(id: str) -> tuple[Ref, int]:
    if not isinstance(id, str) or not id.isprintable():  # pyright: ignore[reportUnnecessaryIsInstance]  it may come from anywhere
        raise NoSuchTaskError(shown(id, 80))
    workflow, _, rest = id.partition("/")
    instance, _, version = rest.rpartition("/")
    # Before it is read as a number: the digits may be thousands.
    is_number = version.isascii() and version.isdigit() and len(version) <= len(str(LARGEST))
    if not instance or not is_number or int(version) > LARGEST:
        raise NoSuchTaskError(shown(id, 1_100))
    return Ref(workflow, instance), int(version)


def _outcome(row: TaskRow, status: ReceiptStatus, message: Any, *, first: bool) -> TaskOutcome:
    return TaskOutcome(
        id=str(row),
        first=first,
        status=status,
        answered_by=row.answered_by or "",
        answered_at=moment(row.ended_us or 0),
        answer=row.answer_type or "",
        message=message,
    )


def _actor(actor: object) -> str:
    if not isinstance(actor, str) or not is_name(actor):
        fix = f"Use 1 to {ACTOR_CHARACTERS:,} visible characters."
        raise OperationError("A task", f"needs a person, not {shown(actor, 100)}", fix)
    return actor
