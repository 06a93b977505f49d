import os
import subprocess
import sys

import pytest

from tests.support.stalls import Stalls, again_if_stalled


def failing(times: int, tried: list[int]) -> None:
    tried.append(times)
    assert len(tried) > times


def test_one_that_fails_without_a_stall_has_failed() -> None:
    tried: list[int] = []
    with pytest.raises(AssertionError):
        again_if_stalled(lambda _: failing(1, tried), 60.0)(None)
    assert len(tried) == 1


def test_one_that_fails_while_stalled_begins_anew_but_not_for_ever() -> None:
    tried: list[int] = []
    again_if_stalled(lambda _: failing(2, tried), 0.0)(None)
    assert len(tried) == 3
    with pytest.raises(AssertionError):
        again_if_stalled(lambda _: failing(99, tried), 0.0)(None)


def test_a_process_that_is_stopped_for_a_while_is_stalled_for_so_long() -> None:
    # Another process lets this one go on, after a time that it alone can measure.
    program = f"import os, signal, time; os.kill({os.getpid()}, signal.SIGSTOP); time.sleep(0.5); "
    program += f"os.kill({os.getpid()}, signal.SIGCONT)"
    with Stalls() as stalls:
        subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603  our own
    assert stalls.longest > 0.4
