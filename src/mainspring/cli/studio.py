"""The studio: a page on which people see, debug and work, and the API behind it."""

from __future__ import annotations

import asyncio
import json
import os
import webbrowser
from socket import socket
from typing import TYPE_CHECKING, Final

import click

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.tuning import tune_process
from mainspring.cli.ending import LatestEnd, ended, heard_signals, left_with
from mainspring.cli.failures import MisuseError
from mainspring.cli.loading import load_app, shown_url
from mainspring.cli.options import chosen, examples, json_option
from mainspring.cli.worker import LEVELS, done_before, set_up_logging, started
from mainspring.engine.engine import DRAIN_SECONDS

if TYPE_CHECKING:
    from mainspring.web.server import Server

TOKENS: Final = "MAINSPRING_STUDIO_TOKENS"


@click.command(
    epilog=examples(
        "mainspring studio shop:app",
        "mainspring studio shop:app --work --open",
        f"{TOKENS}=ann:operator:… mainspring studio shop:app --host 0.0.0.0 --port 8420",
    )
)
@click.argument("address", metavar="[MODULE:APP]", required=False, callback=chosen)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port.  [default: 8420, or the next that is free]")
@click.option("--work", is_flag=True, help="Work as well: this process is a worker too.")
@click.option(
    "--token",
    "tokens",
    multiple=True,
    metavar="NAME:ROLE:SECRET",
    help=f"Let in who shows this secret, as a viewer, worker, operator or admin; repeatable.  [env var: {TOKENS}]",
)
@click.option("--hostname", "names", multiple=True, metavar="NAME", help="A name that it is reached by; repeatable.")
@click.option("--redact", multiple=True, metavar="FIELDS", help="Never show these fields: card,Register.email")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help="One of the server's limits, as connections=2000; repeatable.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option("--log-level", type=click.Choice(LEVELS), default="warning", show_default=True, help="How much to log.")
@json_option
def studio(
    address: str,
    host: str,
    port: int | None,
    work: bool,
    tokens: tuple[str, ...],
    names: tuple[str, ...],
    redact: tuple[str, ...],
    limits: tuple[str, ...],
    opens: bool,
    log_level: str,
    as_json: bool,
) -> int:
    """Serve a page, and an API, on which to see, debug and work.

    It listens on this machine alone, and then asks for no token. An address that others can reach needs tokens.
    Ctrl-C or SIGTERM lets requests that are under way finish, for 5 s at most. Without --work it sends and looks, and
    workers run elsewhere.
    """
    try:
        from mainspring.web import Access, read_tokens  # noqa: PLC0415  an extra
        from mainspring.web import server as serving  # noqa: PLC0415  as above
        from mainspring.web.connections import read_limits  # noqa: PLC0415  as above
        from mainspring.web.studio import studio as studio_of  # noqa: PLC0415  as above
    except ModuleNotFoundError as missing:
        raise MisuseError(f"The studio needs {missing.name}: install mainspring[web].") from None
    app = load_app(address)
    access = Access(tokens=[token for text in _tokens(tokens) for token in read_tokens(text)])
    serving.checked_host(host, access)
    limited = read_limits(limits)
    made = studio_of(
        app,
        access=access,
        redact=[field.strip() for several in redact for field in several.split(",")],
        hosts=serving.hosts_of(host, names),
        start=False,
    )
    set_up_logging(log_level, as_json)
    tune_process()
    with serving.bound(host, port) as listening:
        at = serving.address_of(listening)
        store = shown_url(internals_of(app).url)
        told = f"{address} on {store}: {at}  (Ctrl-C stops it)"
        if as_json:
            told = json.dumps({"app": address, "store": store, "address": at})
        LatestEnd(DRAIN_SECONDS)
        served = serve(app, serving.Server(made, limited), listening, told, at if opens else None, work=work)
        return left_with(asyncio.run(ended(served)))


def _tokens(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tokens of the command line and of the environment."""
    return (*given, os.environ.get(TOKENS, ""))


async def serve(app: Mainspring, server: Server, made: socket, told: str, opened: str | None, *, work: bool) -> int:
    """Serve until a signal, while the app runs. `told` is printed when it listens, and `opened` shown in a browser."""
    asked, urged, ready = asyncio.Event(), asyncio.Event(), asyncio.Event()
    with heard_signals(asked, urged):
        if not await started(app.start(work=work), asked):
            return 0
        try:
            serving = asyncio.create_task(server.run_on(made, ready))
            if not await done_before(serving, ready):
                click.echo(told)
                if opened is not None:
                    await asyncio.to_thread(webbrowser.open, opened)
            if not await done_before(serving, asked):
                server.stop()
            await serving
        finally:
            await app.stop()
        return 0
