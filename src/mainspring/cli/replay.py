"""Time travel: an instance's stream, step by step, with what each event made of the state; and why it was decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from mainspring.analysis.replay.branches import Branch
from mainspring.analysis.replay.changes import change_lines, state_change
from mainspring.analysis.replay.documents import All, Documents, ExplainedMoment
from mainspring.analysis.replay.explain import Explanation, because
from mainspring.analysis.replay.explain import explain as explained
from mainspring.analysis.replay.travel import travel_rows
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.failures import REFUSED, MisuseError
from mainspring.cli.loading import connected, find, ref_of
from mainspring.cli.options import examples, json_option
from mainspring.cli.output import visible, write_json
from mainspring.cli.show import NO_EVENTS
from mainspring.core.difference import diff
from mainspring.core.story import Entry, duration, tell
from mainspring.engine.inputs.stored_streams import readable, refuse_unkept
from mainspring.engine.recording.walk import Happened, Moment, Stopped
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import shown
from mainspring.port.records import EventRow, InstanceRow, Ref

LINES_PER_CHANGE: Final = 20
TEXT_CHARACTERS: Final = 300
STYLES: Final = {"input": "cyan", "output": "yellow", "lifecycle": "bright_black"}
MARGIN: Final = 7


@click.command(
    epilog=examples(
        "mainspring replay OrderFulfilment/o-1",
        "mainspring replay o-1 --from 4 --to 9",
        "mainspring replay o-1 --at 7",
        "mainspring replay o-1 --json | jq -c 'select(.explanation.agrees == false)'",
    )
)
@click.argument("identity", metavar="ID")
@click.option(
    "--from",
    "first",
    type=click.IntRange(1),
    default=1,
    metavar="POSITION",
    help="From this position of the stream on.",
)
@click.option("--to", "last", type=click.IntRange(1), metavar="POSITION", help="Up to this position.")
@click.option("--at", type=click.IntRange(1), metavar="POSITION", help="Only the step to which this position belongs.")
@json_option
@connected
async def replay(app: Mainspring, identity: str, first: int, last: int | None, at: int | None, as_json: bool) -> int:
    """Walk through a stream: what every event made of the state, and the case.

    ID is Workflow/id; the id alone will do if only one workflow has it. Each input stands with what was decided for it.
    Below each event is what it made of the state: ~ changed, + added, - removed. Nothing is carried out; decide is run
    once more to find its case, and where today's code decides otherwise than was recorded, that is said.

    Exit code 1 says that today's code cannot read or fold all of it.
    """
    instance = await opened(app, identity, "replayed")
    begin, end = (at, at) if at is not None else (first, last)
    instance.check(begin if end is None else max(begin, end))
    if not as_json:
        click.secho(f"{instance.ref}: {instance.row.status}, position {instance.row.version}", bold=True)
        if not instance.row.version:
            click.echo(NO_EVENTS)
            if instance.row.error is not None:
                click.secho(f"{instance.row.status}: {visible(instance.row.error)}", fg="red")
    async for each in travel_rows(internals_of(app).engine.store, instance.entry, instance.ref, begin, end):
        if isinstance(each, Stopped):
            _write_stopped(instance, each, as_json=as_json)
            return REFUSED
        moment, rows = each
        why = explained(instance.entry, moment, evolve=as_json)
        if as_json:
            write_json(instance.document(moment, rows, why))
        else:
            _write_moment(moment, why)
    return 0


@click.command(
    epilog=examples(
        "mainspring explain OrderFulfilment/o-1",
        "mainspring explain o-1 --at 7",
        "mainspring explain o-1 --json | jq .explanation.decide[].text",
    )
)
@click.argument("identity", metavar="ID")
@click.option("--at", type=click.IntRange(1), metavar="POSITION", help="The step to which this position belongs.")
@json_option
@connected
async def explain(app: Mainspring, identity: str, at: int | None, as_json: bool) -> int:
    """Say why an instance decided as it did, with the cases that matched.

    ID is Workflow/id; the id alone will do if only one workflow has it. Without --at, the last input that counts is
    explained. Told are the input, the state, the code, and the branches of decide and evolve that were taken, with
    their lines. decide is run once more in the recorded state, where it can do nothing but decide. Guards that said no
    are named. What was recorded stays the truth: where today's code decides otherwise, that is said.
    """
    instance = await opened(app, identity, "explained")
    instance.check(at)
    found: Moment | None = None
    rows: Sequence[EventRow] = ()
    async for each in travel_rows(internals_of(app).engine.store, instance.entry, instance.ref, at or 1, at):
        if isinstance(each, Stopped):
            _write_stopped(instance, each, as_json=as_json)
            return REFUSED
        if at is not None or (each[0].is_step and not each[0].abandoned):
            found, rows = each
    explanation = None if found is None else explained(instance.entry, found)
    if found is None or explanation is None:
        raise MisuseError(_nothing_decided(instance, found))
    if as_json:
        write_json(instance.document(found, rows, explanation))
    else:
        _write_explanation(instance, found, explanation)
    return 0


class Instance(NamedTuple):
    """An instance with the version of its workflow that reads it."""

    row: InstanceRow
    ref: Ref
    entry: WorkflowEntry

    @property
    def documents(self) -> Documents:
        """What makes records of it for programs."""
        return Documents(All(), self.entry, self.ref)

    def document(self, moment: Moment, rows: Sequence[EventRow], why: Explanation | None) -> ExplainedMoment:
        """Return a moment for programs."""
        return self.documents.explained(self.documents.moment(moment, rows, why), self.documents.state(moment.before))

    def check(self, version: int | None) -> None:
        """Refuse a position that is not there yet."""
        if version is not None and version > max(self.row.version, 1):
            raise MisuseError(f"{self.ref} has no position {version}: it is at position {self.row.version}.")


async def opened(app: Mainspring, identity: str, done: str) -> Instance:
    """Return an instance whose history is kept and whose code this app has; else say that it cannot be `done`."""
    loaded = await find(app, identity)
    ref = ref_of(loaded)
    known = internals_of(app).registry.workflows.get(ref.workflow)
    if known is None:
        raise MisuseError(f"{ref} cannot be {done}: this app has no workflow {ref.workflow}.")
    refuse_unkept(loaded, f"cannot be {done}")
    return Instance(loaded.row, ref, readable(known, loaded))


def _nothing_decided(instance: Instance, found: Moment | None) -> str:
    if found is None:
        return f"{instance.ref} has taken no input yet, so nothing was decided."
    event = type(found.happened[0].entry.event).__name__
    return f"Position {found.position} of {instance.ref} is {event}: nothing was decided for it."


# ---- for people


def _write_moment(moment: Moment, explanation: Explanation | None) -> None:
    click.echo()
    for happened in moment.happened:
        _write_event(happened, abandoned=moment.abandoned)
        if happened is moment.happened[0] and explanation is not None:
            for line in _decided_lines(explanation):
                _write_line(line)
        for line in change_lines(state_change(happened.before, happened.state), LINES_PER_CHANGE):
            _write_line(line)


def _write_event(happened: Happened, *, abandoned: bool) -> None:
    told, event = tell([happened.entry])[0], happened.entry.event
    parts = [told.event, told.message, _circumstances(happened.entry), "(left behind)" if abandoned else ""]
    line = f"{told.position:>5}  {visible('  '.join(part for part in parts if part))}"
    click.secho(line, fg=STYLES[event.direction], dim=abandoned)


def _circumstances(entry: Entry) -> str:
    """Return what an input's envelope says, and when it was taken."""
    if entry.kind is None or entry.time is None:
        return ""
    parts = [
        str(entry.kind),
        "" if entry.cause is None else f"of {entry.cause}",
        "" if entry.actor is None else f"by {entry.actor}",
        f"at {entry.time.isoformat(' ', 'milliseconds').removesuffix('+00:00')}",
        "" if entry.duration is None else f"after {duration(entry.duration)}",
        "" if entry.attempt is None or entry.attempt < 2 else f"(attempt {entry.attempt})",
    ]
    return f"[{' '.join(part for part in parts if part)}]"


def _decided_lines(explanation: Explanation) -> Iterator[str]:
    """Yield why something was decided, in short."""
    if not explanation.asked:
        yield "decided under an earlier version of the workflow, before it was migrated"
        return
    branch = because(explanation.decide, "decide")
    if branch is not None:
        yield f"decide: {placed(branch)}"
    if not explanation.agrees:
        yield from _disagreement(explanation)


def _disagreement(explanation: Explanation) -> Iterator[str]:
    if explanation.error is not None:
        yield f"today's code fails: {explanation.error}"
        return
    yield "today's code decides otherwise:"
    lines = diff(
        explanation.recorded, explanation.decided, text=lambda event: shown(event, TEXT_CHARACTERS), verb="now"
    )
    yield from (f"  {line}" for line in lines)


def placed(branch: Branch) -> str:
    """Return a branch with its place, from the current directory where it lies below that."""
    return f"{branch.text}  {_here(branch.file)}:{branch.line}"


def _here(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _write_line(line: str) -> None:
    click.echo(f"{' ' * MARGIN}{visible(line)}")


def _write_stopped(instance: Instance, stopped: Stopped, *, as_json: bool) -> None:
    if as_json:
        write_json(instance.documents.stopped(stopped))
    else:
        click.secho(f"\n{stopped.position:>5}  {visible(stopped.problem)}", fg="red")


def _write_explanation(instance: Instance, moment: Moment, explanation: Explanation) -> None:
    first = moment.happened[0].entry
    told = tell([entry.entry for entry in moment.happened])
    left = " (left behind)" if moment.abandoned else ""
    click.secho(f"{instance.ref}, position {moment.position}: {visible(told[0].message)}{left}", bold=True)
    _write_field("input", [f"{told[0].event} {_circumstances(first)}"])
    _write_field("state", [shown(moment.before)])
    version = f"version {explanation.workflow_version} of {instance.ref.workflow}"
    _write_field("code", [f"{version}, fingerprint {explanation.fingerprint}"])
    _write_field("decide", list(_reasons(explanation)))
    decided = [f"{row.position}  {row.event}  {row.message}".rstrip() for row in told[1:]]
    _write_field("decided", decided or ["nothing"])
    if explanation.asked and not explanation.agrees:
        _write_field("today", list(_disagreement(explanation)))
    evolved = [f"{e.position}  {line}" for e in explanation.evolve for b in e.branches for line in _branch_lines(b)]
    _write_field("evolve", evolved)
    changes = [
        f"{happened.entry.position}  {line}"
        for happened in moment.happened
        for line in change_lines(state_change(happened.before, happened.state), LINES_PER_CHANGE)
    ]
    _write_field("then", changes or ["the state stays as it is"])


def _reasons(explanation: Explanation) -> Iterator[str]:
    if not explanation.asked:
        yield "not asked: it was decided under an earlier version of the workflow, before it was migrated"
    elif explanation.blind:
        yield "not seen: a debugger or another tool uses all that Python has to see it"
    elif not explanation.decide:
        yield "no branch was found: its source has none, or is not at hand"
    for branch in explanation.decide:
        yield from _branch_lines(branch)
    if explanation.cut:
        yield "and more: it ran for too long to be followed to its end"


def _branch_lines(branch: Branch) -> Iterator[str]:
    for guard in branch.refused:
        yield f"not {guard.text}  {_here(branch.file)}:{guard.line}"
    yield f"{placed(branch)} in {branch.function}"


def _write_field(name: str, lines: Sequence[str]) -> None:
    for number, line in enumerate(lines):
        click.echo(f"  {'' if number else name:8} {visible(line)}")
