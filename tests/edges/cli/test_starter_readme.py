"""What the README of a new project tells to type is typed, line by line, and does what it says.

In each run all but an installation, and a second server with those who ask it: a soak types these too.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.edges.cli.test_new import made
from tests.support.paths import ROOT

HERE = Path(sys.executable).parent
PATIENCE_S = 120
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What runs until it is stopped, and what it prints when it listens.
SERVERS = {"mainspring studio": "http://127.0.0.1:", "uvicorn": "Uvicorn running on http://127.0.0.1:"}
WRITTEN_PORT = "127.0.0.1:8000"
# One of the two workers has carried out what the approval led to.
ENDED = """
from day_off import app, workflow
with app.app.blocking(work=False) as blocking:
    blocking.instance(workflow.Leave, "r-1").result()
"""
# Another pip is not installed, and what it would build with is not fetched: ours has both.
CHEAPER = {
    "-m venv .venv": "-m venv --without-pip .venv",
    "pip install": "pip --python .venv/bin/python install --no-build-isolation",
}
NEVER = {"docker"}
# An installation, and a second server with those who ask it: a third of the time.
IN_A_SOAK = {*NEVER, "pip", "uvicorn", "curl"}
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")


class Terminals:
    """A shell for each block of a README: what one exports is not known in the next."""

    def __init__(
        self, folder: Path, environment: dict[str, str], servers: ExitStack, leave_out: Collection[str]
    ) -> None:
        self._folder, self._environment, self._servers = folder, environment, servers
        self._leave_out = leave_out
        self._port = WRITTEN_PORT
        self.printed: dict[str, str] = {}
        self.left_out: list[str] = []

    def type(self, block: str) -> None:
        before: list[str] = []
        for line in block.splitlines():
            command = re.split(r"\s+#", line)[0]
            program = command.split()[0]
            if program in self._leave_out:
                self.left_out.append(program)
            elif program in ("export", "."):
                before.append(command)
            elif server := next((server for server in SERVERS if command.startswith(server)), None):
                told = self._servers.enter_context(self._serving([*before, f"exec {command}"], SERVERS[server]))
                if server == "uvicorn":
                    self._port = ADDRESS.findall(told)[0]
            elif not shutil.which(program, path=self._environment["PATH"]):
                self.left_out.append(program)
            else:
                typed = command.replace(WRITTEN_PORT, self._port)
                for written, cheaper in CHEAPER.items():
                    typed = typed.replace(written, cheaper)
                self.printed[command] = self.run([*before, typed])

    def run(self, lines: list[str]) -> str:
        done = subprocess.run(  # noqa: S603  what stands in the README
            ["bash", "-ec", "\n".join(lines)],  # noqa: S607  whichever there is, as for a reader
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{lines[-1]}\n{done.stdout}"
        return done.stdout

    @contextmanager
    def _serving(self, lines: list[str], listens: str) -> Generator[str]:
        with subprocess.Popen(  # noqa: S603  as above
            ["bash", "-ec", "\n".join(lines)],  # noqa: S607  as above
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as server:
            try:
                yield _until(server, listens)
                server.send_signal(signal.SIGINT)  # Ctrl-C
                server.communicate(timeout=PATIENCE_S)
            finally:
                server.kill()


def _until(server: subprocess.Popen[str], listens: str) -> str:
    """Return what a server prints until it listens."""
    assert server.stdout is not None
    seen = ""
    for line in server.stdout:
        seen += line
        if listens in line:
            return seen
    raise AssertionError(f"it ended before it listened:\n{seen}")


def environment() -> dict[str, str]:
    """Return the environment of somebody who has this package and what it depends on, and whose pip fetches nothing."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "MAINSPRING", "PYTHON"))}
    return kept | {
        "PATH": f"{HERE}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(Path(pytest.__file__).parent.parent), str(ROOT / "src")]),
        "PYTHONUNBUFFERED": "1",
        "PIP_NO_INDEX": "1",
        "PYTEST_ADDOPTS": "-p no:schemathesis",  # a plugin that a reader does not have, and that takes a second
        "UVICORN_PORT": "0",
        "NO_COLOR": "1",
    }


@pytest.mark.parametrize("leave_out", [IN_A_SOAK, pytest.param(NEVER, marks=pytest.mark.soak)], ids=["most", "all"])
def test_what_a_new_projects_readme_tells_to_type_works(leave_out: set[str], tmp_path: Path) -> None:
    project = made(tmp_path)
    with ExitStack() as servers:
        found = environment()
        if "pip" in leave_out:  # what it would have installed is found all the same
            found["PYTHONPATH"] += f"{os.pathsep}{project}"
        terminals = Terminals(project, found, servers, leave_out)
        for block in BLOCK.findall((project / "README.md").read_text()):
            terminals.type(block)
        terminals.run([f"python -c '{ENDED}'"])

    printed = terminals.printed
    assert " passed" in printed["pytest"]
    assert "Leave/r-1/3" in printed["mainspring tasks list --role manager"]
    assert "Leave/r-1: " in printed["mainspring show r-1"]
    assert '"state":"AwaitingManager"' in printed.get(
        "curl http://127.0.0.1:8000/leave/r-2", '"state":"AwaitingManager"'
    )
    assert "nothing found" in printed["mainspring lint day_off.app:app"]
    assert re.match(r"DATABASE_PASSWORD=\w{48}\n", (project / ".env").read_text())
    assert set(terminals.left_out) <= {*leave_out, "curl"}
