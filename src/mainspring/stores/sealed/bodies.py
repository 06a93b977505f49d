"""Records whose bodies are closed by a seal, and opened again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from mainspring.errors import ERASED_TYPE, MainspringError, StoreError, told
from mainspring.logs import logger
from mainspring.port.projections import Document
from mainspring.port.records import (
    FAN_OUT,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceRow,
    OutputClaim,
    Ref,
    Remembered,
    Snapshot,
    Unit,
)
from mainspring.port.tasks import TaskRow
from mainspring.sealing.seals import ERASED, About, Seal, is_secret
from mainspring.stores.sealed.errors import closed_error, opened_error

_log = logger(__name__)

Addressed: TypeAlias = InputRow | DeadLetter | OutputClaim
"""Records that say whose they are."""
R = TypeVar("R", bound=Addressed | EventRow | Remembered | Snapshot | Document)
A = TypeVar("A", bound=Addressed)


def about_of(workflow: str, instance: str) -> About:
    """Return whose body it is: what a fan-out holds is of the instance that fanned out, and is erased with it."""
    if workflow == FAN_OUT:
        workflow, _, rest = instance.partition("/")
        instance = rest.rpartition("/")[0]
    return About(workflow, instance)


def sealed_input(row: InputRow, seal: Seal) -> InputRow:
    """Return an input as a sealed store would keep it.

    >>> from mainspring.sealing import Compressed
    >>> sealed_input(InputRow("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}"), Compressed()).body
    b'{}'
    """
    try:
        return Bodies(seal).close(row, about_of(row.workflow, row.instance))
    except Exception as error:
        raise unsealed(Ref(row.workflow, row.instance), error) from error


def unsealed(ref: Ref, cause: Exception) -> Exception:
    """Return what to say where something cannot be closed."""
    if isinstance(cause, MainspringError):
        return cause
    error = StoreError(str(ref), f"cannot be sealed ({told(cause, 200)})", "Correct the seal's `subject`, or its keys.")
    error.__cause__ = cause
    return error


class Bodies:
    """Closes and opens records by a seal.

    >>> from mainspring.sealing import Compressed
    >>> Bodies(Compressed()).secret
    False
    """

    def __init__(self, seal: Seal) -> None:
        self._seal = seal
        self.secret = is_secret(seal)
        """Whether what errors say is sealed too, and not logged: it may quote a body."""

    # ---- in

    def close_unit(self, unit: Unit) -> Unit:
        """Return a unit with everything in it closed."""
        about = about_of(unit.workflow, unit.instance)
        changes: dict[str, Any] = {}
        if unit.events:
            changes["events"] = tuple(self.close(event, about) for event in unit.events)
        if unit.accepts:
            changes["accepts"] = self._close_addressed(unit.accepts)
        if unit.dead_letters:
            changes["dead_letters"] = self._close_addressed(unit.dead_letters)
        if unit.remembers:
            changes["remembers"] = tuple(self.close(result, About("", result.key)) for result in unit.remembers)
        if unit.snapshot is not None:
            changes["snapshot"] = self.close(unit.snapshot, about)
        if unit.error is not None:
            changes["error"] = self._close_error(unit.error, about)
        if unit.retries and unit.instance:
            changes["retries"] = tuple(replace(r, error=self._close_error(r.error, about)) for r in unit.retries)
        if unit.attempts:
            changes["attempts"] = tuple(replace(a, error=self._close_error(a.error, about)) for a in unit.attempts)
        if unit.tasks is not None and unit.tasks.opens:
            opens = tuple(replace(task, data=self._seal.close(task.data, about)) for task in unit.tasks.opens)
            changes["tasks"] = replace(unit.tasks, opens=opens)
        return replace(unit, **changes) if changes else unit

    def _close_addressed(self, records: Iterable[A]) -> tuple[A, ...]:
        return tuple(self.close(row, about_of(row.workflow, row.instance)) for row in records)

    def close(self, record: R, about: About) -> R:
        """Return a record with its body closed under the key of what it is `about`."""
        changes: dict[str, Any] = {}
        about = About(about.workflow, about.instance, record.type)
        if record.body is not None:
            changes["body"] = self._seal.close(record.body, about)
        if isinstance(record, EventRow) and record.detail is not None:
            changes["detail"] = self._seal.close(record.detail, about)
        if isinstance(record, DeadLetter):
            changes["error"] = self._close_error(record.error, about)
        return replace(record, **changes) if changes else record

    def _close_error(self, text: str | None, about: About) -> str | None:
        return text if text is None or not self.secret else closed_error(text, about, self._seal)

    # ---- out

    def open(self, record: R, about: About) -> R:
        """Return a record with its body opened by the key of what it is `about`."""
        changes: dict[str, Any] = {}
        about = About(about.workflow, about.instance, record.type)
        if record.body is not None:
            changes["body"] = self._seal.open(record.body, about)
            if changes["body"] == ERASED:
                # What was erased before it became a dead letter has that name already.
                changes["type"] = f"{ERASED_TYPE}{(record.type or '').removeprefix(ERASED_TYPE)}"
        if isinstance(record, EventRow | OutputClaim) and record.detail is not None:
            # An erased one still says that there was one: an unreadable compensation is not forgotten.
            changes["detail"] = self._seal.open(record.detail, about)
        if isinstance(record, DeadLetter | OutputClaim) and record.error is not None:
            changes["error"] = self.open_error(record.error, about)
        return replace(record, **changes) if changes else record

    def open_all(self, records: Sequence[A]) -> list[A]:
        """Return records opened."""
        return [self.open(each, about_of(each.workflow, each.instance)) for each in records]

    def open_each(self, records: Sequence[A]) -> list[A]:
        """Open what can be opened. The rest stays as it is: each fails where it is read, and no other with it."""
        return [self._open_or_keep(record) for record in records]

    def _open_or_keep(self, record: A) -> A:
        try:
            return self.open(record, about_of(record.workflow, record.instance))
        except MainspringError as error:
            _log.error("cannot be opened: %s", error)
            return record

    def open_row(self, row: InstanceRow) -> InstanceRow:
        """Return an instance's row with its error opened."""
        if row.error is None:
            return row
        return replace(row, error=self.open_error(row.error, about_of(row.workflow, row.id)))

    def open_task(self, task: TaskRow) -> TaskRow:
        """Return a task with its data opened."""
        data = self._seal.open(task.data, about_of(task.workflow, task.instance))
        return replace(task, data=b"{}" if data == ERASED else data)

    def open_held_task(self, task: TaskRow) -> TaskRow:
        """Return a task that is claimed by now: without its data, where these cannot be opened."""
        try:
            return self.open_task(task)
        except MainspringError as error:
            _log.error("cannot be opened: %s", error)
            return replace(task, data=b"{}")

    def open_error(self, stored: str | None, about: About) -> str | None:
        """Return what an error says."""
        return None if stored is None else opened_error(stored, about, self._seal)
