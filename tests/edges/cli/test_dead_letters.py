import pytest

from mainspring import Mainspring
from tests.edges.cli.conftest import Run

REASON = "there is no instance Orders/o-1, and CardCharged may not begin one"


@pytest.fixture
def run(run: Run) -> Run:
    """The command line, after a message for an instance that is not there."""
    run("send", "CardCharged", '{"order_id": "o-1"}', "--id", "m-1")
    return run


def test_they_are_listed_with_their_reason(run: Run) -> None:
    assert run("dead-letters", "list").text == (
        "id  instance    message      time (UTC)               attempts  reason\n"
        f"1   Orders/o-1  CardCharged  2026-01-01 00:00:00.000  0         {REASON}\n"
    )


def test_each_is_a_json_line_for_programs(run: Run) -> None:
    (letter,) = run("dead-letters", "list", "--json").documents

    assert (letter["id"], letter["instance"], letter["message_id"]) == (1, "Orders/o-1", "m-1")
    assert letter["message"] == {"order_id": "o-1"}
    assert run("dead-letters", "show", "1", "--json").document == letter


def test_one_is_shown_whole(run: Run) -> None:
    assert run("dead-letters", "show", "1").text == (
        "dead letter: 1\n"
        "instance:    Orders/o-1\n"
        'message:     CardCharged {"order_id":"o-1"}\n'
        "kind:        command\n"
        "message id:  m-1\n"
        "time (UTC):  2026-01-01 00:00:00.000\n"
        "attempts:    0\n"
        f"reason:      {REASON}\n"
    )


def test_one_that_is_still_not_taken_stays_and_the_exit_code_says_so(run: Run) -> None:
    ran = run("dead-letters", "retry", "1")

    assert (ran.code, ran.out) == (1, f"dead letter 1: is a dead letter still. It became one because: {REASON}\n")


def test_one_that_is_named_twice_is_discarded_once(run: Run) -> None:
    ran = run("dead-letters", "discard", "1", "1")

    assert (ran.code, ran.out) == (0, "dead letter 1: discarded\n")


def test_who_retries_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    actors: list[str | None] = []

    async def retry_dead_letter(app: Mainspring, id: int, *, actor: str | None = None, force: bool = False) -> None:
        actors.append(actor)

    monkeypatch.setattr(Mainspring, "retry_dead_letter", retry_dead_letter)
    run("dead-letters", "retry", "1", "--actor", "ann")
    assert actors == ["ann"]


def test_discarding_removes_it_for_good(run: Run) -> None:
    assert run("dead-letters", "discard", "1").out == "dead letter 1: discarded\n"
    assert run("dead-letters", "list").err == "There are no dead letters.\n"


def test_discarding_all_asks_for_a_yes(run: Run) -> None:
    assert run("dead-letters", "discard", "--all").code == 2
    assert run("dead-letters", "discard", "--all", "--yes").out == "1 dead letter discarded\n"


def test_one_that_is_not_there_has_the_exit_code_for_that(run: Run) -> None:
    for command in ("show", "retry", "discard"):
        ran = run("dead-letters", command, "7")

        assert (ran.code, ran.out) == (3, "")
        assert ran.err.startswith("Error: There is no dead letter 7.")


def test_ids_or_all_must_be_named_and_not_both(run: Run) -> None:
    assert run("dead-letters", "retry").code == 2
    assert run("dead-letters", "retry", "1", "--all").code == 2


def test_one_is_corrected_and_carried_out(run: Run) -> None:
    run("send", "PlaceOrder", '{"order_id": "o-2", "amount": 5}')

    wrong = run("dead-letters", "edit", "1", '{"order": "o-2"}')
    # A byte that is no text, as a terminal hands it over.
    strange = run("dead-letters", "edit", "1", '{"order_id": "\udcff"}')
    still = run("dead-letters", "edit", "1", '{"order_id": "o-2"}')
    run("send", "PlaceOrder", '{"order_id": "o-1", "amount": 5}')
    done = run("dead-letters", "edit", "1", "-", "--json", "--actor", "ann", input='{"order_id": "o-1"}')

    assert wrong.code == 1
    assert "order_id" in wrong.err
    assert (strange.code, "UTF-8" in strange.err) == (1, True)
    assert (still.code, still.out) == (1, f"dead letter 1: is a dead letter still. It became one because: {REASON}\n")
    assert (done.code, done.document["done"]) == (0, True)
