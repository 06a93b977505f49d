"""The state of an instance at a position, or why there is none to be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from mainspring.app.internals import internals_of
from mainspring.engine.inputs.long_streams import state_by, state_of
from mainspring.engine.inputs.stored_streams import pinned, refuse_unkept, trusted, whole_stream
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import OperationError
from mainspring.port.records import Loaded, Ref
from mainspring.views import StateInfo

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring


class State(Struct, frozen=True):
    """A state as it is shown: the value and its stored form, or why there is none."""

    position: int
    value: Any = None
    type: str | None = None
    body: bytes = b"null"
    problem: str | None = None

    def view(self) -> StateInfo:
        """Return it with the state's JSON."""
        return StateInfo(self.position, self.type, Raw(self.body), self.problem)


def checked_version(loaded: Loaded, at: int | None) -> int:
    """Return the position that is asked for, if the instance has it; the present one without."""
    row = loaded.row
    if at is not None and at > row.version:
        raise OperationError(f"{row.workflow}/{row.id}", f"has no position {at}", f"It is at position {row.version}.")
    if at is not None:
        refuse_unkept(loaded, f"cannot be shown at position {at}")
    return at or row.version


async def state_at(app: Mainspring, loaded: Loaded, at: int | None) -> State:
    """Return the state at a position, or why it cannot be had: a broken stream must still be shown."""
    ref, end = Ref(loaded.row.workflow, loaded.row.id), checked_version(loaded, at)
    entry = entry_of(app, loaded)
    if entry is None:
        which = f"{ref.workflow} of version {loaded.row.definition_version} or newer"
        return State(end, problem=f"this app has no workflow {which}")
    store = internals_of(app).engine.store
    try:
        if at is None:
            whole = await trusted(store, entry, loaded)
            value = state_of(entry, whole or loaded)[0]
        else:
            rows = [row for row in await whole_stream(store, ref) if row.version <= end]
            value = state_by(entry, ref, rows)
        stored = entry.recorder.snapshot(value, end, entry.fingerprint)
    except Exception as error:  # noqa: BLE001  an author's evolve may raise anything
        return State(end, problem=f"the stream cannot be folded: {type(error).__name__}: {error}")
    return State(end, value, stored.type, stored.body)


def entry_of(app: Mainspring, loaded: Loaded) -> WorkflowEntry | None:
    """Return the workflow of an instance, in the version under which it runs, if this app has it."""
    known = internals_of(app).registry.workflows.get(loaded.row.workflow)
    return None if known is None else pinned(known, loaded)
