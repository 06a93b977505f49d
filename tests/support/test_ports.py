import socket
import subprocess
import sys

from tests.support import ports
from tests.support.paths import ROOT


def test_no_port_is_given_twice_not_even_by_two_processes() -> None:
    program = "from tests.support.ports import free_port; print(*(free_port() for _ in range(200))); input()"
    others = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  our own
        for _ in range(2)
    ]
    given = [ports.free_port() for _ in range(200)]
    for other in others:
        assert other.stdout is not None
        given += map(int, other.stdout.readline().split())
    for other in others:
        other.communicate(b"\n")
    assert len(given) == len(set(given)) == 600


def test_a_port_is_not_one_that_the_system_gives_to_clients() -> None:
    with socket.socket() as client:
        client.bind(("127.0.0.1", 0))
        assert ports.free_port() < client.getsockname()[1]
