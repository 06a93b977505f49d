"""Dead letters: messages that could not be carried out, kept whole with their reason."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable

import click

from mainspring import views
from mainspring.app import Mainspring
from mainspring.app.app import PAGE
from mainspring.app.given import LARGEST
from mainspring.app.internals import internals_of
from mainspring.app.undelivered import undelivered_in
from mainspring.app.viewing import letter_view
from mainspring.cli.failures import REFUSED, NotFoundError
from mainspring.cli.listing import LIMIT, PLACE
from mainspring.cli.loading import connected, with_app
from mainspring.cli.options import actor_option, app_option, examples, given, json_option
from mainspring.cli.output import clock, counted, visible, write_json, write_lines, write_table
from mainspring.errors import MainspringError
from mainspring.port.records import EDGE, DeadLetter

BAR_FROM = 20

force_option = click.option("--force", is_flag=True, help="Also what its instance has gone on without.")


@click.group(epilog=examples("mainspring dead-letters list", "mainspring dead-letters retry 17"))
def dead_letters() -> None:
    """List, show, retry, correct or discard messages that could not be carried out."""


@dead_letters.command("list", epilog=examples("mainspring dead-letters list --limit 20 --json"))
@click.option("--limit", type=LIMIT, default=PAGE, show_default=True, help="At most so many.")
@click.option("--after", type=PLACE, default=0, metavar="ID", help="Go on behind the last one seen.")
@json_option
@connected
async def list_letters(app: Mainspring, limit: int, after: int, as_json: bool) -> None:
    """List dead letters, the oldest first."""
    letters = [letter_view(row) for row in await internals_of(app).engine.store.dead_letters(limit, after)]
    if as_json:
        write_lines(letters)
    elif letters:
        write_table(
            ("id", "instance", "message", "time (UTC)", "attempts", "reason"),
            [
                (str(letter.id), letter.instance, letter.type, clock(letter.time), str(letter.attempts), letter.reason)
                for letter in letters
            ],
        )
    if len(letters) == limit and not as_json:
        click.echo(f"There may be more: --after {letters[-1].id}", err=True)
    if not letters:
        click.echo("There are no dead letters.", err=True)


@dead_letters.command("show", epilog=examples("mainspring dead-letters show 17"))
@click.argument("id", type=int)
@json_option
@connected
async def show_letter(app: Mainspring, id: int, as_json: bool) -> None:
    """Show a dead letter whole: its message, why it could not be carried out, and its last error."""
    letter = await _letter(app, id)
    if as_json:
        write_json(letter_view(letter))
    else:
        _write_letter(letter, letter_view(letter, internals_of(app).registry.codec))


def _write_letter(row: DeadLetter, letter: views.DeadLetter) -> None:
    body = undelivered_in(row).bytes if row.workflow == EDGE else row.body
    lines = {
        "dead letter": str(letter.id),
        "instance": letter.instance,
        "message": f"{letter.type} {body.decode(errors='backslashreplace')}",
        "headers": ", ".join(f"{name}={value}" for name, value in (letter.headers or {}).items()),
        "kind": letter.kind,
        "message id": letter.message_id,
        "time (UTC)": clock(letter.time),
        "actor": letter.actor or "",
        "attempts": str(letter.attempts),
        "reason": letter.reason,
        "error": letter.error or "",
        "unreadable": letter.unreadable or "",
    }
    for label, text in lines.items():
        if text:
            click.echo(f"{label + ':':13}{visible(text)}")


@dead_letters.command(
    "retry", epilog=examples("mainspring dead-letters retry 17 18", "mainspring dead-letters retry --all")
)
@click.argument("ids", metavar="[ID]...", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that there are now.")
@force_option
@actor_option
@json_option
@app_option
def retry_letters(
    ids: tuple[int, ...], everything: bool, force: bool, actor: str | None, as_json: bool, address: str
) -> int:
    """Carry dead letters out after all, under their old ids.

    An instance that such a failure has suspended goes on, unless it waits for something else too. Commands go back to a
    worker; inputs are taken at once, and stay dead letters if still no instance takes them. What its instance has gone
    on without (it has ended, was compensated, or has taken the failure) is refused and named, unless it is forced. Exit
    code 1 says that some were refused, or are dead letters still.
    """

    async def again(app: Mainspring, id: int) -> str | None:
        await app.retry_dead_letter(id, actor=actor, force=force)
        return await _still(app, id)

    return _each(address, ids, everything, as_json, "retried", again)


@dead_letters.command(
    "edit",
    epilog=examples(
        """mainspring dead-letters edit 17 '{"order_id": "o-1", "amount": 4200}'""",
        "mainspring dead-letters edit 17 - < corrected.json",
    ),
)
@click.argument("id", type=int)
@click.argument("body", metavar="JSON")
@force_option
@actor_option
@json_option
@connected
async def edit_letter(app: Mainspring, id: int, body: str, force: bool, actor: str | None, as_json: bool) -> int:
    """Correct a dead letter's message and carry it out. JSON may be - for standard input.

    A corrected input is taken under its old id. A corrected command is recorded in its instance's stream as Resent,
    with an id and an idempotency key of its own; an instance that its failure has suspended goes on, unless it waits
    for something else too. Exit code 1 says that it is a dead letter still.
    """
    letter = await _letter(app, id)
    text = given(body)
    message = internals_of(app).registry.codec.decode_outside(letter.type, letter.type_version, text)
    await app.retry_dead_letter(id, message, actor=actor, force=force)
    still = await _still(app, id)
    outcome = still or "corrected and retried"
    if as_json:
        write_json({"id": id, "done": still is None, "outcome": outcome})
    else:
        click.echo(f"dead letter {id}: {visible(outcome)}")
    return REFUSED if still else 0


@dead_letters.command("discard", epilog=examples("mainspring dead-letters discard 17"))
@click.argument("ids", metavar="[ID]...", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that there are now; asks for --yes too.")
@click.option("--yes", is_flag=True, help="Yes, all of them.")
@json_option
@app_option
def discard_letters(ids: tuple[int, ...], everything: bool, yes: bool, as_json: bool, address: str) -> int:
    """Remove dead letters for good."""
    if everything and not yes:
        raise click.UsageError("This removes all dead letters for good. Add --yes if that is meant.")

    async def away(app: Mainspring, id: int) -> None:
        await app.discard_dead_letter(id)

    return _each(address, ids, everything, as_json, "discarded", away)


def _each(
    address: str,
    ids: tuple[int, ...],
    everything: bool,
    as_json: bool,
    word: str,
    act: Callable[[Mainspring, int], Awaitable[str | None]],
) -> int:
    """Do something to dead letters, one by one, and say how each went: `act` returns what failed. Return the code."""
    if bool(ids) == everything:
        raise click.UsageError("Name dead letters by their ids, or write --all.")

    async def use(app: Mainspring) -> int:
        chosen = await _all_ids(app) if everything else [(await _letter(app, id)).id for id in dict.fromkeys(ids)]
        failed = 0
        hidden = len(chosen) < BAR_FROM or not sys.stderr.isatty()
        with click.progressbar(chosen, label=word, file=sys.stderr, hidden=hidden) as bar:
            for id in bar:
                problem = await _problem(app, id, act)
                failed += problem is not None
                outcome = problem or word
                if as_json:
                    write_json({"id": id, "done": problem is None, "outcome": outcome})
                elif not everything or problem is not None:
                    click.echo(f"dead letter {id}: {visible(outcome)}")
        if everything and not as_json:
            left = f", {failed:,} not" if failed else ""
            click.echo(f"{counted(len(chosen) - failed, 'dead letter')} {word}{left}")
        return REFUSED if failed else 0

    return with_app(address, use)


async def _problem(app: Mainspring, id: int, act: Callable[[Mainspring, int], Awaitable[str | None]]) -> str | None:
    """Return None when it went well, else why not; one that cannot be helped does not keep the others waiting."""
    try:
        return await act(app, id)
    except MainspringError as error:
        return str(error)


async def _still(app: Mainspring, id: int) -> str | None:
    """Return that what was retried was not taken, and why it is kept; None if it was taken."""
    left = await internals_of(app).engine.store.dead_letters(1, 0, [id])
    return f"is a dead letter still. It became one because: {left[0].reason}" if left else None


async def _all_ids(app: Mainspring) -> list[int]:
    found: list[int] = []
    while letters := await app.dead_letters(1_000, found[-1] if found else 0):
        found += [letter.id for letter in letters]
    return found


async def _letter(app: Mainspring, id: int) -> DeadLetter:
    letters = await internals_of(app).engine.store.dead_letters(1, 0, [id]) if 0 <= id <= LARGEST else []
    if not letters:
        raise NotFoundError(f"There is no dead letter {id}. `mainspring dead-letters list` shows which there are.")
    return letters[0]
