"""One instance with the version of its workflow that reads it, for what walks through its stream."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct, json
from msgspec.structs import replace

from mainspring.analysis.reading.model import shortened
from mainspring.analysis.replay.branches import Branch
from mainspring.analysis.replay.changes import state_change
from mainspring.app.internals import internals_of
from mainspring.app.viewing import event_view
from mainspring.core.changes import NOTHING
from mainspring.core.events import StreamEvent
from mainspring.engine.inputs.stored_streams import readable, refuse_unkept
from mainspring.engine.recording.redecision import row_of
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import OperationError
from mainspring.port.records import InstanceRow, Ref
from mainspring.web.instances import loaded
from mainspring.web.models import DecidedEvent, PlaceChanged, StateChanged, StateShown
from mainspring.web.served import Served

_KEY: Final = re.compile(r"\['([^\W\d]\w*)'\]")


class Opened(Struct, frozen=True):
    """An instance with the version of its workflow that reads it."""

    row: InstanceRow
    ref: Ref
    entry: WorkflowEntry

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


def state_shown(served: Served, entry: WorkflowEntry, state: Any) -> StateShown:
    """Return a state as it may be shown."""
    stored = entry.recorder.snapshot(state, 0, "")
    return StateShown(stored.type, served.body(stored.type, stored.body))


def state_changed(before: StateShown, after: StateShown) -> StateChanged | None:
    """Return what differs between two states as they are shown: what is not shown does not differ.

    >>> from msgspec import Raw
    >>> one, other = (StateShown("Counted", Raw(text)) for text in (b'{"times":1}', b'{"times":2}'))
    >>> state_changed(one, other).places
    [PlaceChanged(path='times', what='changed', before=1, after=2)]
    """
    if before == after:
        return None
    found = state_change(json.decode(bytes(before.state)), json.decode(bytes(after.state)))
    places = [
        PlaceChanged(
            _KEY.sub(r".\1", place.path).removeprefix("."),
            place.what,
            None if place.before is NOTHING else place.before,
            None if place.after is NOTHING else place.after,
        )
        for place in (() if found is None else found.places)
    ]
    return StateChanged(before.type, after.type, places, found is not None and found.cut)


def decided_event(served: Served, opened: Opened, event: StreamEvent[Any, Any]) -> DecidedEvent:
    """Return an event that was decided, but never recorded."""
    recorder = opened.entry.recorder
    row = row_of(recorder, event)
    message = getattr(event, "message", None)
    if row.type is None and message is not None:  # an input: where one is recorded, its envelope says what it is
        encoded = recorder.encoded(message)
        row = replace(row, type=encoded.name, type_version=encoded.version, body=encoded.body)
    view = served.shown(event_view(opened.ref, row))
    return DecidedEvent(*(getattr(view, name) for name in DecidedEvent.__struct_fields__))


def branches_shown(branches: Sequence[Branch]) -> tuple[Branch, ...]:
    """Return branches of the code, each with its place from where Python finds the module."""
    return tuple(replace(branch, file=shortened(branch.file, sys.path)) for branch in branches)
