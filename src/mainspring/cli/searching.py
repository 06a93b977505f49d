"""The options by which instances are looked for."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, get_args

import click

from mainspring.app.given import LARGEST
from mainspring.app.search import Search, read_condition, read_moment
from mainspring.cli.failures import MisuseError
from mainspring.errors import SettingError
from mainspring.port.attributes import Condition
from mainspring.port.records import Status

F = TypeVar("F", bound=Callable[..., Any])

_AGO: Final = re.compile(r"(\d+)([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
TIMES: Final = "a time such as 2026-01-31T09:00Z, or 2h (ago; s, m, h or d)."

_OPTIONS: Final = (
    click.option("--workflow", metavar="NAME", help="Only instances of this workflow."),
    click.option(
        "--workflow-version",
        type=click.IntRange(1, LARGEST),
        metavar="N",
        help="Only instances that run under this version of their workflow.",
    ),
    click.option("--status", type=click.Choice(get_args(Status)), help="Only instances with this status."),
    click.option("--state", metavar="NAME", help="Only instances in a state of this type."),
    click.option("--prefix", metavar="TEXT", help="Only instances whose id begins so."),
    click.option(
        "--attribute",
        multiple=True,
        metavar="NAME=VALUE",
        help="Only instances with this attribute; also < <= > >= with numbers and times. A text that looks like a "
        "number stands in quotes: \"zip='0815'\".",
    ),
    click.option("--error", metavar="TEXT", help="Only instances whose error has this in it."),
    click.option("--since", metavar="TIME", help=f"Only instances that moved since {TIMES}"),
    click.option("--until", metavar="TIME", help="Only instances that last moved before."),
    click.option("--began-since", metavar="TIME", help="Only instances that began since."),
    click.option("--began-until", metavar="TIME", help="Only instances that began before."),
)


def search_options(command: F) -> F:
    """Add the options, and let the command take what they say as `search`."""

    @functools.wraps(command)
    def collected(
        workflow: str | None,
        workflow_version: int | None,
        status: Status | None,
        state: str | None,
        prefix: str | None,
        attribute: tuple[str, ...],
        error: str | None,
        since: str | None,
        until: str | None,
        began_since: str | None,
        began_until: str | None,
        **others: Any,
    ) -> Any:
        search = Search(
            workflow=workflow,
            workflow_version=workflow_version,
            status=status,
            state=state,
            id_prefix=prefix,
            attributes=[condition(text) for text in attribute],
            error=error,
            created_from=time_of(began_since),
            created_to=time_of(began_until),
            updated_from=time_of(since),
            updated_to=time_of(until),
        )
        return command(search=search, **others)

    decorated: Any = collected
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def condition(text: str) -> Condition:
    """Return an attribute as it is written on a command line.

    >>> condition("amount>=1000")
    ('amount', '>=', 1000)
    """
    try:
        return read_condition(text)
    except SettingError:
        raise MisuseError(
            f"--attribute {text!r} is no comparison. Write it as customer=c-7 or 'amount>=1000'."
        ) from None


def time_of(text: str | None) -> datetime | None:
    """Return a time as it is written on a command line: `2026-01-31T09:00Z`, or how long ago, `2h`.

    >>> time_of("2026-01-31T09:00Z").hour
    9
    """
    if text is None:
        return None
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return read_moment(text)
    except (ValueError, OverflowError):
        raise MisuseError(f"{text!r} is no time. Use {TIMES}") from None
