"""One instance with the version of its workflow that reads it, for what walks through its stream."""

from __future__ import annotations

from msgspec import Struct

from mainspring.analysis.replay.documents import Documents
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.stored_streams import readable, refuse_unkept
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import OperationError
from mainspring.port.records import InstanceRow, Ref
from mainspring.web.instances import loaded
from mainspring.web.served import Served


class Opened(Struct, frozen=True):
    """An instance with the version of its workflow that reads it."""

    row: InstanceRow
    ref: Ref
    entry: WorkflowEntry

    def documents(self, served: Served) -> Documents:
        """Return what makes records of it, as they may be shown."""
        return Documents(served, self.entry, self.ref)

    def check(self, version: int | None) -> None:
        """Refuse a version that is not there."""
        if version is not None and version > max(self.row.version, 1):
            raise OperationError(str(self.ref), f"is at position {self.row.version}", "Ask for a position up to that.")


async def opened(served: Served, workflow: str, id: str, done: str) -> Opened:
    """Return an instance whose history is kept and whose code this app has; else say that it cannot be `done`."""
    app, ref = served.app, Ref(workflow, id)
    found = await loaded(app, workflow, id, events=0)
    known = internals_of(app).registry.workflows.get(workflow)
    if known is None:
        raise OperationError(str(ref), f"cannot be {done}: this app has no {workflow}", "Serve an app that has it.")
    refuse_unkept(found, f"cannot be {done}")
    return Opened(found.row, ref, readable(known, found))
