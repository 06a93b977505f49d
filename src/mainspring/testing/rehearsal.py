"""A rehearsal: one instance of a workflow on the pure core, with no store and no clock behind it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, cast

from msgspec.structs import replace

from mainspring.core import deadlines
from mainspring.core.decisions import Decision
from mainspring.core.definition import definition_of
from mainspring.core.events import (
    ENDS,
    Asked,
    ChildStarted,
    Compensated,
    Compensating,
    Completed,
    Event,
    Failed,
    FannedOut,
    Occurrence,
    Received,
    Recorded,
    Scheduled,
    Sent,
)
from mainspring.core.failures import DeadlinePassed, SendFailed
from mainspring.core.fold import fold, placed
from mainspring.core.messages import Envelope, In, Kind, Out, type_of
from mainspring.core.open_work import OpenWork
from mainspring.core.saga import ledger_of
from mainspring.core.step import Step, step
from mainspring.core.story import Entry
from mainspring.core.workflow import State, Workflow
from mainspring.errors import DefinitionError, InstanceEndedError
from mainspring.flows.calls import Call
from mainspring.flows.flow import Flow
from mainspring.purity.guarding import Method, guarded, watched
from mainspring.testing.envelopes import EPOCH, data_of, envelope


class Rehearsal(Generic[In, State, Out]):
    """Steps messages through a workflow for real, and keeps the stream that they make.

    The workflow runs under the purity guard: a decide that looks at the clock raises ImpureCallError. `guard=False`
    turns it off.

    >>> from mainspring.testing.samples import Count, Counter
    >>> rehearsal = Rehearsal(Counter())
    >>> _ = rehearsal.take(Count("c-1"))
    >>> rehearsal.state
    Counted(times=1)
    """

    def __init__(self, workflow: Workflow[In, State, Out], *, guard: bool = True) -> None:
        check_workflow(workflow, type(self).__name__)
        self._guard = guard
        self.workflow = workflow
        """The workflow under test."""
        self._definition = definition_of(type(workflow))
        self.watched = watched(workflow, self._around)
        """The workflow as it is called here: through the guard."""
        # A copy: an evolve that changes its state in place must not change the class for all other tests.
        self.state: State = copy.deepcopy(workflow.initial_state)
        """The present state."""
        self.entries: list[Entry] = []
        """The stream so far."""
        self._open = OpenWork()
        self.decisions: Sequence[Decision[In, Out]] = ()
        """What the last step decided, as decide returned it."""
        self._decided: Sequence[Decision[In, Out]] | None = None

    @property
    def position(self) -> int:
        """That of the last event, 0 before the first."""
        return len(self.entries)

    @property
    def time(self) -> datetime:
        """When the last event was recorded: at the time of its input."""
        return self.entries[-1].time or EPOCH if self.entries else EPOCH

    @property
    def events(self) -> list[Event[In, Out]]:
        """The stream so far."""
        return [cast("Event[In, Out]", entry.event) for entry in self.entries]

    @property
    def end(self) -> Completed[Out] | Failed | None:
        """The event that ended the instance, if one did."""
        last = self.entries[-1].event if self.entries else None
        return last if isinstance(last, ENDS) else None

    def live(self, word: Any) -> None:
        """Apply one item of a past: an input is stepped, an event recorded. A style may have words of its own."""
        __tracebackhide__ = True
        meant, time = self.meaning_of(word)
        if isinstance(meant, Recorded):
            self.record(cast("Event[In, Out]", meant), time)
        elif meant is not None:
            self.take(meant, time=time)

    def meaning_of(self, word: Any) -> tuple[Any, datetime | None]:
        """Return what a word of the workflow's style stands for now, and when it was, if it says so."""
        meant: Any = self.workflow.meaning_of(word, self.state)
        if not isinstance(meant, Occurrence):
            return meant, None
        at = cast("Occurrence[Any]", meant)
        return at.event, at.time

    def record(self, event: Event[In, Out], time: datetime | None = None) -> None:
        """Append an event as history, without deciding anything."""
        time = time or self.time
        self.state = fold(self.watched, self.state, placed(self._definition, [event], self.position, time))
        kind = Kind.TIMER if isinstance(event, Received) and self.was_scheduled(event.message) else None
        self._append([event], Entry(0, event, kind, time=time))

    def take(
        self,
        message: In | Envelope[In],
        *,
        kind: Kind | None = None,
        actor: str | None = None,
        reply_to: str | None = None,
        time: datetime | None = None,
        command: object = None,
    ) -> Step[In, State, Out]:
        """Take one input and return its step.

        A bare message gets an envelope with this context. One that was scheduled before counts as a timer, one that
        answers an open task as its answer. One with the `command` that it answers, the message that was sent or its
        data, is a result; a result without it answers the command that was sent, if only one was. An envelope is taken
        as it is, but for such an answer or result that does not say what it answers.

        After a Compensate, what was done is undone at once, as if every compensation succeeded.
        """
        __tracebackhide__ = True
        sealed = self.sealed(message, kind, actor, reply_to, time, command)
        if self.end is not None:
            raise InstanceEndedError(type(self.workflow).__name__, sealed.message, self.state, self.end)
        cause = self._cause(sealed)
        taken = step(self.watched, self.state, self.position, sealed, not self.entries, sealed.time, cause)
        self.state = taken.state
        decided = self._decided
        if decided is None:
            late = isinstance(sealed.message, DeadlinePassed)
            decided = deadlines.at_end(definition_of(type(self.workflow))) if late else ()
        self.decisions = decided
        input = Entry(0, taken.events[0], sealed.kind, sealed.id, sealed.time, sealed.actor, cause=cause)
        self._append(taken.events, input)
        if isinstance(taken.events[-1], Compensating):
            self._undo()
            self.decisions = decided
        return taken

    def _undo(self) -> None:
        """Undo what was done, as if every compensation succeeded, and continue with `then` if there is one."""
        ledger = ledger_of((entry.position, entry.event) for entry in self.entries)
        then = ledger.begun.then if ledger.begun is not None else None
        while onward := ledger.onward():
            for event in onward:
                self.record(cast("Event[In, Out]", event))
                ledger.take(self.position, event)
            if ledger.compensation is None:
                return
            done: Compensated[Any] = Compensated(ledger.compensation)
            self.record(done)
            ledger.take(self.position, done)
        if then is not None:
            self.take(then, kind=Kind.COMMAND)

    def sealed(
        self,
        message: In | Envelope[In],
        kind: Kind | None,
        actor: str | None,
        reply_to: str | None,
        time: datetime | None,
        command: object = None,
    ) -> Envelope[In]:
        """Return the envelope in which a message would be taken now."""
        __tracebackhide__ = True
        if isinstance(message, Envelope):
            if any(given is not None for given in (kind, actor, reply_to, time, command)):
                raise TypeError(
                    "An envelope has its own kind, actor, reply_to, time and command. "
                    "Write them there: envelope(message, …)."
                )
            sealed = cast("Envelope[In]", message)
            if sealed.kind is Kind.RESULT and sealed.command is None:
                return replace(sealed, command=self._command())
            if sealed.kind is not Kind.ANSWER or sealed.task is not None:
                return sealed
            return replace(sealed, task=self.answered(sealed.message))
        if command is None and isinstance(message, SendFailed):
            command = message.command
        if isinstance(command, Call):
            command = command.message
        if isinstance(message, SendFailed) and not message.message_id and isinstance(self.workflow, Flow):
            message = cast("In", self._addressed(message))
        if command is not None and kind is None:
            kind = Kind.RESULT
        task = self.answered(message) if kind in (None, Kind.ANSWER) else None
        if kind is None:
            kind = Kind.TIMER if self.was_scheduled(message) else Kind.ANSWER if task else Kind.COMMAND
        return envelope(
            message,
            id=f"message-{self.position + 1}",
            time=EPOCH if time is None else time,
            kind=kind,
            actor=actor,
            reply_to=reply_to,
            task=task if kind is Kind.ANSWER else None,
            command=self._command() if command is None and kind is Kind.RESULT else command,
        )

    def _command(self) -> Any:
        """Return the data of the command that a result answers, if only one was sent: of several, only tests know."""
        asked = [event for event in self.events if isinstance(event, Sent | ChildStarted | FannedOut)]
        if len(asked) != 1 or isinstance(asked[0], FannedOut) or not self._definition.wants_envelope:
            return None
        return data_of(asked[0].message)

    def _cause(self, sealed: Envelope[In]) -> int | None:
        """Return the position of the timer or task that an input answers; of the command, if only one was sent."""
        if not self._definition.wants_occurrences:
            return None
        asked = [entry.position for entry in self.entries if _answers(sealed, entry.event)]
        if sealed.kind is Kind.RESULT and isinstance(self.workflow, Flow):
            return self._called(sealed)
        return asked[-1] if asked and (sealed.kind is not Kind.RESULT or len(asked) == 1) else None

    def _addressed(self, failed: SendFailed) -> SendFailed:
        """Return a failure that says what has failed, as every real one does: the first call of that type."""
        answered = {entry.cause for entry in self.entries}
        for entry in self.entries:
            event = entry.event
            if not isinstance(event, Sent) or event.undoes is not None or entry.position in answered:
                continue
            if type_of(_message_type(event)).name == failed.type:
                return dataclasses.replace(failed, message_id=f"{self._definition.name}/1/{entry.position}")
        return failed

    def _called(self, sealed: Envelope[Any]) -> int | None:
        """Return the position of a flow's call that a result answers, if that was said; else the flow finds one."""
        answered = {entry.cause for entry in self.entries}
        asked = [entry for entry in self.entries if isinstance(entry.event, Sent | ChildStarted)]
        calls = (
            entry.position
            for entry in asked
            if entry.position not in answered and data_of(cast("Any", entry.event).message) == sealed.command
        )
        return None if sealed.command is None else next(calls, None)

    def was_scheduled(self, message: object) -> bool:
        """Return True if this very message was scheduled at some time."""
        return any(isinstance(e, Scheduled) and e.message == message for e in self.events)

    def answered(self, message: object) -> str | None:
        """Return the key of the open task that a message of this type answers, of several the first."""
        return self._open.answered(type_of(type(message)).name)

    def tasks(self) -> list[Asked]:
        """Return what was asked and is neither answered nor closed, in order."""
        return list(self._open.tasks.values())

    def waiting(self) -> list[Scheduled[In]]:
        """Return what is scheduled and neither cancelled nor fired, in order."""
        return [cast("Scheduled[In]", timer.event) for timer in self._open.timers.values()]

    def _around(self, name: str, method: Method) -> Method:
        """Return what is called instead of a method of the workflow."""
        call = guarded(f"{type(self.workflow).__name__}.{name}", method) if self._guard else method
        return self._remembered(call) if name == "decide" else call

    def _remembered(self, decide: Method) -> Method:
        def remember(*arguments: Any) -> Any:
            __tracebackhide__ = True
            self._decided = decide(*arguments)
            return self._decided

        return remember

    def _append(self, events: Sequence[Event[Any, Any]], input: Entry) -> None:
        for event in events:
            version = len(self.entries) + 1
            if event.direction == "input":
                entry = Entry(version, event, input.kind, input.message_id, input.time, input.actor, cause=input.cause)
            else:
                entry = Entry(version, event, time=input.time)
            self.entries.append(entry)
            self._open.take(entry)
            if entry.kind is Kind.TIMER and entry.cause is None:
                self._open.fire(cast("Any", event).message)


def _answers(sealed: Envelope[Any], event: Any) -> bool:
    match event:
        case Scheduled():
            return sealed.kind is Kind.TIMER and bool(cast("Any", event).message == sealed.message)
        case Asked(key):
            return sealed.kind is Kind.ANSWER and key == sealed.task
        case Sent() | ChildStarted() | FannedOut():
            return sealed.kind is Kind.RESULT
        case _:
            return False


def check_workflow(workflow: object, caller: str) -> None:
    """Raise a TypeError that says what to write when something else than a workflow's instance was given.

    A class that cannot work is a DefinitionError at once, before a test could take it for an error that it expects.

    >>> from mainspring.testing.samples import Counter
    >>> check_workflow(Counter, "given")
    Traceback (most recent call last):
    TypeError: given() needs a workflow's instance and got the class Counter. Write given(Counter(), ...).
    """
    __tracebackhide__ = True
    if isinstance(workflow, Workflow):
        try:
            definition_of(type(workflow))  # pyright: ignore[reportUnknownArgumentType]  whatever its parameters are
        except DefinitionError as error:
            # The text says it all; the way to it through the core would only bury it.
            raise error.with_traceback(None) from None
        return
    if isinstance(workflow, type):
        name = workflow.__name__
        raise TypeError(
            f"{caller}() needs a workflow's instance and got the class {name}. Write {caller}({name}(), ...)."
        )
    raise TypeError(f"{caller}() needs a workflow and got {workflow!r}. Write {caller}(MyWorkflow(), ...).")


def _message_type(event: Any) -> type[Any]:
    return cast("type[Any]", type(event.message))
