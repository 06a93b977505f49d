"""The tests on every Python that the machine has, each in an environment of its own in build/everywhere."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MINORS = (11, 12, 13, 14)
PLACES = "build/everywhere"


def interpreters() -> dict[str, str]:
    """Return a Python for each version that mainspring is made for, where there is one."""
    found: dict[str, str] = {}
    for minor in MINORS:
        version = f"3.{minor}"
        managed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), reverse=True)
        for candidate in (shutil.which(f"python{version}"), *map(str, managed)):
            if candidate is not None and _version(candidate) == version:
                found[version] = candidate
                break
    return found


def _version(python: str) -> str | None:
    """Return an interpreter's version; None if it does not start, as a manager's stand-in for a missing one."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)  # noqa: S603  found here
    return done.stdout.strip() if done.returncode == 0 else None


def prepare(version: str, python: str) -> Path:
    """Make an environment from the lock file, and return its Python."""
    place = ROOT / PLACES / version
    own = place / "bin" / "python"
    if not own.exists():
        _run(python, "-m", "venv", str(place))
    uv = str(Path(sys.executable).with_name("uv"))
    install = (uv, "pip", "install", "--quiet", "--python", str(own))
    _run(*install, "--require-hashes", "-r", "requirements.lock")
    _run(*install, "--no-deps", "--no-build-isolation", "--editable", ".")
    return own


def resolvable(version: str) -> bool:
    """Tell whether all extras can be had together for a version, whether there is such a Python here or not."""
    uv = str(Path(sys.executable).with_name("uv"))
    command = (uv, "pip", "compile", "--quiet", "--all-extras", "--python-version", version, "pyproject.toml")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603  ours
    if done.returncode:
        sys.stderr.write(done.stderr)
    return done.returncode == 0


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603  ours


def main() -> None:
    """Resolve the extras for all versions, and run the tests on those that are here."""
    parser = argparse.ArgumentParser(prog="python -m release.everywhere", description=main.__doc__)
    parser.add_argument("tests", nargs="*", help="what to run (default: all)")
    arguments = parser.parse_args()
    outcomes = {f"extras for 3.{minor}": resolvable(f"3.{minor}") for minor in MINORS}
    here = interpreters()
    for version, python in here.items():
        own = prepare(version, python)
        command = (str(own), "-m", "pytest", "--numprocesses", "auto", "--dist", "worksteal", "-q", *arguments.tests)
        environment = os.environ | {"PATH": f"{own.parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603  ours
        outcomes[f"tests on {version}"] = done.returncode == 0
    for what, passed in outcomes.items():
        sys.stdout.write(f"{what:<20} {'passed' if passed else 'FAILED'}\n")
    for minor in MINORS:
        if f"3.{minor}" not in here:
            sys.stdout.write(f"tests on 3.{minor:<11} there is no such Python here\n")
    sys.exit(0 if all(outcomes.values()) else 1)


if __name__ == "__main__":
    main()
