"""A process that is told to stop ends, whatever its handlers do about it."""

import signal
import time
from pathlib import Path

import pytest

from tests.edges.cli.conftest import Run, Start, order
from tests.support.ports import free_port

# As `shop`, but with a handler that does not let itself be stopped, and less patience with it and behind the drain.
STUBBORN = """
import asyncio, sys, threading, time
from mainspring.cli import ending
from mainspring.engine import runtime
from shop import app, ChargeCard

ending.CLOSE_SECONDS = runtime.CANCEL_SECONDS = 0.2

def swallowing():
    async def charge(command: ChargeCard):
        told(command)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
    return charge

def blocking():
    async def charge(command: ChargeCard):
        told(command)
        threading.Event().wait()
    return charge

def threaded():
    async def charge(command: ChargeCard):
        told(command)
        await asyncio.to_thread(threading.Event().wait)
    return charge

def told(command):
    sys.stderr.write(f"charging {command.order_id}\\n")
    sys.stderr.flush()

"""
DRAIN_SECONDS = 0.3
# What an idle machine needs to start an interpreter's end is less; a busy one's may take longer.
SLACK_SECONDS = 20
# So long behind its drain a worker once lived for such a handler.
ONCE_KEPT_SECONDS = 20


def stubborn(folder: Path, how: str, behind_drain_seconds: float) -> None:
    """Write the module `stubborn`, whose handler does not end."""
    use = f"ending.BEHIND_DRAIN_SECONDS = {behind_drain_seconds}\n"
    use += "from mainspring.app.internals import internals_of\ndel internals_of(app).registry.handlers['ChargeCard']\n"
    (folder / "stubborn.py").write_text(STUBBORN + use + f"app.handler(name='charge')({how}())\n")


def seconds_to_end(start: Start, run: Run, *command: str) -> tuple[int, float, str]:
    """Start a process, tell it to stop while its handler runs, and return its exit code, seconds and log."""
    process = start(*command)
    run("send", "PlaceOrder", order("o-1", 5))
    process.until("charging o-1")
    begun = time.monotonic()
    process.popen.send_signal(signal.SIGTERM)
    code = process.popen.wait(SLACK_SECONDS + 40)
    taken = time.monotonic() - begun
    process.end()
    return code, taken, process.log


def test_a_handler_that_swallows_its_cancellation_keeps_no_worker_alive(run: Run, start: Start, folder: Path) -> None:
    stubborn(folder, "swallowing", 30)

    code, seconds, log = seconds_to_end(start, run, "worker", "stubborn:app", "--drain", str(DRAIN_SECONDS))

    assert code == 0
    assert seconds < ONCE_KEPT_SECONDS
    assert "mainspring-charge goes on though it was cancelled" in log
    assert "stopped\n" in log
    # It was given back: nobody has to wait until the worker counts as dead.
    other = start("worker", "shop:app")
    other.until("charging o-1")
    other.popen.send_signal(signal.SIGTERM)
    assert other.end() == 0


@pytest.mark.parametrize("how", ["blocking", "threaded"])
def test_whatever_hangs_the_process_has_ended_soon_behind_its_drain(
    how: str, run: Run, start: Start, folder: Path
) -> None:
    stubborn(folder, how, 0.5)

    code, seconds, log = seconds_to_end(start, run, "worker", "stubborn:app", "--drain", str(DRAIN_SECONDS))

    assert code == 1
    assert seconds < DRAIN_SECONDS + 0.5 + SLACK_SECONDS
    assert "not stopped within 0.8 s: what this process has not given back, others take over" in log


def test_a_second_signal_ends_a_worker_whose_event_loop_stands_still(run: Run, start: Start, folder: Path) -> None:
    stubborn(folder, "blocking", 300)
    worker = start("worker", "stubborn:app")
    run("send", "PlaceOrder", order("o-1", 5))
    worker.until("charging o-1")

    worker.popen.send_signal(signal.SIGTERM)
    worker.popen.send_signal(signal.SIGINT)

    assert worker.popen.wait(SLACK_SECONDS) == 1


def test_a_studio_that_works_ends_though_a_handler_goes_on(run: Run, start: Start, folder: Path) -> None:
    stubborn(folder, "swallowing", 30)
    (folder / "quick.py").write_text(
        "from mainspring.app import app as apps\nfrom stubborn import app\n"
        "app.stop = lambda stop=app.stop: stop(apps.timedelta(seconds=0.3))\n"
    )

    code, seconds, log = seconds_to_end(start, run, "studio", "quick:app", "--work", "--port", "0")

    assert code == 0
    assert seconds < DRAIN_SECONDS + 4 + SLACK_SECONDS
    assert "mainspring-charge goes on though it was cancelled" in log


def test_a_worker_that_ends_promises_no_further_attempt(start: Start, folder: Path) -> None:
    (folder / "away.py").write_text(
        "from mainspring import Mainspring\nfrom shop import Tickets\n"
        f"app = Mainspring('postgresql://shop@127.0.0.1:{free_port()}/shop')\napp.add(Tickets())\n"
    )

    worker = start("worker", "away:app")

    assert worker.end() == 1
    assert "cannot be reached" in worker.lines[-1]
    assert "again" not in worker.lines[-1]
