"""Tasks: what people are asked to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, cast

import click
from msgspec import DecodeError, json
from msgspec.structs import asdict

from mainspring.app import Mainspring
from mainspring.app.tasks import MOST_PICKED, PAGE
from mainspring.cli.failures import MisuseError
from mainspring.cli.listing import LIMIT
from mainspring.cli.loading import connected
from mainspring.cli.options import actor_option, examples, given, json_option
from mainspring.cli.output import visible, write_json, write_lines, write_table
from mainspring.views import Task, TaskOutcome

roles_option = click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role of yours; repeat for more.")


@click.group(epilog=examples("mainspring tasks list --role manager", "mainspring tasks pick manager -n 5"))
def tasks() -> None:
    """List, claim, delegate, pick, complete or reject what people are asked to do.

    A task's id is WORKFLOW/INSTANCE/POSITION, as `mainspring tasks list` shows it.
    """


@tasks.command("list", epilog=examples("mainspring tasks list --role manager --person bob --overdue"))
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="Asked of this role; repeat for more.")
@click.option("--person", metavar="NAME", help="What this person was asked, holds, or may take of these roles.")
@click.option("--workflow", metavar="NAME", help="Of this workflow.")
@click.option("--overdue", is_flag=True, help="Whose time has passed.")
@click.option("--limit", type=LIMIT, default=PAGE, show_default=True, help="At most so many.")
@click.option("--after", metavar="ID", help="Go on behind the last one seen.")
@json_option
@connected
async def list_tasks(app: Mainspring, as_json: bool, **where: Any) -> None:
    """List open tasks, the next due first."""
    _write(await app.tasks.list(role=where.pop("roles"), **where), as_json)


@tasks.command("show", epilog=examples("mainspring tasks show Expenses/e-1/3"))
@click.argument("id")
@json_option
@connected
async def show_task(app: Mainspring, id: str, as_json: bool) -> None:
    """Show a task with its forms: which messages answer it, and their fields."""
    task, forms = await app.tasks.get(id), await app.tasks.forms(id)
    if as_json:
        write_json(asdict(task) | {"forms": forms})
        return
    for name, value in asdict(task).items():
        if value not in (None, (), {}):
            click.echo(f"{name + ':':13}{visible(_text(value))}")
    for form in forms:
        fields = ", ".join(f"{f.name}{'' if f.required else '?'}" for f in form.fields)
        click.echo(f"{'form:':13}{form.answer}({visible(fields)})")


def _filled_in(_context: click.Context, _parameter: click.Parameter, text: str) -> dict[str, Any]:
    try:
        return json.decode(given(text), type=dict[str, Any])
    except (DecodeError, UnicodeDecodeError) as error:
        raise MisuseError(f"The fields are no JSON object ({error}). Write them as '{{\"name\": value}}'.") from None


def _operation(name: str, example: str) -> Callable[[Callable[..., Awaitable[None]]], click.Command]:
    """Make a command of what is done to tasks."""

    def decorate(operation: Callable[..., Awaitable[None]]) -> click.Command:
        return tasks.command(name, epilog=examples(example))(json_option(connected(operation)))

    return decorate


@_operation("claim", "mainspring tasks claim Expenses/e-1/3 --role manager")
@click.argument("id")
@actor_option
@roles_option
async def claim_task(app: Mainspring, id: str, actor: str, roles: tuple[str, ...], as_json: bool) -> None:
    """Take a task, so that no one else can."""
    _write_holder(await app.tasks.claim(id, actor=actor, roles=roles), as_json)


@_operation("release", "mainspring tasks release Expenses/e-1/3")
@click.argument("id")
async def release_task(app: Mainspring, id: str, as_json: bool) -> None:
    """Give a task back to all who were asked, also one that another person holds."""
    _write_holder(await app.tasks.release(id), as_json)


@_operation("delegate", "mainspring tasks delegate Expenses/e-1/3 dan")
@click.argument("id")
@click.argument("to")
async def delegate_task(app: Mainspring, id: str, to: str, as_json: bool) -> None:
    """Give a task to one person."""
    _write_holder(await app.tasks.delegate(id, to), as_json)


@_operation("pick", "mainspring tasks pick manager -n 5")
@click.argument("role")
@click.option("-n", "count", type=click.IntRange(1, MOST_PICKED), default=1, show_default=True, help="So many.")
@actor_option
async def pick_tasks(app: Mainspring, role: str, count: int, actor: str, as_json: bool) -> None:
    """Take the next unclaimed tasks of a role."""
    _write(await app.tasks.pick(role, count, actor=actor), as_json)


@_operation("complete", """mainspring tasks complete Expenses/e-1/3 Approve '{"note": "fine"}' --role manager""")
@click.argument("id")
@click.argument("answer")
@click.argument("fields", default="{}", callback=_filled_in)
@actor_option
@roles_option
async def complete_task(
    app: Mainspring, id: str, answer: str, fields: dict[str, Any], actor: str, roles: tuple[str, ...], as_json: bool
) -> None:
    """Answer a task: the message's type, and its fields as JSON; what the task knows is filled in.

    If it was answered before, the outcome of the first answer is printed.
    """
    _write_outcome(await app.tasks.complete(id, answer, fields, actor=actor, roles=roles), as_json)


@_operation("reject", "mainspring tasks reject Expenses/e-1/3 'no receipt' --role manager")
@click.argument("id")
@click.argument("reason")
@actor_option
@roles_option
async def reject_task(app: Mainspring, id: str, reason: str, actor: str, roles: tuple[str, ...], as_json: bool) -> None:
    """Say no to a task: answer it with the message that means no, and a reason.

    If it was answered before, the outcome of the first answer is printed.
    """
    _write_outcome(await app.tasks.reject(id, reason, actor=actor, roles=roles), as_json)


def _write_outcome(outcome: TaskOutcome, as_json: bool) -> None:
    if as_json:
        write_json(outcome)
    else:
        before, answered_by = "" if outcome.first else "before, ", visible(outcome.answered_by)
        waits = ", which waits to be taken" if before and outcome.status == "accepted" else ""
        click.echo(f"task {outcome.id}: answered {before}by {answered_by} with {outcome.answer}{waits}")


def _write_holder(task: Task, as_json: bool) -> None:
    if as_json:
        write_json(task)
    else:
        click.echo(f"task {task.id}: {'free' if task.claimed_by is None else f'held by {visible(task.claimed_by)}'}")


def _write(found: list[Task], as_json: bool) -> None:
    if as_json:
        write_lines(found)
    elif found:
        columns = ("id", "title", "asked", "due (UTC)", "held by")
        write_table(columns, [(t.id, t.title, _asked(t), _text(t.due_at or ""), t.claimed_by or "") for t in found])
    if not found:
        click.echo("There are no such tasks.", err=True)


def _asked(task: Task) -> str:
    return " or ".join(name for name in (task.role, task.person) if name is not None)


def _text(value: object) -> str:
    match value:
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case tuple():
            return ", ".join(map(str, cast("tuple[Any, ...]", value)))
        case dict():
            return json.encode(value).decode()
        case _:
            return str(value)
