"""What operators do to an instance. Each is recorded in its stream."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import click

from mainspring.app import Instance, Mainspring
from mainspring.cli.loading import connected, find, ref_of
from mainspring.cli.options import actor_option, examples, json_option
from mainspring.cli.output import write_json

DEFAULT_REASON = "by an operator"

reason_option = click.option("--reason", default=DEFAULT_REASON, show_default=True, help="Why; recorded in the stream.")


def _operation(
    *lines: str, options: Sequence[Callable[..., Any]] = ()
) -> Callable[[Callable[..., Awaitable[None]]], click.Command]:
    """Make a command of what is done to an instance: it says what became of it."""

    def decorate(operation: Callable[..., Awaitable[None]]) -> click.Command:
        @functools.wraps(operation)
        async def operate(app: Mainspring, identity: str, as_json: bool, **given: Any) -> None:
            instance = app.instance_at(str(ref_of(await find(app, identity))))
            await operation(instance, **given)
            row = await instance.row()
            if as_json:
                write_json(row)
            else:
                click.echo(f"{instance} is {row.status} (position {row.position})")

        command: Any = connected(operate)
        for option in (json_option, actor_option, *reversed(options), click.argument("identity", metavar="ID")):
            command = option(command)
        return click.command(epilog=examples(*lines))(command)

    return decorate


@_operation("mainspring suspend o-1 --reason 'the bank is down'", options=[reason_option])
async def suspend(instance: Instance[Any, Any], reason: str, actor: str | None) -> None:
    """Stop an instance from taking inputs; they queue.

    What it has sent already is still carried out.
    """
    await instance.suspend(reason, actor=actor)


@_operation("mainspring resume OrderFulfilment/o-1")
async def resume(instance: Instance[Any, Any], actor: str | None) -> None:
    """Let a suspended instance take inputs again.

    A running worker takes what has queued meanwhile.
    """
    await instance.resume(actor=actor)


@_operation("mainspring retry OrderFulfilment/o-1 --actor ann")
async def retry(instance: Instance[Any, Any], actor: str | None) -> None:
    """Take the input that failed once more, after the cause was mended.

    If the cause was in the code, restart the workers with the new code first.
    """
    await instance.retry(actor=actor)


@_operation("mainspring skip OrderFulfilment/o-1 --actor ann")
async def skip(instance: Instance[Any, Any], actor: str | None) -> None:
    """Pass over the input that failed, and continue.

    The stream keeps the input as Skipped; no decision is made on it. A first input, with which the stream would have
    begun, becomes a dead letter. Where a compensation failed, that one counts as done by hand, and the rest is undone.
    """
    await instance.skip(actor=actor)


@_operation("mainspring cancel o-1 --reason 'the customer called' --actor ann", options=[reason_option])
async def cancel(instance: Instance[Any, Any], reason: str, actor: str | None) -> None:
    """End an instance from outside, and undo what it did.

    What no worker has begun to carry out is cancelled with it, its timers too. Steps with a compensation are undone,
    the latest first; until that is over the instance is compensating.
    """
    await instance.cancel(reason, actor=actor)


@_operation("mainspring terminate o-1 --reason 'a test order' --actor ann", options=[reason_option])
async def terminate(instance: Instance[Any, Any], reason: str, actor: str | None) -> None:
    """End an instance from outside at once, and undo nothing.

    What no worker has begun to carry out is cancelled with it, compensations too.
    """
    await instance.terminate(reason, actor=actor)


@_operation(
    "mainspring reset o-1 --to 4 --reason 'the rate was wrong'",
    "mainspring show o-1 --at 4  # look first",
    options=[
        click.option(
            "--to",
            "version",
            type=click.IntRange(1),
            required=True,
            metavar="POSITION",
            help="Go back to this position of its stream.",
        ),
        reason_option,
    ],
)
async def reset(instance: Instance[Any, Any], version: int, reason: str, actor: str | None) -> None:
    """Let an instance go back to an earlier position, as a new branch of its history.

    Nothing is removed from the stream: what is behind that position does not count any more. Timers are set again, and
    a command that was answered only behind it is carried out again, under its old id.
    """
    await instance.reset(version, reason, actor=actor)


@_operation(
    "mainspring migrate OrderFulfilment/o-1 --to 2 --actor ann",
    options=[
        click.option(
            "--to",
            type=click.IntRange(1),
            required=True,
            metavar="WORKFLOW_VERSION",
            help="The version of the workflow to continue under.",
        ),
        click.option("--dry-run", is_flag=True, help="Only say whether it could."),
    ],
)
async def migrate(instance: Instance[Any, Any], to: int, dry_run: bool, actor: str | None) -> None:
    """Let an instance continue under another version of its workflow.

    The whole stream is folded by that version first. If that fails, or if something waits that it does not take, the
    reason is printed and nothing is changed.
    """
    await instance.migrate(to, actor=actor, dry_run=dry_run)
