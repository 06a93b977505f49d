import json
import os
import signal
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import apsw
import pytest

from tests.edges.cli.conftest import Run, Start, order


def test_sigterm_lets_the_running_handler_finish_and_ends_with_zero(run: Run, start: Start, folder: Path) -> None:
    worker = start("worker", "shop:app")
    worker.until("serves shop:app on sqlite:///orders.db: Orders, Tickets, 2 handlers")
    run("send", "PlaceOrder", order("o-1", 99))
    worker.until("charging o-1")

    worker.popen.send_signal(signal.SIGTERM)
    worker.until("stopping")
    (folder / "open").touch()

    assert worker.end() == 0
    assert worker.lines[-1].endswith("mainspring.worker: stopped\n")
    shown = run("show", "o-1")
    assert "Orders/o-1: completed, position 7" in shown.out
    assert "Receipt(amount=99)" in shown.out


def test_a_second_signal_stops_at_once_though_a_handler_hangs(run: Run, start: Start) -> None:
    run("send", "PlaceOrder", order("o-1", 77))
    worker = start("worker", "shop:app", "--name", "w-1", "--json")
    worker.until("hanging o-1")

    worker.popen.send_signal(signal.SIGINT)
    worker.until("stopping")
    worker.popen.send_signal(signal.SIGINT)

    assert worker.end() == 1
    logged = [json.loads(line) for line in worker.lines if line.startswith("{")]
    assert logged[-1]["message"] == "stopped at once: what was running runs again"
    assert run("doctor", "--json").document["outbox"] == 1


def test_a_worker_that_meets_a_newer_schema_says_so_and_ends_with_one(start: Start, folder: Path) -> None:
    (folder / "quick.py").write_text(
        "from mainspring.engine import engine\nfrom shop import app\nengine.HEARTBEAT_SECONDS = 0.05\n"
    )
    worker = start("worker", "quick:app")
    worker.until("serves")

    with apsw.Connection(str(folder / "orders.db")) as other:
        other.set_busy_timeout(5_000)
        other.execute("INSERT INTO schema_migrations (version, name, applied_us) VALUES (99, 'later', 0)")

    worker.until("gives back what it holds")
    assert worker.end() == 1
    assert "has schema version 99" in worker.lines[-1]
    assert worker.lines[-1].endswith("Upgrade mainspring here, or use a database of this release.\n")


def test_a_worker_takes_up_what_an_operator_has_mended(run: Run, start: Start, folder: Path) -> None:
    worker = start("worker")
    worker.until("serves")
    run("send", "PlaceOrder", order("o-1", -1))
    (folder / "mended").touch()

    run("retry", "o-1")
    worker.until("charging o-1")

    worker.popen.send_signal(signal.SIGTERM)
    assert worker.end() == 0


def test_a_dead_letter_of_a_handler_is_retried_under_its_old_id(run: Run, start: Start) -> None:
    run("send", "PlaceOrder", order("o-1", 13))
    worker = start("worker", "--pool", "default")
    worker.until("failed for good")
    worker.popen.send_signal(signal.SIGTERM)
    assert worker.end() == 0
    assert run("dead-letters", "list", "--json").document["message_id"] == "Orders/o-1/3"
    advice = run("show", "o-1").out.splitlines()[-2:]
    assert advice[0].startswith(
        "What failed is a dead letter: 1 (ChargeCard). Mend the cause, then `mainspring dead-letters retry`"
    )
    assert advice[1] == "with the last of them the instance continues. If not, `mainspring resume Orders/o-1` lets it."

    assert run("dead-letters", "retry", "--all").out == "1 dead letter retried\n"

    again = start("worker")
    again.until("charging o-1")
    again.until("failed for good")
    again.popen.send_signal(signal.SIGTERM)
    assert again.end() == 0
    assert run("dead-letters", "list", "--json").document["message_id"] == "Orders/o-1/3"


def test_a_worker_warns_of_a_pool_without_handlers(start: Start) -> None:
    worker = start("worker", "--pool", "defualt")

    worker.until("no handler is in the pool defualt")

    worker.popen.send_signal(signal.SIGTERM)
    assert worker.end() == 0


def test_a_worker_is_scraped_and_its_lines_say_what_they_are_about(run: Run, start: Start) -> None:
    run("send", "PlaceOrder", order("o-1", 13))
    worker = start("worker", "--metrics-port", "0", "--json")
    worker.until("metrics at ")
    address = json.loads(worker.lines[-1])["message"].removeprefix("metrics at ")
    worker.until("failed for good")
    failed = json.loads(worker.lines[-1])
    assert (failed["workflow"], failed["instance"], failed["attempt"]) == ("Orders", "o-1", 1)

    with urlopen(address) as answer:  # noqa: S310  the worker's own
        assert b"mainspring_handler_attempts_total{" in answer.read()

    worker.popen.send_signal(signal.SIGTERM)
    assert worker.end() == 0


def test_reload_hands_on_every_option(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run_reloading(command: list[str], *_: Any) -> int:
        commands.append(command[4:])
        return 0

    monkeypatch.setattr("mainspring.cli.worker.run_reloading", run_reloading)
    options = ["--pool=mail", "--pool=reports", "--name=w-1", "--drain=7.0", "--log-level=error", "--json"]
    options += ["--metrics-port=0", "--metrics-host=127.0.0.2"]

    assert run("worker", "shop:app", "--reload", *options).code == 0
    assert commands == [["shop:app", *options]]


def test_reload_starts_the_worker_again_when_the_code_changes(start: Start, folder: Path) -> None:
    worker = start("worker", "shop:app", "--reload")
    worker.until("serves")

    os.utime(folder / "shop.py", (1, 1))
    worker.until("shop.py changed: restarting the worker")
    worker.until("stopped")
    worker.until("serves")

    worker.popen.send_signal(signal.SIGTERM)
    assert worker.end() == 0


def test_reload_waits_for_a_broken_module_to_be_mended(start: Start, folder: Path) -> None:
    (folder / "typo.py").write_text("app = = 1\n")
    worker = start("worker", "typo:app", "--reload")
    worker.until("it is started again when a .py file changes")

    (folder / "typo.py").write_text("from shop import app\n")
    worker.until("serves typo:app")

    worker.popen.send_signal(signal.SIGTERM)
    assert worker.end() == 0


def test_a_worker_whose_app_cannot_start_says_why(start: Start, folder: Path) -> None:
    (folder / "orders.db").mkdir()

    worker = start("worker", "shop:app")

    assert worker.end() == 1
    assert worker.lines[-1].startswith("Error: ")
    assert "Traceback" not in worker.log


HOSTILE = """
from mainspring import Retry
from mainspring.app.internals import internals_of
from shop import app

internals_of(app).registry.handlers.pop("ChargeCard")

@app.handler(retry=Retry(max_attempts=1))
async def charge(command: __import__("shop").ChargeCard) -> None:
    raise ValueError("\\x1b]0;owned\\x07\\x1b[2J\\n2026-01-31 12:00:00,000 INFO    mainspring: all is well")
"""


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_what_an_error_quotes_is_no_code_for_the_terminal_and_no_line_of_its_own(
    form: tuple[str, ...], run: Run, start: Start, folder: Path
) -> None:
    (folder / "hostile.py").write_text(HOSTILE)
    run("send", "PlaceOrder", order("o-1", 5))
    worker = start("worker", "hostile:app", *form)
    worker.until("all is well")
    worker.popen.send_signal(signal.SIGTERM)
    worker.end()

    assert all(line.rstrip("\n").isprintable() for line in worker.lines)
    assert not any(line.startswith("2026-01-31 12:00:00,000") for line in worker.lines)
