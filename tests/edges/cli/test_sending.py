import re
import shlex

import pytest

from tests.edges.cli.conftest import Run, order


def test_a_sent_message_is_stepped_and_its_receipt_names_the_instance(run: Run) -> None:
    ran = run("send", "PlaceOrder", order("o-1", 5), "--id", "m-1")

    assert (ran.code, ran.out) == (0, "Orders/o-1 stepped (m-1)\n")


def test_the_receipt_is_json_for_programs(run: Run) -> None:
    ran = run("send", "PlaceOrder", order("o-1", 5), "--id", "m-1", "--json")

    assert ran.document == {"instance": "Orders/o-1", "status": "stepped", "message_id": "m-1", "error": None}


def test_a_dash_reads_the_message_from_standard_input(run: Run) -> None:
    ran = run("send", "PlaceOrder", "-", input=order("o-1", 5))

    assert ran.code == 0
    assert ran.out.startswith("Orders/o-1 stepped")


def test_a_former_name_of_a_type_will_do(run: Run) -> None:
    assert run("send", "OrderPlaced", order("o-1", 5)).code == 0


def test_the_same_id_and_message_again_is_a_duplicate_and_no_error(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5), "--id", "m-1")

    ran = run("send", "PlaceOrder", order("o-1", 5), "--id", "m-1")

    assert (ran.code, ran.out) == (0, "Orders/o-1 duplicate (m-1)\n")


def test_the_same_id_with_another_message_is_refused(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5), "--id", "m-1")

    ran = run("send", "PlaceOrder", order("o-1", 6), "--id", "m-1")

    assert ran.code == 1
    assert ran.err.startswith("Error: Orders/o-1 has taken another message with the id 'm-1'.")


def test_what_must_exist_and_does_not_is_an_error_and_no_dead_letter(run: Run) -> None:
    ran = run("send", "CardCharged", '{"order_id": "o-9"}', "--must-exist")

    assert ran.code == 3
    assert ran.err.startswith("Error: There is no instance Orders/o-9.")
    assert "CardCharged" not in run("dead-letters", "list").out


def test_an_instance_that_is_not_where_it_was_seen_is_an_error_that_says_where_it_is(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))

    ran = run("send", "CardCharged", '{"order_id": "o-1"}', "--expected-position", "1")

    assert ran.code == 1
    assert "and not at 1. Read it again, and decide again" in ran.err


def test_a_message_whose_decide_fails_is_durable_and_the_receipt_says_why_it_waits(run: Run) -> None:
    ran = run("send", "PlaceOrder", order("o-1", -1), "--id", "m-1")

    assert (ran.code, ran.out) == (1, "Orders/o-1 suspended (m-1)\n")
    assert "ValueError: a negative amount" in ran.err
    assert "Traceback" not in ran.err


def test_a_message_that_no_instance_takes_is_kept_as_a_dead_letter(run: Run) -> None:
    ran = run("send", "CardCharged", '{"order_id": "o-9"}')

    assert ran.code == 1
    assert "dead-letters list" in ran.err


def test_the_actor_of_a_message_stands_in_the_stream(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5), "--actor", "bob")

    assert run("show", "o-1", "--json").document["stream"][1]["actor"] == "bob"


def test_an_unknown_type_is_met_with_the_one_that_was_meant(run: Run) -> None:
    ran = run("send", "PlaceOder", "{}")

    assert (ran.code, ran.err) == (2, "Error: No workflow takes PlaceOder. Did you mean PlaceOrder?\n")


def test_a_type_like_no_other_is_met_with_the_list(run: Run) -> None:
    ran = run("send", "Zebra", "{}")

    assert ran.err == (
        "Error: No workflow takes Zebra. "
        "There are: CardCharged, OpenTicket, OrderPlaced, PaymentTimedOut, PlaceOrder.\n"
    )


def test_json_that_does_not_fit_is_a_usage_error_of_one_line(run: Run) -> None:
    for body in ("{", '{"order_id": "o-1"}', '{"order_id": "o-1", "amount": "5"}', '{"amount": 1, "amount": 2}'):
        ran = run("send", "PlaceOrder", body)

        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("Error: PlaceOrder: ")
        assert ran.err.count("\n") == 1


# ---- commands that are suggested

STRANGE = [
    "o 1",
    "o-1; touch owned",
    "$(touch owned)",
    "`touch owned`",
    "it's",
    'say "no"',
    "a\\b",
    "*",
    "~",
    "a/-b",
    "#1",
]


def suggested(text: str, verb: str) -> list[str]:
    """Return the words that a shell would make of a suggested command; a backquote inside it is quoted by then."""
    (found,) = re.findall(rf"`(mainspring {verb} .*?)`(?:[.; ]|$)", text, re.MULTILINE)
    return shlex.split(found)


@pytest.mark.parametrize("id", STRANGE)
def test_a_suggested_command_means_the_instance_and_nothing_else_to_a_shell(id: str, run: Run) -> None:
    told = run("send", "PlaceOrder", order(id, -1))

    show = suggested(told.err, "show")
    assert show == ["mainspring", "show", f"Orders/{id}"]
    shown = run(*show[1:])
    assert shown.code == 0
    assert suggested(shown.out, "retry") == ["mainspring", "retry", f"Orders/{id}"]
    assert suggested(shown.out, "skip") == ["mainspring", "skip", f"Orders/{id}"]


def test_a_workflow_is_named_where_several_take_the_message(run: Run) -> None:
    ran = run("send", "PlaceOrder", order("o-1", 5), "--workflow", "Orders")
    refused = run("send", "PlaceOrder", order("o-2", 5), "--workflow", "Parcels")

    assert (ran.code, ran.out.split()[0]) == (0, "Orders/o-1")
    assert refused.code != 0
    assert "No workflow 'Parcels' takes PlaceOrder. It is taken by Orders." in refused.err
