"""Golden histories: real streams, kept in a file, against which every change of a workflow is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import MsgspecError, Raw, Struct, json
from msgspec.structs import replace

from mainspring.app import Mainspring
from mainspring.app.given import checked_limit
from mainspring.core.definition import definition_of
from mainspring.core.difference import diff, value_diff
from mainspring.core.replay import Redecided
from mainspring.core.workflow import Workflow
from mainspring.engine.loader import whole_stream
from mainspring.engine.recorder import is_unkept
from mainspring.engine.registry import WorkflowEntry, is_internal
from mainspring.engine.replaying import redecided_rows
from mainspring.errors import ErasedError, MainspringError, WiringError, shown
from mainspring.port.records import EventRow, InstanceFilter, Ref

FORMAT: Final = 1
INSTANCES: Final = 100
"""How many instances are kept of each workflow, unless said otherwise."""


NOTHING: Final = Raw()


class Step(Struct, frozen=True):
    """The state after an input, as it was when the history was kept."""

    version: int
    type: str
    body: Raw


class Event(Struct, frozen=True, omit_defaults=True):
    """An event as it is kept. Its message is JSON as it stood in the store."""

    version: int
    event: str
    time_us: int
    type: str | None = None
    type_version: int = 1
    body: Raw = NOTHING
    detail: Raw = NOTHING
    kind: str | None = None
    message_id: str | None = None
    cause: int | None = None
    context: Raw = NOTHING
    actor: str | None = None


class History(Struct, frozen=True):
    """One instance: its stream, and the state after each input."""

    workflow: str
    instance: str
    definition_version: int
    events: tuple[Event, ...]
    states: tuple[Step, ...]


class Histories(Struct, frozen=True):
    """A file of them."""

    format: int
    histories: tuple[History, ...]


class HistoryChanged(AssertionError):  # noqa: N818  it names what has happened
    """A workflow decides, or folds, otherwise than when a history was kept. The message shows the first difference.

    >>> HistoryChanged("Orders/o-1, version 4: …").args
    ('Orders/o-1, version 4: …',)
    """


async def save_histories(
    app: Mainspring,
    path: Path | str,
    *,
    workflow: type[Workflow[Any, Any, Any]] | None = None,
    limit: int = INSTANCES,
) -> int:
    """Keep the streams of a running app in a file, of one workflow or of all, and return how many there are.

    Of each workflow those that began first are taken, at most `limit`. What was purged or erased, or keeps no history,
    is left out. The file holds what messages say, unsealed: keep none of production that may not be in your repository.
    """
    checked_limit(limit)
    names = [name for name in app.registry.workflows if not is_internal(name)]
    if workflow is not None:
        names = [definition_of(workflow).name]
        if names[0] not in app.registry.workflows:
            raise WiringError(f"{names[0]} is not part of this app", f"app.add({names[0]}()) first.")
    kept: list[History] = []
    for name in names:
        entry = app.registry.workflows[name]
        if entry.definition.history == "state":
            continue
        for row in await app.engine.store.instances(InstanceFilter(workflow=name), limit):
            ref = Ref(row.workflow, row.id)
            rows = await whole_stream(app.engine.store, ref)
            if rows and not any(is_unkept(event) for event in rows):
                with suppress(ErasedError):
                    kept.append(_history(entry.at(row.definition_version) or entry, ref, row.definition_version, rows))
    _write(Path(path), Histories(FORMAT, tuple(kept)))
    return len(kept)


def replay_histories(app: Mainspring, path: Path | str) -> int:
    """Decide and fold kept histories once more, with the workflows of an app, and return how many inputs there were.

    The app need not run. Raises HistoryChanged where a decision or a state is not what it was.
    """
    __tracebackhide__ = True
    try:
        file = json.decode(Path(path).read_bytes(), type=Histories)
    except MsgspecError as error:
        raise WiringError(f"{path} is no file of histories ({error})", "Save the histories anew.") from error
    if file.format != FORMAT:
        raise WiringError(f"{path} has format {file.format}; this release reads {FORMAT}", "Save the histories anew.")
    app.registry.add_publication()
    app.registry.add_fan_out()
    inputs = 0
    for history in file.histories:
        entry = app.registry.workflows.get(history.workflow)
        if entry is None:
            raise WiringError(f"{path} has histories of {history.workflow}", "Add that workflow to the app.")
        inputs += _replay(entry.at(history.definition_version) or entry, history)
    return inputs


def _write(path: Path, file: Histories) -> None:
    path.write_bytes(json.format(json.encode(file), indent=1) + b"\n")


def _history(entry: WorkflowEntry, ref: Ref, definition_version: int, rows: Sequence[EventRow]) -> History:
    states = [
        (step.version, entry.recorder.snapshot(step.after, step.version, "kept"))
        for step in redecided_rows(entry, ref, rows)
    ]
    return History(
        ref.workflow,
        ref.id,
        definition_version,
        tuple(_event(row) for row in rows),
        tuple(Step(version, state.type, Raw(state.body)) for version, state in states),
    )


def _replay(entry: WorkflowEntry, history: History) -> int:
    __tracebackhide__ = True
    ref = Ref(history.workflow, history.instance)
    rows = [_row(event) for event in history.events]
    expected = {step.version: step for step in history.states}
    inputs = 0
    try:
        for step in redecided_rows(entry, ref, rows):
            inputs += 1
            _hold(entry, ref, expected.get(step.version), step)
    except HistoryChanged:
        raise
    except MainspringError as error:
        raise HistoryChanged(f"{ref} cannot be read any more: {error}") from error
    except Exception as error:
        # decide's errors are told with their step: this one is evolve's, or an upcaster's.
        told = [f"{ref} cannot be folded any more: {type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
        raise HistoryChanged("\n  ".join(told)) from error
    return inputs


def _hold(entry: WorkflowEntry, ref: Ref, expected: Step | None, step: Redecided) -> None:
    __tracebackhide__ = True
    if step.changed:
        raise HistoryChanged("\n".join(_changed_decision(ref, step)))
    if lines := _changed_state(entry, expected, step):
        raise HistoryChanged("\n".join([_head(ref, step, "leads to another state"), *lines]))


def _changed_decision(ref: Ref, step: Redecided) -> Iterable[str]:
    yield _head(ref, step, "is decided otherwise")
    if step.error is not None:
        yield f"  it was decided, and now fails: {type(step.error).__name__}: {step.error}"
        return
    yield from diff(step.recorded, step.decided, text=lambda event: shown(event, 400), verb="decided")


def _changed_state(entry: WorkflowEntry, expected: Step | None, step: Redecided) -> list[str]:
    if expected is None:
        return [f"  version {step.version} has no kept state"]
    now = entry.recorder.snapshot(step.after, step.version, "kept")
    if (now.type, json.decode(now.body)) == (expected.type, json.decode(expected.body)):
        return []
    try:
        was = entry.recorder.state(replace(now, type=expected.type, body=bytes(expected.body)))
    except MainspringError:
        return [f"- {expected.type} {bytes(expected.body).decode()}", f"+ {now.type} {now.body.decode()}"]
    return value_diff(was, step.after, "is")


def _head(ref: Ref, step: Redecided, what: str) -> str:
    return f"{ref}, version {step.version}: {shown(step.message, 200)} in {shown(step.before, 200)} {what}"


def _event(row: EventRow) -> Event:
    return Event(
        row.version,
        row.event,
        row.time_us,
        row.type,
        row.type_version,
        _raw(row.body),
        _raw(row.detail),
        row.kind,
        row.message_id,
        row.cause,
        _raw(row.context),
        row.actor,
    )


def _row(event: Event) -> EventRow:
    return EventRow(
        event.version,
        event.event,
        event.time_us,
        event.type,
        event.type_version,
        _bytes(event.body),
        _bytes(event.detail),
        event.kind,
        event.message_id,
        event.cause,
        _bytes(event.context),
        event.actor,
    )


def _raw(body: bytes | None) -> Raw:
    return NOTHING if body is None else Raw(body)


def _bytes(body: Raw) -> bytes | None:
    return bytes(body) or None
