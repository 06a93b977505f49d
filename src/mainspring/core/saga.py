"""Sagas: what was done and how it is undone. A ledger is read off a stream; what comes next follows from it alone.

Send(x, compensate=y)     arms y: it stands in the stream beside x
a definite failure of x   drops y: x did not happen. Any other end of x, known or not, leaves y armed
another try at x          arms y again: an operator retried or corrected x, or went back to before it had failed
Compensate(reason)        ends the forward part; from here on the ledger says what comes next:
                          the youngest armed y is sent, its end recorded, then the one before it, …
                          and when none is left: Failed, Cancelled, or the message `then`
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from datetime import datetime
from typing import Any, Final, cast

from mainspring.core.definition import definition_of
from mainspring.core.events import (
    Began,
    Cancelled,
    Compensated,
    Compensating,
    Event,
    Failed,
    Kept,
    Received,
    Resent,
    Reset,
    Resumed,
    Retried,
    Sent,
    StreamEvent,
    Suspended,
)
from mainspring.core.failures import SendFailed
from mainspring.core.fold import fold, placed
from mainspring.core.messages import type_of
from mainspring.core.step import Step
from mainspring.core.workflow import Workflow

NAMED: Final = 20


class Ledger:
    """The compensations of an instance that are armed, by the version of what they undo, and how far it has come.

    `undoing` is the version that is being undone, `under` that of the compensation's own Sent; it is `stuck` when that
    failed for good. `undone` says at which version each step was; `dropped` are compensations of what did not happen,
    with the version that says so.

    >>> ledger = ledger_of([(3, Sent("book", compensate="cancel")), (5, Compensating("no car"))])
    >>> ledger.onward()
    [Sent(message='cancel', undoes=3)]
    """

    __slots__ = ("armed", "begun", "begun_at", "dropped", "stuck", "under", "undoing", "undone", "version")

    def __init__(self) -> None:
        self.armed: dict[int, Any] = {}
        self.begun: Compensating[Any] | None = None
        self.begun_at = 0
        self.undoing: int | None = None
        self.under: int | None = None
        self.stuck = False
        self.undone: dict[int, int] = {}
        self.dropped: dict[int, tuple[int, Any]] = {}
        self.version = 0

    def take(self, version: int, event: StreamEvent[Any, Any]) -> None:
        """Take in the next event of the stream."""
        self.version = version
        match event:
            case Sent(_, compensation, undoes):
                if compensation is not None:
                    self.armed[version] = compensation
                if undoes is not None:
                    self.undoing, self.under = undoes, version
            case Resent(_, compensation) if compensation is not None:
                self.armed[version] = compensation
            case Received(SendFailed(message_id=id, definite=True)) | Kept(SendFailed(message_id=id, definite=True)):
                self._drop(_version_in(id))
            case Suspended(failed=failed) if failed is not None:
                if failed == self.under:
                    self.stuck = True
                else:
                    self._drop(failed)
            case Resumed():
                self.stuck = False
            case Compensating():
                self.begun, self.begun_at = event, version
            case Compensated():
                if self.undoing is not None and self.under is not None:
                    del self.armed[self.undoing]
                    # The compensation too: a skipped one may have left a dead letter.
                    self.undone[self.undoing] = self.undone[self.under] = version
                self.undoing = self.under = None
                self.stuck = False
            case Retried(failed):
                self._try_again(failed)
            case Began():
                self.armed.clear()
                self.dropped.clear()
                self.go_on()
            case Reset(back_to):
                # What was done in the part that is left behind was done all the same: it stays armed. What failed
                # there, and was sent before it, is tried once more.
                for failed in [step for step, (at, _) in self.dropped.items() if step <= back_to < at]:
                    self._try_again(failed)
                self.go_on()
            case _:
                pass
        if isinstance(event, Received):
            self.go_on()

    def copy(self) -> Ledger:
        """Return a copy that can continue independently.

        >>> first = ledger_of([(3, Sent("book", compensate="cancel"))])
        >>> first.copy().take(4, Began())
        >>> first.version, first.remaining()
        (3, ['cancel'])
        """
        twin = copy(self)
        twin.armed, twin.undone, twin.dropped = dict(self.armed), dict(self.undone), dict(self.dropped)
        return twin

    def go_on(self) -> None:
        """Note that the instance goes forward: nothing is being undone."""
        self.begun = self.undoing = self.under = None
        self.stuck = False

    @property
    def reason(self) -> str | None:
        """Why it is undone."""
        return None if self.begun is None else self.begun.reason

    @property
    def compensation(self) -> Any:
        """The compensation that is being carried out, None if there is none."""
        return None if self.undoing is None else self.armed[self.undoing]

    @property
    def active(self) -> bool:
        """Whether something is being undone."""
        return self.begun is not None and bool(self.armed)

    def remaining(self) -> list[Any]:
        """Return the armed compensations in the order in which they are sent."""
        return list(reversed(self.armed.values()))

    def names(self) -> list[str]:
        """Return the names of what remains to be undone, bounded."""
        found = [type_of(cast("type[Any]", type(compensation))).name for compensation in self.remaining()]
        return found if len(found) <= NAMED else [*found[:NAMED], f"and {len(found) - NAMED} more"]

    def onward(self) -> list[Event[Any, Any] | Cancelled]:
        """Return what is to be recorded next: a compensation, or the end. Nothing, where the instance continues."""
        if self.begun is None:
            return []
        if self.armed:
            version = next(reversed(self.armed))  # the latest: they were armed in the order of their versions
            return [Sent(self.armed[version], undoes=version)]
        if self.begun.cancelled:
            return [Cancelled(self.begun.reason)]
        return [] if self.begun.then is not None else [Failed(self.begun.reason)]

    def _drop(self, version: int) -> None:
        # What is being undone already stays: its compensation is on its way.
        if version != self.undoing and version in self.armed:
            self.dropped[version] = (self.version, self.armed.pop(version))

    def _try_again(self, version: int) -> None:
        # What had not happened may happen after all.
        if version in self.dropped:
            self.armed[version] = self.dropped.pop(version)[1]
            self.armed = dict(sorted(self.armed.items()))  # the latest is undone first


def ledger_of(stream: Iterable[tuple[int, StreamEvent[Any, Any]]]) -> Ledger:
    """Return the ledger of a stream, given as versions and events.

    >>> failed = SendFailed("Book", "Trip/t-1/3", "full", 1, definite=True)
    >>> ledger_of([(3, Sent("book", compensate="cancel")), (4, Received(failed))]).remaining()
    []
    """
    ledger = Ledger()
    for version, event in stream:
        ledger.take(version, event)
    return ledger


def advanced(
    workflow: Workflow[Any, Any, Any], ledger: Ledger, taken: Step[Any, Any, Any], now: datetime | None = None
) -> Step[Any, Any, Any]:
    """Return a step with what follows from it for the saga: a compensation, or the end. The ledger takes all of it in.

    >>> from mainspring.testing.samples import Counter
    >>> taken = Step([Received("x"), Compensating("no car")], Counter.initial_state, 4)
    >>> advanced(Counter(), ledger_of([]), taken).events[-1]
    Failed(reason='no car')
    """
    for version, event in enumerate(taken.events, taken.version - len(taken.events) + 1):
        ledger.take(version, event)
    onward: Any = ledger.onward()
    for version, event in enumerate(onward, taken.version + 1):
        ledger.take(version, event)
    seen = placed(definition_of(type(workflow)), onward, taken.version, now)
    state = fold(workflow, taken.state, seen)
    return Step([*taken.events, *onward], state, taken.version + len(onward))


def _version_in(message_id: str) -> int:
    """Return the version at which a message was recorded, from its id; 0 if that says none."""
    version = message_id.rpartition("/")[2]
    return int(version) if version.isascii() and version.isdigit() else 0
