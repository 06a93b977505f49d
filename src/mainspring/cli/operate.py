"""What operators do to an instance. Each is recorded in its stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import click

from mainspring.app import Instance, Mainspring
from mainspring.cli.loading import find, ref_of, with_app
from mainspring.cli.options import actor_option, app_option, examples, json_option
from mainspring.cli.output import write_json

DEFAULT_REASON = "by an operator"


@click.command(epilog=examples("mainspring suspend o-1 --reason 'the bank is down'"))
@click.argument("identity", metavar="ID")
@click.option("--reason", default=DEFAULT_REASON, show_default=True, help="Why; recorded in the stream.")
@actor_option
@json_option
@app_option
def suspend(identity: str, reason: str, actor: str | None, as_json: bool, address: str) -> None:
    """Stop an instance from taking inputs; they queue.

    What it has sent already is still carried out.
    """
    _operate(address, identity, as_json, lambda instance: instance.suspend(reason, actor=actor))


@click.command(epilog=examples("mainspring resume OrderFulfilment/o-1"))
@click.argument("identity", metavar="ID")
@actor_option
@json_option
@app_option
def resume(identity: str, actor: str | None, as_json: bool, address: str) -> None:
    """Let a suspended instance take inputs again.

    A running worker takes what has queued meanwhile.
    """
    _operate(address, identity, as_json, lambda instance: instance.resume(actor=actor))


@click.command(epilog=examples("mainspring retry OrderFulfilment/o-1 --actor ann"))
@click.argument("identity", metavar="ID")
@actor_option
@json_option
@app_option
def retry(identity: str, actor: str | None, as_json: bool, address: str) -> None:
    """Take the input that failed once more, after the cause was mended.

    If the cause was in the code, restart the workers with the new code first.
    """
    _operate(address, identity, as_json, lambda instance: instance.retry(actor=actor))


@click.command(epilog=examples("mainspring skip OrderFulfilment/o-1 --actor ann"))
@click.argument("identity", metavar="ID")
@actor_option
@json_option
@app_option
def skip(identity: str, actor: str | None, as_json: bool, address: str) -> None:
    """Pass over the input that failed, and go on.

    The stream keeps the input as Skipped; no decision is made on it. A first input, with which the stream would have
    begun, becomes a dead letter. Where a compensation failed, that one counts as done by hand, and the rest is undone.
    """
    _operate(address, identity, as_json, lambda instance: instance.skip(actor=actor))


@click.command(epilog=examples("mainspring cancel o-1 --reason 'the customer called' --actor ann"))
@click.argument("identity", metavar="ID")
@click.option("--reason", default=DEFAULT_REASON, show_default=True, help="Why; recorded in the stream.")
@actor_option
@json_option
@app_option
def cancel(identity: str, reason: str, actor: str | None, as_json: bool, address: str) -> None:
    """End an instance from outside, and undo what it did.

    What no worker has begun to carry out is cancelled with it, its timers too. Steps with a compensation are undone,
    the latest first; until that is over the instance is compensating.
    """
    _operate(address, identity, as_json, lambda instance: instance.cancel(reason, actor=actor))


@click.command(epilog=examples("mainspring terminate o-1 --reason 'a test order' --actor ann"))
@click.argument("identity", metavar="ID")
@click.option("--reason", default=DEFAULT_REASON, show_default=True, help="Why; recorded in the stream.")
@actor_option
@json_option
@app_option
def terminate(identity: str, reason: str, actor: str | None, as_json: bool, address: str) -> None:
    """End an instance from outside at once, and undo nothing.

    What no worker has begun to carry out is cancelled with it, compensations too.
    """
    _operate(address, identity, as_json, lambda instance: instance.terminate(reason, actor=actor))


@click.command(
    epilog=examples(
        "mainspring reset o-1 --to 4 --reason 'the rate was wrong'", "mainspring show o-1 --at 4  # look first"
    )
)
@click.argument("identity", metavar="ID")
@click.option(
    "--to",
    "version",
    type=click.IntRange(1),
    required=True,
    metavar="POSITION",
    help="Go back to this position of its stream.",
)
@click.option("--reason", default=DEFAULT_REASON, show_default=True, help="Why; recorded in the stream.")
@actor_option
@json_option
@app_option
def reset(identity: str, version: int, reason: str, actor: str | None, as_json: bool, address: str) -> None:
    """Let an instance go back to an earlier position, as a new branch of its history.

    Nothing is removed from the stream: what is behind that position does not count any more. Timers are set anew, and a
    command that was answered only behind it is carried out again, under its old id.
    """
    _operate(address, identity, as_json, lambda instance: instance.reset(version, reason, actor=actor))


@click.command(epilog=examples("mainspring migrate OrderFulfilment/o-1 --to 2 --actor ann"))
@click.argument("identity", metavar="ID")
@click.option(
    "--to",
    type=click.IntRange(1),
    required=True,
    metavar="WORKFLOW_VERSION",
    help="The version of the workflow to go on under.",
)
@click.option("--dry-run", is_flag=True, help="Only check whether it could.")
@actor_option
@json_option
@app_option
def migrate(identity: str, to: int, dry_run: bool, actor: str | None, as_json: bool, address: str) -> None:
    """Let an instance go on under another version of its workflow.

    The whole stream is folded by that version first. If that fails, or if something waits that it does not take, the
    reason is printed and nothing is changed.
    """
    _operate(address, identity, as_json, lambda instance: instance.migrate(to, actor=actor, dry_run=dry_run))


def _operate(address: str, identity: str, as_json: bool, act: Callable[[Instance[Any, Any]], Awaitable[None]]) -> None:
    async def use(app: Mainspring) -> None:
        instance = app.instance_at(str(ref_of(await find(app, identity))))
        await act(instance)
        row = await instance.row()
        if as_json:
            write_json(row)
        else:
            click.echo(f"{instance} is {row.status} (position {row.position})")

    with_app(address, use)
