"""Histories: streams that really happened, kept in a file, against which a change of a workflow is held."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Raw, Struct, json
from msgspec.structs import asdict, replace

from mainspring.core.difference import diff, value_diff
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.event_rows import is_unkept
from mainspring.engine.recording.redecision import Redecided, redecided_rows
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.errors import CodecError, ErasedError, MainspringError, StoreError, WiringError, shown
from mainspring.errors.reading import UNREADABLE
from mainspring.port.ids import plain
from mainspring.port.records import EventRow, InstanceRow, Ref
from mainspring.port.store import Store

FORMAT: Final = 1
NOTHING: Final = Raw()
_JSON: Final = ("body", "detail", "context")

Kind: TypeAlias = Literal["decided otherwise", "another state", "fails now", "cannot be read", "cannot be folded"]


class Step(Struct, frozen=True):
    """The state after an input, as it was when the history was kept."""

    version: int
    type: str
    body: Raw


class Event(Struct, frozen=True, omit_defaults=True):
    """An event as it is kept: a row of the store by the same names. Its message is JSON as it stood there."""

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

    def __str__(self) -> str:
        return f"{self.workflow}/{self.instance}"


class Histories(Struct, frozen=True):
    """A file of them."""

    format: int
    histories: tuple[History, ...]


class Changed(Struct, frozen=True):
    """What is not as it was in a history: the first difference of an instance.

    `message` and `state` are the names of the types concerned; instances that differ in the same way have the same
    ones. `text` has all of it.
    """

    kind: Kind
    message: str | None
    state: str | None
    text: str


class Held(Struct, frozen=True):
    """A history that was held against today's code: how many inputs were decided once more, and what has changed."""

    workflow: str
    instance: str
    inputs: int
    changed: Changed | None = None


# ---- keeping


async def kept_histories(store: Store, registry: Registry, rows: Iterable[InstanceRow]) -> AsyncIterator[History]:
    """Yield the histories of instances. What was purged or erased, or keeps no history, is left out."""
    for row in rows:
        entry = registry.workflows[row.workflow]
        ref = Ref(row.workflow, row.id)
        events = [] if entry.definition.history == "state" else await whole_stream(store, ref)
        if events and not any(is_unkept(event) for event in events):
            with suppress(ErasedError):
                yield _history(entry.at(row.definition_version) or entry, ref, row.definition_version, events)


def write_histories(path: Path, histories: Sequence[History]) -> None:
    """Write a file of histories."""
    path.write_bytes(json.format(json.encode(Histories(FORMAT, tuple(histories))), indent=1) + b"\n")


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


# ---- holding


def read_histories(path: Path | str) -> tuple[History, ...]:
    """Return the histories in a file."""
    try:
        file = json.decode(Path(path).read_bytes(), type=Histories)
    except UNREADABLE as error:
        raise WiringError(f"{path} is no file of histories ({error})", "Save the histories again.") from error
    if file.format != FORMAT:
        raise WiringError(f"{path} has format {file.format}; this release reads {FORMAT}", "Save the histories again.")
    return file.histories


def held(registry: Registry, histories: Iterable[History], path: Path | str) -> Iterator[Held]:
    """Decide and fold histories once more, with the workflows that an app has. Nothing is carried out.

    `path` names the file in what is said of it.
    """
    registry.add_publication()
    registry.add_fan_out()
    for history in histories:
        entry = registry.workflows.get(history.workflow)
        if entry is None:
            raise WiringError(f"{path} has histories of {history.workflow}", "Add that workflow to the app.")
        yield _held(entry.at(history.definition_version) or entry, history)


def _held(entry: WorkflowEntry, history: History) -> Held:
    ref = Ref(history.workflow, history.instance)
    rows = [_row(event) for event in history.events]
    expected = {step.version: step for step in history.states}
    inputs, changed = 0, None
    try:
        for step in redecided_rows(entry, ref, rows):
            inputs += 1
            changed = _changed_decision(ref, step) or _changed_state(entry, ref, expected.get(step.version), step)
            if changed is not None:
                break
    except (CodecError, StoreError) as error:
        changed = Changed("cannot be read", None, None, f"{ref} cannot be read any more: {error}")
    except Exception as error:  # noqa: BLE001  decide's errors come with their step: it is evolve's, or its state is refused
        told = [f"{ref} cannot be folded any more: {type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
        changed = Changed("cannot be folded", None, None, "\n  ".join(told))
    return Held(history.workflow, history.instance, inputs, changed)


def _changed_decision(ref: Ref, step: Redecided) -> Changed | None:
    if not step.changed:
        return None
    head = _head(ref, step, "is decided otherwise")
    if step.error is not None:
        told = f"  it was decided, and now fails: {type(step.error).__name__}: {step.error}"
        return _changed("fails now", step, [head, told])
    lines = diff(step.recorded, step.decided, text=lambda event: shown(event, 400), verb="decided")
    return _changed("decided otherwise", step, [head, *lines])


def _changed_state(entry: WorkflowEntry, ref: Ref, expected: Step | None, step: Redecided) -> Changed | None:
    lines = _state_lines(entry, expected, step)
    return _changed("another state", step, [_head(ref, step, "leads to another state"), *lines]) if lines else None


def _changed(kind: Kind, step: Redecided, lines: Sequence[str]) -> Changed:
    return Changed(kind, type(step.message).__name__, type(step.before).__name__, "\n".join(lines))


def _state_lines(entry: WorkflowEntry, expected: Step | None, step: Redecided) -> list[str]:
    if expected is None:
        return [f"  position {step.version} has no kept state"]
    now = entry.recorder.snapshot(step.after, step.version, "kept")
    if (now.type, json.decode(now.body)) == (expected.type, json.decode(expected.body)):
        return []
    try:
        was = entry.recorder.state(replace(now, type=expected.type, body=bytes(expected.body)))
    except MainspringError:
        return [f"- {expected.type} {bytes(expected.body).decode()}", f"+ {now.type} {now.body.decode()}"]
    return value_diff(was, step.after, "is")


def _head(ref: Ref, step: Redecided, what: str) -> str:
    return f"{ref}, position {step.version}: {shown(step.message, 200)} in {shown(step.before, 200)} {what}"


# ---- rows


def _event(row: EventRow) -> Event:
    values: dict[str, Any] = {name: getattr(row, name) for name in Event.__struct_fields__}
    for name in _JSON:
        values[name] = Raw(values[name]) if values[name] else NOTHING
    values["message_id"] = None if row.message_id is None else plain(row.message_id)
    return Event(**values)


def _row(event: Event) -> EventRow:
    texts: dict[str, Any] = {name: bytes(getattr(event, name)) or None for name in _JSON}
    values: dict[str, Any] = {**asdict(event), **texts}
    return EventRow(**values)
