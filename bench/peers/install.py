"""`python -m bench.peers.install` puts the peers into environments of their own, under build/peers.

The project's own environment and lock know nothing of them. What cannot be installed is left out, with the reason.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PLACE = ROOT / "build" / "peers"
SECONDS = 600
PEERS = ("dbos", "restate")


class Unavailable(Exception):  # noqa: N818  no error: a reason to leave a peer out
    """A peer cannot be had here; the reason is the message."""


def installed(peer: str) -> Path:
    """Return where a peer is installed; install it first if it is not there as it should be."""
    folder = PLACE / peer
    if not is_installed(peer):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            _install(peer, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        _stamp(peer).write_text(_wanted(peer))
    return folder


def is_installed(peer: str) -> bool:
    """Return whether a peer is there in the pinned versions."""
    return _stamp(peer).is_file() and _stamp(peer).read_text() == _wanted(peer)


def python(peer: str) -> Path:
    return PLACE / peer / "bin" / "python"


def _stamp(peer: str) -> Path:
    return PLACE / peer / "installed"


def _files(peer: str) -> list[Path]:
    """Return the lists of what a peer is made of: Python's packages, and a server from a package of npm's."""
    return [path for name in (f"{peer}.txt", f"{peer}-server.txt") if (path := HERE / name).is_file()]


def _wanted(peer: str) -> str:
    return sys.version + "\n" + "\n".join(path.read_text() for path in _files(peer))


def _install(peer: str, folder: Path) -> None:
    uv = str(Path(sys.executable).parent / "uv")
    packages, *servers = _files(peer)
    _run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
    into = str(folder / "bin" / "python")
    _run(uv, "pip", "install", "--quiet", "--python", into, "--require-hashes", "-r", str(packages))
    for server in servers:
        # npm comes with the packages above: no machine need have it.
        quiet = ("--silent", "--no-audit", "--no-fund", "--prefix", str(folder / "server"))
        _run(str(folder / "bin" / "npm"), "install", *quiet, *server.read_text().split())


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603  ours
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise Unavailable(f"{Path(command[0]).name}: {reason}") from reason
    if done.returncode != 0:
        said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise Unavailable(f"{Path(command[0]).name}: {said[-1] if said else f'exit code {done.returncode}'}")


def main() -> None:
    for peer in sys.argv[1:] or PEERS:
        try:
            sys.stdout.write(f"{peer}: {installed(peer).relative_to(ROOT)}\n")
        except Unavailable as reason:
            sys.stdout.write(f"{peer}: not installed ({reason})\n")


if __name__ == "__main__":
    main()
