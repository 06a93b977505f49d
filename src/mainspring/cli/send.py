"""Sending from outside: JSON that is read with the app's own types."""

from __future__ import annotations

from typing import Any

import click

from mainspring.app import Mainspring, Receipt
from mainspring.app.commands import command
from mainspring.app.internals import internals_of
from mainspring.app.outside import read_message, send_outside
from mainspring.cli.failures import REFUSED, MisuseError, one_line
from mainspring.cli.loading import with_app
from mainspring.cli.options import app_option, examples, given, json_option
from mainspring.cli.output import write_json
from mainspring.errors import CodecError, WiringError

UNHAPPY = {
    "suspended": "It is durable, but the instance is suspended ({error}): see {command}.",
    "dead letter": "No instance takes it, so it is kept as a dead letter: see `mainspring dead-letters list`.",
}


@click.command(
    epilog=examples(
        """mainspring send PlaceOrder '{"order_id": "o-1", "amount": 4200}'""",
        """mainspring send PlaceOrder '{"order_id": "o-1", "amount": 4200}' --id checkout-17""",
        "mainspring send PlaceOrder - < order.json",
    )
)
@click.argument("type_name", metavar="TYPE")
@click.argument("body", metavar="JSON")
@click.option("--id", "message_id", metavar="ID", help="The message's id: sent again, it is taken once.")
@click.option("--actor", metavar="NAME", help="Who sends it; decide may ask for that.")
@click.option("--must-exist", is_flag=True, help="Begin no instance, and keep no dead letter: fail if there is none.")
@click.option(
    "--expected-position",
    type=click.IntRange(min=0),
    metavar="N",
    help="Fail unless the stream ends there (`show` says where) and no input waits; 0 if it has not begun.",
)
@click.option("--workflow", metavar="NAME", help="Which workflow is meant, where several take the message.")
@json_option
@app_option
def send(
    type_name: str,
    body: str,
    message_id: str | None,
    actor: str | None,
    must_exist: bool,
    expected_position: int | None,
    workflow: str | None,
    as_json: bool,
    address: str,
) -> int:
    """Send a message to the workflow that takes it.

    TYPE is the name of a message type, JSON its fields; - reads them from standard input. The command ends when the
    message is durable, and says what became of it: stepped, accepted, duplicate, suspended or dead letter. The last two
    have exit code 1.
    """
    content = given(body)

    async def use(app: Mainspring) -> tuple[Receipt[Any], str | None]:
        message = message_from(app, type_name, content)
        receipt = await send_outside(
            internals_of(app),
            message,
            id=message_id,
            actor=actor,
            must_exist=must_exist,
            expected_position=expected_position,
            workflow=workflow,
        )
        return receipt, (await receipt.row()).error if receipt.status == "suspended" else None

    receipt, error = with_app(address, use)
    if as_json:
        document = {"instance": str(receipt), "status": receipt.status, "message_id": receipt.message_id}
        write_json({**document, "error": error})
    else:
        click.echo(f"{receipt} {receipt.status} ({receipt.message_id})")
    if receipt.status in UNHAPPY:
        click.echo(
            UNHAPPY[receipt.status].format(command=command("show", receipt), error=one_line(error or "")), err=True
        )
        return REFUSED
    return 0


def message_from(app: Mainspring, type_name: str, body: bytes) -> Any:
    """Return the message that a type's name and some JSON make, or say what is wrong with either.

    >>> from mainspring.testing.samples import Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> message_from(app, "Cuont", b"{}")
    Traceback (most recent call last):
    mainspring.cli.failures.MisuseError: No workflow takes Cuont. Did you mean Count?
    """
    try:
        return read_message(app, type_name, body)
    except (CodecError, WiringError) as error:
        raise MisuseError(one_line(str(error))) from None
