"""Counterfactual: how an instance's story would have gone with another input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from mainspring.analysis.replay.changes import change_lines, state_change
from mainspring.analysis.replay.counterfactual import (
    DAY_US,
    DAYS_AHEAD,
    EVENTS_MOST,
    Counterfactual,
    check_edit,
    silent_commands,
)
from mainspring.analysis.replay.counterfactual import counterfactual as other_story
from mainspring.analysis.replay.retelling import Edit
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.failures import MisuseError, RefusedError
from mainspring.cli.loading import with_app
from mainspring.cli.options import Number, app_option, examples, given, json_option
from mainspring.cli.output import counted, visible, write_json
from mainspring.cli.replay import Instance, opened
from mainspring.cli.send import message_from
from mainspring.core.changes import aligned
from mainspring.core.story import Entry, tell
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.errors import shown

CELL_CHARACTERS: Final = 70
TEXT_CHARACTERS: Final = 200
LINES_PER_CHANGE: Final = 20


@click.command(
    epilog=examples(
        """mainspring counterfactual o-1 --at 4 --replace '{"order_id": "o-1", "amount": 9000}'""",
        """mainspring counterfactual o-1 --at 4 --replace '{"order_id": "o-1"}' --type CardDeclined""",
        """mainspring counterfactual o-1 --at 6 --insert '{"order_id": "o-1"}' --type CancelOrder""",
        "mainspring counterfactual o-1 --at 4 --drop --ahead 30",
    )
)
@click.argument("identity", metavar="ID")
@click.option(
    "--at", type=click.IntRange(1), required=True, metavar="POSITION", help="The position of an input in the stream."
)
@click.option("--replace", metavar="JSON", help="Let another message come in its place; - reads standard input.")
@click.option("--insert", metavar="JSON", help="Let another message come before it; - reads standard input.")
@click.option("--drop", is_flag=True, help="Let it not come at all.")
@click.option(
    "--type", "type_name", metavar="TYPE", help="The other message's type; that of the replaced one if not said."
)
@click.option(
    "--ahead",
    type=Number(0, DAYS_AHEAD),
    default=0,
    metavar="DAYS",
    help="Let timers fire too that are due within so many days from now.",
)
@json_option
@app_option
def counterfactual(
    identity: str,
    at: int,
    replace: str | None,
    insert: str | None,
    drop: bool,
    type_name: str | None,
    ahead: float,
    as_json: bool,
    address: str,
) -> int:
    """Replace, insert or drop an input, and see how the story would have gone.

    ID is Workflow/id; the id alone will do if only one workflow has it. Today's code decides; nothing is carried out
    or written. What came from outside comes at its time. A command that was also sent in the recorded story gets the
    same answer, after the same time; one that never was is shown as unanswered. Timers fire when they are due, unless
    cancelled. To insert behind everything, say --at the next position.
    """
    if [replace is not None, insert is not None, drop].count(True) != 1:
        raise MisuseError("Say one of --replace JSON, --insert JSON and --drop.")
    if type_name is not None and drop:
        raise MisuseError("--drop takes no --type.")

    async def use(app: Mainspring) -> int:
        instance = await opened(app, identity, "told otherwise")
        if instance.row.version > EVENTS_MOST:
            raise RefusedError(
                f"{instance.ref} has {instance.row.version:,} events; {EVENTS_MOST:,} can be changed in a story."
            )
        rows = live(await whole_stream(internals_of(app).engine.store, instance.ref))
        message = replace if replace is not None else insert
        known = type_name or next((row.type for row in rows if row.version == at), None)
        if insert is not None and type_name is None:
            raise MisuseError("--insert needs --type: which message is it?")
        what = "drop" if drop else "replace" if replace is not None else "insert"
        check_edit(instance.ref, rows, Edit(what, at))
        edit = Edit(what, at, None if message is None else _message(app, instance, known, message))
        until_us = internals_of(app).engine.store.now_us() + round(ahead * DAY_US)
        found = other_story(
            instance.entry, instance.ref, rows, edit, until_us, silent_commands(internals_of(app).registry)
        )
        if as_json:
            write_json(instance.documents.counterfactual(found))
        else:
            _write(instance, found)
        return 0

    return with_app(address, use)


def _message(app: Mainspring, instance: Instance, type_name: str | None, text: str) -> Any:
    if type_name is None:
        raise MisuseError(f"{instance.ref} has no input there to be replaced.")
    message = message_from(app, type_name, given(text))
    if type(message) not in instance.entry.definition.inputs:
        raise MisuseError(f"{instance.ref.workflow} takes no {type_name}.")
    return message


# ---- for people


def _write(instance: Instance, found: Counterfactual) -> None:
    click.secho(visible(f"{instance.ref} {_changed(found.edit)}"), bold=True)
    click.echo()
    for line in _beside(found):
        click.echo(line)
    click.echo()
    click.echo(_verdict(found))
    for line in _notes(found):
        click.echo(visible(line))
    click.echo()
    click.echo(visible(f"state then: {shown(found.state)}"))
    for line in change_lines(state_change(found.recorded_state, found.state), LINES_PER_CHANGE):
        click.echo(f"  {visible(line)}")


def _changed(edit: Edit) -> str:
    message = shown(edit.message, TEXT_CHARACTERS)
    match edit.what:
        case "replace":
            return f"with {message} in place of position {edit.position}"
        case "insert":
            return f"with {message} before position {edit.position}"
        case "drop":
            return f"without position {edit.position}"


def _verdict(found: Counterfactual) -> str:
    if found.differs_at is None:
        return "All else would have gone as it did."
    return f"From position {found.differs_at} on it would have gone another way."


def _notes(found: Counterfactual) -> Iterator[str]:
    if found.error is not None:
        yield f"There it stops, and would be suspended: {found.error}"
    for entry in found.unanswered:
        told = tell([entry])[0]
        yield f"unanswered: position {told.position}, {told.message}: never asked for in the recorded story"
    for entry in found.assumed:
        yield f"assumed: position {entry.position}, {tell([entry])[0].message}: carried out, with no result"
    for untaken in found.untaken:
        which = "inserted" if untaken.position is None else f"position {untaken.position}"
        yield f"not taken: {shown(untaken.message, TEXT_CHARACTERS)} ({which}): {untaken.reason}"
    for entry in found.waiting:
        yield f"waiting: position {entry.position}, {tell([entry])[0].message}: not due yet"
    if found.left_out:
        yield f"left out: {counted(len(found.left_out), 'event')} of operators"


def _beside(found: Counterfactual) -> Iterator[str]:
    """Yield both stories in two columns; what differs is marked."""
    width = max(len(cell) for cell in ("recorded", *map(_cell, found.recorded)))
    yield f"  {'recorded':{width}}   counterfactual"
    for one, other in _paired(found.recorded, found.told):
        cells = _cell(one) if one else "", _cell(other) if other else ""
        same = one is not None and other is not None and one.event == other.event
        yield f"{' ' if same else '≠'} {cells[0]:{width}}   {cells[1]}".rstrip()


def _cell(entry: Entry) -> str:
    row = tell([entry])[0]
    text = visible(f"{row.event} {row.message}".rstrip())
    cut = text if len(text) <= CELL_CHARACTERS else f"{text[: CELL_CHARACTERS - 1]}…"
    return f"{row.position:>4}  {cut}"


def _paired(one: Sequence[Entry], other: Sequence[Entry]) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Yield what stands beside what: the same events, and between them what differs, in order."""
    left = right = 0
    same = aligned([entry.event for entry in one], [entry.event for entry in other])
    for same_left, same_right in [*same, (len(one), len(other))]:
        for offset in range(max(same_left - left, same_right - right)):
            yield (
                one[left + offset] if left + offset < same_left else None,
                other[right + offset] if right + offset < same_right else None,
            )
        if same_left < len(one) and same_right < len(other):
            yield one[same_left], other[same_right]
        left, right = same_left + 1, same_right + 1
