import asyncio
import re
import shutil
from pathlib import Path

import pytest

from mainspring import DoNotRetryError, Mainspring
from tests.edges.cli.conftest import Run, call, order
from tests.engine.jobs import QUICK, Done, Start, Work, has_status, job
from tests.support.waiting import until

SHOWN = """\
Orders/o-1: running, position 4, workflow version 1
position  time (UTC)               kind     direction  event        message
1         2026-01-01 00:00:00.000                      Began
2         2026-01-01 00:00:00.000  command  input      InitiatedBy  PlaceOrder(order_id='o-1', amount=5)
3         2026-01-01 00:00:00.000  command  output     Sent         ChargeCard(order_id='o-1', amount=5)
4         2026-01-01 00:00:00.000  timer    output     Scheduled    PaymentTimedOut(order_id='o-1') after 5 min

state: AwaitingPayment(amount=5)
"""

TRIED = """\
from mainspring import Mainspring
from tests.engine.jobs import Job, Work
app = Mainspring('sqlite:///tried.db')
app.add(Job())
app.external(Work)
"""


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which o-1 and o-2 were ordered."""
    place = tmp_path_factory.mktemp("orders")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        call("send", "PlaceOrder", order("o-1", 5), "--id", "m-1", "--app", "shop:app")
        call("send", "PlaceOrder", order("o-2", -1), "--id", "m-2", "--app", "shop:app")
    return place


@pytest.fixture
def run(run: Run, folder: Path, orders: Path) -> Run:
    """The command line, after o-1 and o-2 were ordered."""
    for path in orders.iterdir():
        shutil.copy(path, folder)
    return run


def test_show_tells_the_stream_the_state_and_what_it_waits_for(run: Run) -> None:
    ran = run("show", "Orders/o-1")

    stream, waiting = ran.text.split("\nwaits in")
    assert (ran.code, stream) == (0, SHOWN)
    assert re.fullmatch(
        r"  message +due +note\noutbox +ChargeCard +(now|\d.* ago)\ntimer +PaymentTimedOut +in \d.*\n", waiting
    )


def test_show_is_one_json_document_for_programs(run: Run) -> None:
    shown = run("show", "Orders/o-1", "--json").document

    assert (shown["instance"], shown["status"], shown["position"]) == ("Orders/o-1", "running", 4)
    assert shown["at"] == {"position": 4, "type": "AwaitingPayment", "state": {"amount": 5}, "problem": None}
    assert [event["event"] for event in shown["stream"]] == ["Began", "InitiatedBy", "Sent", "Scheduled"]
    assert shown["stream"][1]["message"] == {"order_id": "o-1", "amount": 5}
    assert (shown["stream"][1]["message_id"], shown["stream"][1]["state"]) == ("m-1", "AwaitingPayment")
    assert [event["message_id"] for event in shown["stream"][2:]] == ["Orders/o-1/3", "Orders/o-1/4"]
    assert (shown["stream"][3]["key"], shown["stream"][3]["after_seconds"]) == ("PaymentTimedOut", 300)
    assert [output["type"] for output in shown["outbox"]] == ["ChargeCard"]
    assert [timer["key"] for timer in shown["timers"]] == ["PaymentTimedOut"]


def test_a_bare_id_will_do_where_only_one_workflow_has_it(run: Run) -> None:
    assert run("show", "o-1").out.startswith("Orders/o-1: running")


def test_a_bare_id_that_two_workflows_have_is_asked_back(run: Run) -> None:
    run("send", "OpenTicket", '{"ticket": "o-1"}')

    ran = run("show", "o-1")

    assert ran.code == 2
    assert ran.err == "Error: Several workflows have an instance o-1: Orders/o-1, Tickets/o-1. Write which one.\n"


def test_an_id_with_a_slash_is_found_whole_and_bare(run: Run) -> None:
    run("send", "OpenTicket", '{"ticket": "Orders/o-1"}')

    assert run("state", "Orders/o-1").out == "AwaitingPayment(amount=5)\n"
    assert run("state", "Tickets/Orders/o-1").out == "New()\n"


def test_show_at_a_version_shows_the_stream_and_the_state_of_that_time(run: Run) -> None:
    ran = run("show", "o-1", "--at", "1")

    assert "position 1 of 4" in ran.out
    assert "InitiatedBy" not in ran.out
    assert "state: New()" in ran.out


def test_show_last_leaves_out_what_came_before(run: Run) -> None:
    events = run("show", "o-1", "--last", "2", "--json").document["stream"]

    assert [event["position"] for event in events] == [3, 4]


def test_a_suspended_instance_is_shown_with_its_error_and_what_to_do(run: Run) -> None:
    ran = run("show", "o-2")

    assert "suspended: ValueError: a negative amount" in ran.out
    assert "mainspring retry Orders/o-2" in ran.out


def test_an_instance_that_could_not_begin_says_why_and_since_when_on_every_command(run: Run) -> None:
    error = "ValueError: a negative amount"
    shown = run("show", "o-2").text
    for told in ("a stream begins with that", "It has stood still since 2026-01-01 00:00:00.000 (UTC).", error):
        assert told in shown
    assert f"suspended: {error}" in run("replay", "o-2").out
    assert error in run("ls").out
    assert re.search(rf"^0 +2026-01-01 00:00:00\.000 +Faulted +{error}", run("log", "o-2").text, re.MULTILINE)


def test_an_input_that_failed_is_shown_in_bounds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 'It failed at PlaceOrder {"order_id":"o-2","amount":-1} (m-2).' in run("show", "o-2").out
    monkeypatch.setattr("mainspring.cli.show.BODY_CHARACTERS", 12)
    assert 'It failed at PlaceOrder {"order_id":… (m-2).' in run("show", "o-2").out


def test_an_input_that_waits_behind_a_command_that_failed_is_not_called_the_one_that_failed(
    run: Run, folder: Path
) -> None:
    tried = ("--app", "tried:app")

    async def refuse(command: Work) -> Done:
        raise DoNotRetryError("refused")

    async def use() -> None:
        async with job(Mainspring(f"sqlite:///{folder / 'tried.db'}"), refuse) as app:
            await app.send(Start("j-1", times=2))
            await until(lambda: has_letters(app, 2))
            await app.send(Done("j-1", 7))

    async def has_letters(app: Mainspring, count: int) -> bool:
        return len(await app.dead_letters()) == count

    asyncio.run(use())
    (folder / "tried.py").write_text(TRIED)
    corrected, other = [letter["id"] for letter in run("dead-letters", "list", "--json", *tried).documents]
    assert run("dead-letters", "edit", str(corrected), '{"id": "j-1", "part": 8}', *tried).code == 0
    assert run("dead-letters", "discard", str(other), *tried).code == 0
    for options in ([], ["--last", "1"]):
        shown = run("show", "j-1", *options, *tried).out.splitlines()
        assert "It failed at" not in "\n".join(shown)
        assert shown[-1] == "`mainspring resume Job/j-1` lets it go on."


def test_a_dead_letter_that_an_instance_went_on_without_is_not_called_what_failed(run: Run, folder: Path) -> None:
    tried = ("--app", "tried:app")

    async def refuse(command: Work) -> Done:
        raise DoNotRetryError("refused")

    async def use() -> None:
        async with job(Mainspring(f"sqlite:///{folder / 'tried.db'}"), refuse) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))

    asyncio.run(use())
    (folder / "tried.py").write_text(TRIED)
    assert "What failed is a dead letter: 1 (Work)." in run("show", "j-1", *tried).out
    assert run("resume", "j-1", *tried).code == 0
    assert run("suspend", "j-1", "--reason", "we look", *tried).code == 0

    shown = run("show", "j-1", *tried).out.splitlines()

    assert shown[-2:] == ["suspended by ann: we look", "`mainspring resume Job/j-1` lets it go on."]


def test_state_prints_the_value_and_its_json(run: Run) -> None:
    assert run("state", "o-1").out == "AwaitingPayment(amount=5)\n"
    assert run("state", "o-1", "--at", "1").out == "New()\n"
    assert run("state", "o-1", "--json").document == {
        "instance": "Orders/o-1",
        "position": 4,
        "type": "AwaitingPayment",
        "state": {"amount": 5},
        "problem": None,
    }


def test_a_version_that_is_not_there_yet_is_a_usage_error(run: Run) -> None:
    ran = run("state", "o-1", "--at", "9")

    assert (ran.code, ran.err) == (2, "Error: Orders/o-1 has no position 9: it is at position 4.\n")


def test_an_instance_that_does_not_exist_has_an_exit_code_of_its_own(run: Run) -> None:
    for command in ("show", "state", "timers", "suspend", "resume", "retry", "skip", "cancel"):
        ran = run(command, "o-9")

        assert (ran.code, ran.out) == (3, "")
        assert ran.err == "Error: There is no instance o-9. Check the id, or send a message that begins it.\n"


def test_ls_lists_instances_in_columns(run: Run) -> None:
    assert run("ls").text == (
        "instance    status     state            workflow version  position  updated (UTC)            error\n"
        "Orders/o-1  running    AwaitingPayment  1                 4         2026-01-01 00:00:00.000\n"
        "Orders/o-2  suspended  New              1                 0         2026-01-01 00:00:00.000  "
        "ValueError: a negative amount\n"
    )


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--status", "suspended"], ["o-2"]),
        (["--workflow", "Tickets"], []),
        (["--state", "AwaitingPayment"], ["o-1"]),
        (["--workflow-version", "1"], ["o-1", "o-2"]),
        (["--workflow-version", "2"], []),
        (["--prefix", "o-2"], ["o-2"]),
        (["--prefix", "p"], []),
        (["--limit", "1"], ["o-1"]),
        (["--all"], ["o-1", "o-2"]),
    ],
    ids=" ".join,
)
def test_ls_narrows(run: Run, options: list[str], ids: list[str]) -> None:
    ran = run("ls", *options, "--json")

    assert ran.code == 0
    assert [line["id"] for line in ran.documents] == ids


def test_ls_goes_on_behind_the_last_key(run: Run) -> None:
    first = run("ls", "--limit", "1", "--json").documents[0]

    assert [line["id"] for line in run("ls", "--after", str(first["key"]), "--json").documents] == ["o-2"]
    assert run("ls", "--limit", "1").err == f"There may be more: --after {first['key']}\n"


def test_an_empty_list_says_where_it_looked(run: Run) -> None:
    ran = run("ls", "--prefix", "nobody")

    assert (ran.code, ran.out, ran.err) == (0, "", "No such instances in sqlite:///orders.db.\n")


def test_timers_are_listed_with_what_they_will_say(run: Run) -> None:
    run("send", "OpenTicket", '{"ticket": "t-1"}')

    ran = run("timers")

    assert re.fullmatch(
        r"instance    due \(UTC\) +that is +key +message\n"
        r"Orders/o-1  \S+ \S+  in \d.*  PaymentTimedOut  PaymentTimedOut {\"order_id\":\"o-1\"}\n",
        ran.out,
    )
    assert [timer["instance"] for timer in run("timers", "o-1", "--json").documents] == ["Orders/o-1"]
    assert run("timers", "t-1").err == "No timers wait in sqlite:///orders.db.\n"


def test_looking_carries_nothing_out(run: Run) -> None:
    for arguments in (["ls"], ["show", "o-1"], ["state", "o-1"], ["timers"], ["doctor"], ["dead-letters", "list"]):
        assert "charging" not in run(*arguments).err

    assert run("show", "o-1", "--json").document["position"] == 4


def test_a_stream_whose_types_are_gone_is_shown_all_the_same(run: Run, folder: Path) -> None:
    (folder / "other.py").write_text('from mainspring import Mainspring\napp = Mainspring("sqlite:///orders.db")\n')

    ran = run("show", "Orders/o-1", "--app", "other:app")

    assert 'PlaceOrder {"order_id":"o-1","amount":5}' in ran.out
    assert "state: this app has no workflow Orders" in ran.out
    assert run("state", "Orders/o-1", "--app", "other:app").code == 1


def test_log_tells_what_happened(run: Run) -> None:
    ran = run("log", "Orders/o-1")

    assert ran.code == 0
    assert re.search(r"^2 +2026-01-01 00:00:00\.000 +Started +PlaceOrder +AwaitingPayment", ran.text, re.MULTILINE)
    assert [line["what"] for line in run("log", "o-1", "--json").documents] == ["Started"]


def test_log_tells_of_attempts_that_failed(run: Run, folder: Path) -> None:
    async def refuse(command: Work) -> Done:
        raise ConnectionError("refused")

    async def use() -> None:
        async with job(Mainspring(f"sqlite:///{folder / 'tried.db'}"), refuse, retry=QUICK) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))

    asyncio.run(use())
    (folder / "tried.py").write_text(TRIED)
    ran = run("log", "j-1", "--app", "tried:app", "--json")

    lines = [line for line in ran.documents if line["what"] == "Attempted"]
    told = [(line["position"], line["command"], line["attempt"], line["about"]) for line in lines]
    assert told == [(3, "Work", number, "ConnectionError: refused") for number in (1, 2, 3)]
    assert re.search(
        r"^3 +\S+ \S+ +Attempted +Work: ConnectionError: refused +\S+",
        run("log", "j-1", "--app", "tried:app").text,
        re.MULTILINE,
    )
