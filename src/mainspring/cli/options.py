"""The options that commands share."""

from __future__ import annotations

import getpass
import math
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from mainspring.cli.failures import MisuseError

APP: Final = "MAINSPRING_APP"
ACTOR: Final = "MAINSPRING_ACTOR"
_NAMED: Final = "mainspring.app"

F = TypeVar("F", bound=Callable[..., Any])


class Number(click.FloatRange):
    """A number within limits, and not nan, which none of them keeps out.

    >>> Number(0, 10).convert("nan", None, None)
    Traceback (most recent call last):
    click.exceptions.BadParameter: nan is no number.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number that a text says."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is no number.", param, ctx)
        return number


def examples(*lines: str) -> str:
    r"""Return lines of commands as the end of a command's help.

    >>> examples("mainspring doctor")
    '\x08\nExamples:\n  mainspring doctor'
    """
    return "\b\n" + "\n".join(("Examples:", *(f"  {line}" for line in lines)))


def given(text: str) -> bytes:
    """Return JSON that was typed, byte by byte as it was; - stands for standard input."""
    return sys.stdin.buffer.read() if text == "-" else text.encode(errors="surrogateescape")


def chosen(context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """Return the app that this command, the whole command line or the environment names, in this order."""
    address = chosen_if_any(context, _parameter, value)
    if not address and not context.resilient_parsing:
        raise MisuseError(f"Which app? Name it with --app module:app, or set {APP}=module:app once.")
    return str(address)


def chosen_if_any(context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Return the app that is named, if one is."""
    named = context.meta.get(_NAMED)
    if value and named and value != named:
        raise MisuseError(f"Which app, {named} or {value}? Name one.")
    return value or named or context.find_root().params.get("address")


def _named(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    context.meta[_NAMED] = value


def app_argument(command: F) -> F:
    """Let the app be named without --app too, for a command that is about an app as a whole."""
    return click.argument(
        "named", metavar="[MODULE:APP]", required=False, callback=_named, expose_value=False, is_eager=True
    )(command)


def app_option(command: F) -> F:
    """Add --app."""
    return _app_option(chosen)(command)


def optional_app_option(command: F) -> F:
    """Add --app, for a command that has something to say without an app too."""
    return _app_option(chosen_if_any)(command)


def _app_option(callback: Callable[[click.Context, click.Parameter, str | None], str | None]) -> Callable[[F], F]:
    return click.option(
        "-a",
        "--app",
        "address",
        metavar="MODULE:APP",
        callback=callback,
        help=f"The app, as in shop:app.  [env var: {APP}]",
    )


def json_option(command: F) -> F:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON for programs.")(command)


def processes_option(command: F) -> F:
    """Add --processes, for a command that reads a whole store."""
    return click.option(
        "--processes", type=click.IntRange(1, 64), metavar="N", help="Share the work among N.  [default: one a core]"
    )(command)


def actor_option(command: F) -> F:
    """Add --actor, which is the user's login name unless it is given."""
    return click.option(
        "--actor",
        envvar=ACTOR,
        show_envvar=True,
        default=_login,
        metavar="NAME",
        help="Who does this; recorded.  [default: your login name]",
    )(command)


def _login() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        return None
