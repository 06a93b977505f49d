"""One instance: its stream as a table, its state now or at an earlier position, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
from msgspec import to_builtins
from msgspec.structs import asdict

from mainspring.analysis.stuck.awaited import awaited_of
from mainspring.analysis.stuck.held import held_among
from mainspring.app import Mainspring
from mainspring.app.commands import command
from mainspring.app.internals import internals_of
from mainspring.app.states import State, checked_version, entry_of, state_at
from mainspring.app.viewing import direction_of, event_view, input_view, instance_view, kind_of, output_view
from mainspring.app.waiting import is_kept, waits_at
from mainspring.cli.failures import REFUSED, MisuseError
from mainspring.cli.lines import write_lines_of_code
from mainspring.cli.loading import connected, find, ref_of
from mainspring.cli.options import examples, json_option
from mainspring.cli.output import clock, counted, distance, text_of, visible, write_json, write_table
from mainspring.core.story import COLUMNS, Row, tell
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.operations.retried_letter import letters_behind, while_suspended
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import CodecError
from mainspring.port.records import DeadLetter, EventRow, InstanceRow, Loaded, Ref
from mainspring.port.tasks import TaskRow
from mainspring.views import Waiting, WaitingOutput, WaitsAt

STYLES = {"input": "cyan", "output": "yellow", "": "dim"}
WAITING = 100
LETTERS_NAMED = 5
BODY_CHARACTERS = 2_000
"""How much is shown of an input that failed; `--json` has all of it."""


NO_EVENTS = "no events: its first input was not taken, and a stream begins with that"


@click.command(
    epilog=examples(
        "mainspring show OrderFulfilment/o-1",
        "mainspring show o-1 --at 4",
        "mainspring show o-1 --last 20",
        "mainspring show o-1 --json | jq .stream[].event",
    )
)
@click.argument("identity", metavar="ID")
@click.option("--at", type=click.IntRange(1), metavar="POSITION", help="As it was at this position of its stream.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N events.")
@json_option
@connected
async def show(app: Mainspring, identity: str, at: int | None, last: int | None, as_json: bool) -> None:
    """Show an instance: its stream, its state, and what it waits for.

    Of a flow also the lines at which its code waits, now or behind the position, with its calls and their variables.

    ID is Workflow/id; the id alone will do if only one workflow has it.
    """
    store = internals_of(app).engine.store
    loaded = await find(app, identity)
    ref, entry = ref_of(loaded), entry_of(app, loaded)
    end = _checked(loaded, at)
    after = max(0, end - last) if last is not None else 0
    rows = [row for row in await whole_stream(store, ref, after) if row.version <= end]
    state = await state_at(app, loaded, at)
    nothing = Waiting([], [], [], [], 0, [], [])
    waiting, tasks = (nothing, ()) if at is not None else await _waiting(app, loaded.row)
    lines = await waits_at(store, internals_of(app).registry, loaded, at) if is_kept(loaded) else None
    if as_json:
        write_json(_document(loaded.row, rows, state, waiting, lines))
        return
    _write_head(loaded.row, end)
    write_stream(ref, entry, rows)
    if not is_kept(loaded):
        click.echo("Its history is not kept: these are the messages that it took, and what is still to be done.")
    _write_state(state)
    if lines is not None:
        write_lines_of_code(lines)
    _write_waiting(waiting, tasks, moment(store.now_us()))
    if at is None and loaded.row.status == "suspended":
        why = [row async for row in while_suspended(store, ref, loaded.row.version)]
        if not loaded.row.version:
            click.echo(f"\nIt has stood still since {clock(moment(loaded.row.updated_us))} (UTC).", nl=False)
        failed = {row.cause for row in why if row.cause is not None}
        _write_advice(loaded.row, waiting, [one async for one in letters_behind(store, ref, failed)], why)


@click.command(epilog=examples("mainspring state o-1", "mainspring state OrderFulfilment/o-1 --at 4 --json"))
@click.argument("identity", metavar="ID")
@click.option("--at", type=click.IntRange(1), metavar="POSITION", help="As it was at this position of its stream.")
@json_option
@connected
async def state(app: Mainspring, identity: str, at: int | None, as_json: bool) -> int:
    """Show the state of an instance.

    ID is Workflow/id; the id alone will do if only one workflow has it. Exit code 1 says that there is no state to be
    had, because this app cannot read the stream.
    """
    loaded = await find(app, identity)
    _checked(loaded, at)
    found = await state_at(app, loaded, at)
    if as_json:
        write_json({"instance": str(ref_of(loaded)), **asdict(found.view())})
    elif found.problem is None:
        click.echo(visible(repr(found.value)))
    else:
        click.echo(visible(found.problem), err=True)
    return 0 if found.problem is None else REFUSED


# ---- reading


def _checked(loaded: Loaded, at: int | None) -> int:
    row = loaded.row
    if at is not None and at > row.version:
        raise MisuseError(f"{row.workflow}/{row.id} has no position {at}: it is at position {row.version}.")
    return checked_version(loaded, at)


async def _waiting(app: Mainspring, row: InstanceRow) -> tuple[Waiting, Sequence[TaskRow]]:
    store, ref = internals_of(app).engine.store, Ref(row.workflow, row.id)
    inbox = await store.inbox(ref, WAITING)
    outbox = await store.outputs(ref, timers=False, limit=WAITING)
    timers = await store.outputs(ref, timers=True, limit=WAITING)
    awaited = await awaited_of(store, row, internals_of(app).registry)
    held = await held_among(store, ref, inbox, [*outbox, *timers], awaited.children, internals_of(app).registry)
    found = Waiting(
        [input_view(each) for each in inbox],
        [output_view(claim) for claim in outbox],
        [output_view(claim) for claim in timers],
        awaited.children,
        awaited.since,
        [str(task) for task in awaited.tasks],
        held,
    )
    return found, awaited.tasks


# ---- for programs


def _document(
    row: InstanceRow, rows: Sequence[EventRow], state: State, waiting: Waiting, lines: WaitsAt | None
) -> dict[str, Any]:
    ref = Ref(row.workflow, row.id)
    return {
        **to_builtins(instance_view(row), builtin_types=(datetime,)),
        "at": state.view(),
        "stream": [event_view(ref, event) for event in rows],
        **asdict(waiting),
        "waits_at": lines if lines is not None and lines.is_flow else None,
    }


# ---- for people


def _write_head(row: InstanceRow, version: int) -> None:
    at = f"position {version}" if version == row.version else f"position {version} of {row.version}"
    under = f"workflow version {row.definition_version}"
    click.secho(f"{row.workflow}/{row.id}: {row.status}, {at}, {under}", bold=True)


def write_stream(ref: Ref, entry: WorkflowEntry | None, rows: Sequence[EventRow]) -> None:
    """Write a stream as a table; with the actor's column where there was an actor."""
    if not rows:
        click.echo(NO_EVENTS)
        return
    told = [_told(ref, entry, row) for row in rows]
    acted = any(row.actor for row in rows)
    columns = [*COLUMNS[:1], "time (UTC)", *COLUMNS[1:4], *(["actor"] if acted else []), COLUMNS[4]]
    lines = [
        [
            t.position,
            clock(moment(row.time_us)),
            t.kind,
            t.direction,
            t.event,
            *([row.actor or ""] if acted else []),
            t.message,
        ]
        for t, row in zip(told, rows, strict=True)
    ]
    write_table(columns, lines, [STYLES[t.direction] for t in told])


def _told(ref: Ref, entry: WorkflowEntry | None, row: EventRow) -> Row:
    if entry is not None:
        try:
            return tell([entry.recorder.entry(ref, row, told=True)])[0]
        except CodecError:
            pass
    direction = direction_of(row)
    return Row(
        position=str(row.version),
        kind=kind_of(row) or "",
        direction="" if direction == "lifecycle" else direction,
        event=row.event,
        message=f"{row.type} {row.body.decode(errors='replace')}" if row.type and row.body else "",
    )


def _write_state(state: State) -> None:
    click.echo()
    if state.problem is None:
        click.echo(f"state: {visible(repr(state.value))}")
    else:
        click.secho(f"state: {visible(state.problem)}", fg="red")


def _write_waiting(waiting: Waiting, tasks: Sequence[TaskRow], now: datetime) -> None:
    rows = [("inbox", each.type, "", f"{each.message_id}, {distance(each.time, now)}") for each in waiting.inbox]
    for where, outputs in (("outbox", waiting.outbox), ("timer", waiting.timers)):
        rows += [(where, output.type, distance(output.due, now), _attempts(output)) for output in outputs]
    for child in waiting.children:
        what, note = ("fan-out", child.progress) if child.is_fan_out else ("child", child.instance or "")
        since = f"begun {distance(child.began, now)}"
        rows.append((what, child.type or "", "", f"{note}, {since}" if note else since))
    for task in tasks:
        whom = task.person or task.role or "any person"
        rows.append(("task", task.title, "", f"opened for {whom} {distance(moment(task.opened_us), now)}"))
    if rows:
        click.echo()
        write_table(("waits in", "message", "due", "note"), rows)
        for why in waiting.held_back:
            click.secho(visible(why), fg="red")


def _attempts(output: WaitingOutput) -> str:
    return counted(output.attempts, "attempt") if output.attempts else ""


def _write_advice(row: InstanceRow, waiting: Waiting, letters: Sequence[DeadLetter], why: Sequence[EventRow]) -> None:
    """Say what to do; `why` are its suspensions since it last ran, the last one first."""
    identity = f"{row.workflow}/{row.id}"
    by = why[0].actor if why else None
    who = "" if by is None else f" by {visible(by)}"
    # What could not even begin is suspended without an event. Else a command failed, or a person did it.
    input_failed = not why or any(each.actor is None and each.cause is None for each in why)
    click.echo()
    click.secho(f"suspended{who}: {visible(row.error or 'no reason given')}", fg="red")
    if letters:
        told = ", ".join(f"{letter.id} ({visible(letter.type)})" for letter in letters[:LETTERS_NAMED])
        click.echo(f"What failed is a dead letter: {told}. Mend the cause, then `mainspring dead-letters retry` it:")
        click.echo(f"with the last of them the instance continues. If not, {command('resume', identity)} lets it.")
    elif waiting.inbox and input_failed:
        first = waiting.inbox[0]
        again, past = command("retry", identity), command("skip", identity)
        text = text_of(first.message)
        body = visible(text[:BODY_CHARACTERS]) + ("…" if len(text) > BODY_CHARACTERS else "")
        click.echo(f"It failed at {visible(first.type)} {body} ({visible(first.message_id)}).")
        click.echo(f"Mend the cause, then {again}; or {past} passes over {visible(first.type)}.")
    else:
        click.echo(f"{command('resume', identity)} lets it go on.")
