"""The command line on the databases of the examples, called in this process."""

import json
import re
from typing import Any, NamedTuple

from click.testing import CliRunner

from mainspring.cli.group import commands
from tests.support.paths import ROOT

FINGERPRINT = re.compile(r"\b[0-9a-f]{16}\b")


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """What was written, without what is another on each machine, or with each comment in an example."""
        return FINGERPRINT.sub("0123456789abcdef", self.out.replace(f"{ROOT}/", ""))

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def command_line(address: str, *arguments: str, input: str | None = None) -> Ran:
    """Call a command, with an app of `example_apps` by its name or any other by its address."""
    app = address if ":" in address else f"tests.unit.analysis.example_apps:{address}"
    result = CliRunner().invoke(commands, ["--app", app, *arguments], input=input, prog_name="mainspring")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)
