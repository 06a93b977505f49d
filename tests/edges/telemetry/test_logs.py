"""Log lines that say what they are about: of the engine, and of handlers wherever they run."""

import json
import logging
from collections.abc import Generator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest

from mainspring import Mainspring, Retry
from mainspring.telemetry.logs import CAUSES, JsonLines, MessageFields, Seldom, TextLines
from tests.edges.telemetry.order_of_every_kind import Charge, Charged, PlaceOrder, shop
from tests.edges.telemetry.spans import Spans, trace_ids
from tests.support.running import run
from tests.support.waiting import until

log = logging.getLogger("tests.edges.telemetry.bank")


class Lines:
    """What was logged, as documents."""

    def __init__(self) -> None:
        self._stream = StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.handler.setFormatter(JsonLines())

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]

    def one(self, text: str) -> dict[str, Any]:
        [found] = [line for line in self.all if text in line["message"]]
        return found


@pytest.fixture
def lines() -> Generator[Lines]:
    made, root = Lines(), logging.getLogger()
    level = root.level
    root.addHandler(made.handler)
    root.setLevel(logging.INFO)
    yield made
    root.removeHandler(made.handler)
    root.setLevel(level)


def test_a_handlers_own_lines_say_which_message_it_is_at(lines: Lines) -> None:
    spans, done = Spans(), list[str]()
    app = shop(Mainspring("memory://"), wired=False)

    @app.handler(retry=Retry(first=timedelta(milliseconds=1)))
    async def charge(command: Charge) -> None:
        if not done:
            done.append("once")
            raise ConnectionError("the bank is closed")
        log.info("charging")
        done.append("twice")

    app.observe(logs=True, traces=spans.provider)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"), id="checkout-1")
            await until(lambda: len(done) == 2)

    run(main)
    [trace_id] = trace_ids(spans.all)
    about = {
        "workflow": "Orders",
        "instance": "o-1",
        "message_id": "Orders/o-1/3",
        "message_type": "Charge",
        "correlation_id": "checkout-1",
        "trace_id": f"{trace_id:032x}",
    }
    charging, failed = lines.one("charging"), lines.one("failed at attempt 1")
    assert {name: charging[name] for name in about} == about
    assert (charging["handler"], charging["attempt"], charging["level"]) == (charge.__qualname__, 2, "info")
    # The engine's own line about it says the same.
    assert {name: failed[name] for name in about} == about
    assert failed["attempt"] == 1


def test_a_plain_handlers_lines_say_it_in_their_thread(lines: Lines) -> None:
    app = shop(Mainspring("memory://"), wired=False)

    @app.handler
    def charge(command: Charge) -> Charged:
        log.info("charging in a thread")
        return Charged(command.id)

    app.observe(logs=True)

    async def main() -> None:
        async with app:
            await app.send_many([PlaceOrder(f"o-{n}") for n in range(3)])
            await until(lambda: sum("in a thread" in line["message"] for line in lines.all) == 3)

    run(main)
    assert {line["instance"] for line in lines.all if "in a thread" in line["message"]} == {"o-0", "o-1", "o-2"}


def test_a_step_that_fails_is_logged_with_its_message(lines: Lines) -> None:
    app = shop(Mainspring("memory://"))

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("bad-1"), id="m-1")
            await until(lambda: any("is suspended" in line["message"] for line in lines.all))

    run(main)
    suspended = lines.one("is suspended")
    assert (suspended["instance"], suspended["correlation_id"]) == ("bad-1", "m-1")
    assert "no idea" in suspended["error"]


def test_nothing_is_said_where_it_is_off(lines: Lines) -> None:
    said: list[str] = []
    app = shop(Mainspring("memory://"), wired=False)

    @app.handler
    async def charge(command: Charge) -> None:
        log.info("charging quietly")
        said.append(command.id)

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1"))
            await until(lambda: bool(said))

    run(main)
    assert set(lines.one("charging quietly")) == {"time", "level", "logger", "message"}


def test_a_format_of_ones_own_has_the_fields_by_the_filter() -> None:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s of %(workflow)s/%(instance)s, attempt %(attempt)s"))
    handler.addFilter(MessageFields())
    own = logging.getLogger("tests.edges.telemetry.own")
    own.addHandler(handler)
    own.warning("outside")
    own.warning("inside", extra={"mainspring": {"workflow": "Orders", "instance": "o-1", "attempt": 2}})
    own.removeHandler(handler)
    assert stream.getvalue().splitlines() == [
        "outside of None/None, attempt None",
        "inside of Orders/o-1, attempt 2",
    ]


def test_a_line_with_half_a_character_is_written_all_the_same() -> None:
    record = logging.makeLogRecord({"msg": "from %s", "args": ("a\ud800",), "mainspring": {"instance": "i\udfff"}})
    line = JsonLines().format(record)
    assert line.encode()
    assert json.loads(line)["message"] == "from a\ud800"


# ---- what hostile texts become

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028\r\n2026-01-31 12:00:00,000 INFO    mainspring: all is well"


def hostile_record(error: BaseException | None = None) -> logging.LogRecord:
    if error is None:
        return logging.makeLogRecord({"name": "shop", "levelname": "ERROR", "msg": "%s", "args": (HOSTILE,)})
    with pytest.raises(type(error)) as raised:
        raise error
    info = (type(error), error, raised.tb)
    return logging.makeLogRecord({"name": "shop", "levelname": "ERROR", "msg": "it failed", "exc_info": info})


def chained() -> ValueError:
    error = ValueError(HOSTILE)
    error.__cause__ = KeyError(HOSTILE)
    error.add_note(HOSTILE)
    return error


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


ERRORS: dict[str, BaseException | None] = {
    "message": None,
    "text": ValueError(HOSTILE),
    "chain": chained(),
    "group": ExceptionGroup(HOSTILE, [ValueError(HOSTILE), chained()]),
    "name": type("Bad\x1b[2JName", (Exception,), {})(HOSTILE),
    "unprintable": UnprintableError(),
    "syntax": SyntaxError(HOSTILE, ("a.py", 1, 1, HOSTILE)),
}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()], ids=["text", "json"])
def test_no_record_plays_with_a_terminal_or_passes_for_another(kind: str, formatter: logging.Formatter) -> None:
    text = formatter.format(hostile_record(ERRORS[kind]))

    lines = text.split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("2026-01-31") for line in lines)
    assert "all is well" in text or kind == "unprintable"


def test_a_traceback_stays_readable() -> None:
    lines = TextLines().format(hostile_record(ValueError("no"))).split("\n")

    assert lines[1] == "  Traceback (most recent call last):"
    assert lines[2].startswith('    File "')
    assert lines[-1] == "  ValueError: no"


def test_what_another_formatter_has_made_of_an_error_is_not_taken_over() -> None:
    record = hostile_record(ValueError(HOSTILE))
    logging.Formatter().format(record)  # it keeps its text in the record

    assert all(line.isprintable() for line in TextLines().format(record).split("\n"))


def warned(text: str, moment: float, level: int = logging.WARNING, error: Exception | None = None) -> logging.LogRecord:
    told = None if error is None else (type(error), error, None)
    return logging.makeLogRecord({"levelno": level, "msg": text, "created": moment, "exc_info": told})


def test_each_cause_has_some_lines_in_a_minute_and_what_was_left_out_is_counted() -> None:
    seldom = Seldom(lines=3)
    passed = [record for n in range(1_000) if seldom.filter(record := warned("no files left", n / 100))]
    assert [record.msg for record in passed] == [
        *["no files left"] * 2,
        "no files left (more of them within 60 s are left out)",
    ]
    assert seldom.filter(later := warned("no files left", 61))
    assert later.msg == "no files left (997 more like it were left out before)"


def test_another_cause_another_error_and_what_is_no_warning_pass_beside_it() -> None:
    seldom = Seldom(lines=1)
    assert seldom.filter(warned("failed", 0, error=OSError()))
    assert not seldom.filter(warned("failed", 1, error=OSError()))
    assert seldom.filter(warned("failed", 2, error=KeyError()))
    assert seldom.filter(warned("lost", 3))
    assert all(seldom.filter(warned("who did what", 4, logging.INFO)) for _ in range(100))


def test_no_more_causes_are_remembered_than_there_is_room_for() -> None:
    seldom = Seldom(lines=1)
    for n in range(CAUSES + 10):
        assert seldom.filter(warned(f"cause {n}", 0))
    assert seldom.filter(warned("cause 0", 1))  # it is forgotten
    assert not seldom.filter(warned(f"cause {CAUSES + 9}", 1))
