"""The list of commands. A command's module is imported when the command is asked for, never for the list."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from mainspring.cli.failures import DEBUG, EXIT_CODES, debugging, told
from mainspring.cli.options import APP
from mainspring.errors import MainspringError


class Listed(NamedTuple):
    """Where a command stands in the list: its section, its module, and what it does."""

    section: str
    module: str
    summary: str


COMMANDS: Final = {
    "new": Listed("Run", "new", "Make a project to start from: a workflow, handlers, tests, an API, a compose file."),
    "worker": Listed("Run", "worker", "Run an app until it is stopped."),
    "demo": Listed("Run", "demo", "Show a small process that survives a restart, on a temporary file."),
    "send": Listed("Run", "send", "Send a message to the workflow that takes it."),
    "ls": Listed("Look", "listing", "List instances, in the order in which they began."),
    "show": Listed("Look", "show", "Show an instance: its stream, its state, and what it waits for."),
    "state": Listed("Look", "show", "Show the state of an instance."),
    "log": Listed("Look", "log", "Show what happened to an instance, who did it, and how long it took."),
    "reply": Listed("Look", "replies", "Show the reply to a request, also one that came too late."),
    "timers": Listed("Look", "listing", "List timers, the next one first."),
    "tasks": Listed("Look", "tasks", "List, claim, delegate, pick, complete or reject what people are asked to do."),
    "schedules": Listed("Look", "schedules", "List, pause, resume, remove or run what is sent by a calendar."),
    "sources": Listed("Look", "sources", "List, pause or resume where messages of other services come in."),
    "pauses": Listed("Look", "pauses", "List, pause or resume handlers and workflows, for all workers."),
    "dead-letters": Listed(
        "Look", "letters", "List, show, retry, correct or discard messages that could not be carried out."
    ),
    "projections": Listed("Look", "projections", "List, show or rebuild read models."),
    "studio": Listed("Look", "studio", "Serve a page, and an API, on which to see, debug and work."),
    "doctor": Listed("Look", "doctor", "Look for what is wrong: versions, queues, stuck instances, late timers."),
    "lint": Listed("Understand", "lint", "Look for mistakes in workflows: cases and timeouts that are missing."),
    "stats": Listed(
        "Understand", "stats", "Show figures of workflows: throughput, durations, failures, paths and costs."
    ),
    "stuck": Listed("Understand", "stuck", "List instances that seem stuck, and why."),
    "what-if": Listed("Understand", "what_if", "Show what would go otherwise if today's code had run all along."),
    "export": Listed("Understand", "export", "Write streams to a file: as JSON lines, or for process mining tools."),
    "replay": Listed(
        "Understand", "replay", "Walk through a stream: what every event made of the state, and the case."
    ),
    "explain": Listed("Understand", "replay", "Say why an instance decided as it did, with the cases that matched."),
    "counterfactual": Listed(
        "Understand", "counterfactual", "Replace, insert or drop an input, and see how the story would have gone."
    ),
    "record": Listed("Understand", "histories", "Keep streams in a file, as golden histories."),
    "verify": Listed("Understand", "histories", "Hold golden histories against today's code."),
    "diagram": Listed(
        "Understand", "diagram", "Draw the state diagram of a workflow, from its code, its history, or both."
    ),
    "docs": Listed("Understand", "docs", "Write documentation: a page for each workflow, and an index."),
    "suspend": Listed("Act", "operate", "Stop an instance from taking inputs; they queue."),
    "resume": Listed("Act", "operate", "Let a suspended instance take inputs again."),
    "retry": Listed("Act", "operate", "Take the input that failed once more, after the cause was mended."),
    "skip": Listed("Act", "operate", "Pass over the input that failed, and continue."),
    "cancel": Listed("Act", "operate", "End an instance from outside, and undo what it did."),
    "terminate": Listed("Act", "operate", "End an instance from outside at once, and undo nothing."),
    "reset": Listed(
        "Act", "operate", "Let an instance go back to an earlier position, as a new branch of its history."
    ),
    "migrate": Listed("Act", "operate", "Let an instance continue under another version of its workflow."),
    "bulk": Listed(
        "Act", "bulk", "Suspend, resume, retry, skip, cancel, terminate, reset or migrate many, found by a filter."
    ),
    "purge": Listed("Act", "purge", "Remove the streams of instances that ended long ago."),
}

HELP: Final = """\
Durable workflows in plain Python; your database is the engine.

Name the app once, then look at it from the directory in which its module lies:

\b
  export {app}=shop:app
  mainspring worker
  mainspring send PlaceOrder '{{"order_id": "o-1", "amount": 4200}}'
  mainspring show o-1
"""
EPILOG: Final = """\
\b
Exit codes:
{codes}

\b
Environment:
  {app}    the app, where --app does not name one
  MAINSPRING_ACTOR  who acts, where --actor does not say; not of send
  MAINSPRING_STUDIO_TOKENS  tokens for studio, NAME:ROLE:SECRET
  MAINSPRING_TELEMETRY      what to report: traces,metrics,meter,logs
  MAINSPRING_METRICS_TOKEN  what Prometheus has to show beyond loopback
  {debug}  1 shows errors with their tracebacks
  NO_COLOR          any value: no colours
"""


class Commands(click.Group):
    """The commands, in sections."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        listed = COMMANDS.get(cmd_name)
        if listed is None:
            return None
        return getattr(import_module(f"mainspring.cli.{listed.module}"), cmd_name.replace("-", "_"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in dict.fromkeys(listed.section for listed in COMMANDS.values()):
            with formatter.section(section):
                formatter.write_dl([(n, c.summary) for n, c in COMMANDS.items() if c.section == section])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. What it returns is the exit code."""
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader has seen enough. Python would complain once more when it flushes at exit: let it flush nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except MainspringError as error:
            if debugging():
                raise
            raise told(error) from None
        ctx.exit(code or 0)


@click.group(
    cls=Commands,
    help=HELP.format(app=APP),
    epilog=EPILOG.format(
        app=APP, debug=DEBUG, codes="\n".join(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items())
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-a", "--app", "address", metavar="MODULE:APP", envvar=APP, show_envvar=True, help="The app, as in shop:app."
)
@click.version_option(package_name="mainspring", prog_name="mainspring")
def commands(address: str | None) -> None:
    """Hold the option that may stand before every command."""


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that cannot show a character shows a ? for it; that is no reason to stop.
            reconfigure(errors="replace")
    commands.main(prog_name="mainspring")
