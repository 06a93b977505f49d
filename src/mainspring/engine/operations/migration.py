"""Migration: an instance continues under another version of its definition, if that can read all that is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from mainspring.core.events import Migrated
from mainspring.core.messages import type_of
from mainspring.engine.inputs.branches import branches, live
from mainspring.engine.inputs.long_streams import state_by
from mainspring.engine.inputs.stored_streams import refuse_unkept, whole_stream
from mainspring.engine.recording.children import CHILDREN_MARK, has_children
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.stepping.open_tasks import still_open
from mainspring.errors import CodecError, OperationError
from mainspring.flows.flow import flow_of
from mainspring.port.records import ENDED, EventRow, InputRow, InstanceRow, Loaded, OutputClaim, Ref, Snapshot, Unit
from mainspring.port.store import Store

WAITING: Final = 10_000


class Migration(Struct, frozen=True):
    """An instance that may migrate, with its state under the version that it goes to.

    `snapshot` saves the next load from reading the whole stream, for a snapshot of the old version is not trusted.
    """

    row: InstanceRow
    entry: WorkflowEntry
    state: Any
    snapshot: Snapshot | None

    def unit(self, actor: str, now_us: int) -> Unit:
        """Return what records it."""
        row, version = self.row, self.entry.version
        return Unit(
            row.workflow,
            row.id,
            key=row.key,
            expected_version=row.version,
            events=(self.entry.recorder.row(Migrated(version), row.version + 1, now_us, actor),),
            status=row.status,
            state=self.entry.definition.states[type(self.state)],
            error=row.error,
            definition_version=version,
            context=row.context,
            renews=True,
            snapshot=self.snapshot,
            # Of a version without attributes none are left.
            attributes=self.entry.attributes(self.state),
        )


def registered(entry: WorkflowEntry, version: int) -> WorkflowEntry:
    """Return a version of a workflow, or raise an OperationError that says which ones there are."""
    for known in entry.versions:
        if known.version == version:
            return known
    raise OperationError(
        f"{entry.name} version {version}",
        f"is not part of this app, which knows {entry.known()}",
        "Add it with app.add(…) beside the others.",
    )


async def examine(store: Store, loaded: Loaded, entry: WorkflowEntry) -> Migration:
    """Return what migrating an instance means, or raise an OperationError that says why it cannot be done."""
    row = loaded.row
    ref = Ref(row.workflow, row.id)
    _check(row, entry.version)
    refuse_unkept(loaded, f"cannot migrate to version {entry.version}")
    rows = await whole_stream(store, ref)
    try:
        state = state_by(entry, ref, rows)
        mark = CHILDREN_MARK if has_children(Loaded(row, None, rows)) else ""
        snapshot = entry.recorder.snapshot(state, row.version, entry.fingerprint + mark)
        _check_drift(entry, state)
    except OperationError:
        raise
    except Exception as error:
        raise OperationError(
            str(ref),
            f"cannot migrate to version {entry.version}: its stream does not fold under it "
            f"({type(error).__name__}: {error})",
            "Let the new evolve take all that the old version recorded; nothing was changed.",
        ) from error
    waiting = (*await store.inbox(ref, WAITING), *await store.outputs(ref, timers=True, limit=WAITING))
    _check_waiting(ref, entry, {row.type for row in waiting if not _takes(entry, row)} | _unanswerable(entry, rows))
    # Behind a snapshot it would no longer show which part of a branched stream counts.
    # And a flow's state is its journal: there is no shorter one.
    whole = _branched(rows) or flow_of(entry.workflow) is not None
    return Migration(row, entry, state, None if whole else snapshot)


def _check_drift(entry: WorkflowEntry, state: Any) -> None:
    """A flow goes on where the code of the new version does what is recorded; another one would be suspended."""
    flow = flow_of(entry.workflow)
    drift = None if flow is None else flow.drift_of(state)
    if drift is not None:
        raise OperationError(
            entry.name,
            f"cannot migrate to version {entry.version}: {drift.difference}",
            'Let that version adopt what is recorded, with drift="adopt"; nothing was changed.',
        ) from drift


def _check(row: InstanceRow, version: int) -> None:
    name = f"{row.workflow}/{row.id}"
    if row.status in ENDED:
        raise OperationError(name, f"cannot migrate: it has {row.status}", "Nothing is to be done.")
    if row.status == "compensating":
        raise OperationError(name, "cannot migrate: it is being compensated", "Let that come to its end.")
    if row.version == 0:
        raise OperationError(name, "cannot migrate: it has not begun", "Resume it first, or skip its first input.")
    if row.definition_version == version:
        raise OperationError(name, f"runs under version {version} already", "Nothing is to be done.")


def _check_waiting(ref: Ref, entry: WorkflowEntry, strange: set[str]) -> None:
    """What waits was meant for the version that the instance has: one that does not take it would drop its meaning."""
    if strange:
        raise OperationError(
            str(ref),
            f"cannot migrate to version {entry.version}: it waits for {', '.join(sorted(strange))}, "
            "which that version does not take",
            "Add it to the inputs of the new version, or wait until it has come.",
        )


def _takes(entry: WorkflowEntry, row: InputRow | OutputClaim) -> bool:
    try:
        return type(entry.recorder.message(row.type, row.type_version, row.body)) in entry.definition.inputs
    except CodecError:
        return False


def _unanswerable(entry: WorkflowEntry, rows: Sequence[EventRow]) -> set[str]:
    """Return the types by which people may answer what they are asked, and which that version does not take."""
    asked = [(row, read_detail(row.detail)) for row in live(rows) if row.event in ("Asked", "TaskClosed")]
    open = still_open((row, detail.key) for row, detail in asked)
    if not open:
        return set()
    taken = {name for cls in entry.definition.inputs for name in (type_of(cls).name, *type_of(cls).aliases)}
    return {name for row in open for name in read_detail(row.detail).answers} - taken


def _branched(rows: Iterable[EventRow]) -> bool:
    return any(branches(row) for row in rows)
