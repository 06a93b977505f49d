"""The reply to a request, also one that came too late for its caller."""

from __future__ import annotations

import click
from msgspec import Raw

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.failures import NotFoundError
from mainspring.cli.loading import connected
from mainspring.cli.options import examples, json_option
from mainspring.cli.output import visible, write_json
from mainspring.errors import OperationError


@click.command(epilog=examples("mainspring reply r-1", "mainspring reply r-1 --json"))
@click.argument("request", metavar="REQUEST")
@json_option
@connected
async def reply(app: Mainspring, request: str, as_json: bool) -> None:
    """Show the reply to a request, also one that came too late.

    REQUEST is the request's id. Its reply is kept for a day, whether or not a caller waited for it.
    """
    try:
        message = await app.reply(request)
    except OperationError as error:
        raise NotFoundError(str(error)) from None
    if as_json:
        encoded = internals_of(app).registry.codec.encode(message)
        write_json({"request": request, "type": encoded.name, "message": Raw(encoded.body)})
    else:
        click.echo(visible(repr(message)))
