"""Other stories: with another input, without one, with one more."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from examples.expense_approval.workflow import ApproveExpense, Expense, SubmitExpense
from examples.order_processing.workflow import (
    PAYMENT_PATIENCE,
    Abandoned,
    CardCharged,
    CardDeclined,
    ChargeCard,
    New,
    OrderProcessing,
    OrderValidated,
    PaymentTimedOut,
    ShippingOverdue,
)
from mainspring import Kind, Mainspring
from mainspring.analysis.replay.counterfactual import Counterfactual, counterfactual
from mainspring.analysis.replay.retelling import Edit
from mainspring.app.internals import internals_of
from mainspring.core.events import Failed, Received, Scheduled
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.errors import OperationError
from mainspring.port.records import InstanceFilter, Ref
from tests.engine.coordination.family import PlanTrip, Sum, adding, travel
from tests.support.running import run
from tests.unit.analysis import example_apps
from tests.unit.analysis.approved import approved
from tests.unit.analysis.claims import Asker, Claim, Claims, Knock, Note, Shift, Tick, UnderReview, Worked, app_of
from tests.unit.analysis.command_line import command_line
from tests.unit.analysis.quiet import quiet

CHARGE_TAKES = timedelta(seconds=len("charge_card"))
INSTANCES = 12
LATE_US = 1 << 60


def stories(folder: Path, example: str, make: Any) -> list[Any]:
    """Return what `make(entry, ref, rows)` returns for every instance of an example."""

    async def body() -> list[Any]:
        app = Mainspring(f"sqlite:///{folder / example}.db")
        app.add(*(workflow() for workflow in example_apps.WORKFLOWS[example]))
        for handler in example_apps.HANDLERS[example]:
            app.handler(handler)
        await app.start(work=False)
        try:
            found: list[Any] = []
            for row in await internals_of(app).engine.store.instances(InstanceFilter(), INSTANCES):
                ref = Ref(row.workflow, row.id)
                rows = live(await whole_stream(internals_of(app).engine.store, ref))
                entry = internals_of(app).registry.workflows.get(row.workflow)
                if entry is not None:
                    found += make(entry, ref, rows)
            return found
        finally:
            await app.stop()

    return run(body)


def unchanged(entry: Any, ref: Ref, rows: Any) -> list[tuple[str, Counterfactual]]:
    """Replace each input by itself."""
    events = [(row, entry.recorder.event(row)) for row in rows]
    last_us = max(row.time_us for row in rows)
    return [
        (
            f"{ref} at {row.version}",
            counterfactual(entry, ref, rows, Edit("replace", row.version, event.message), last_us),
        )
        for row, event in events
        if isinstance(event, Received)
    ]


@pytest.mark.parametrize("example", list(example_apps.WORKFLOWS))
def test_an_input_replaced_by_itself_tells_the_recorded_story(example_databases: Path, example: str) -> None:
    found = stories(example_databases, example, unchanged)

    assert found
    for name, story in found:
        assert (story.differs_at, story.error, story.unanswered) == (None, None, ()), name
        assert story.state == story.recorded_state, name
        assert [entry.event for entry in story.told] == [entry.event for entry in story.recorded], name


def test_children_and_fan_outs_answer_as_they_did(tmp_path: Path) -> None:
    async def body() -> list[tuple[str, Counterfactual]]:
        async with adding(travel(Mainspring(f"sqlite:///{tmp_path / 'family.db'}"))) as app:
            await app.send(PlanTrip("t-1", ("book", "silent", "fail", "deep")))
            adder = await app.send(Sum("s-1", (1, 2, 3)))
            await adder.result()
            await quiet(app)
            found: list[tuple[str, Counterfactual]] = []
            for ref in (Ref("Trip", "t-1"), Ref("Adder", "s-1")):
                rows = live(await whole_stream(internals_of(app).engine.store, ref))
                found += unchanged(internals_of(app).registry.workflows[ref.workflow], ref, rows)
            return found

    found = run(body)

    assert {name for name, _ in found} >= {"Trip/t-1 at 2", "Adder/s-1 at 2", "Adder/s-1 at 4"}
    for name, story in found:
        assert (story.differs_at, story.error, story.unanswered, story.untaken) == (None, None, (), ()), name


# ---- one story at a time


def story(folder: Path, example: str, instance: str, edit: Edit, until_us: int = LATE_US) -> Counterfactual:
    def make(entry: Any, ref: Ref, rows: Any) -> list[Counterfactual]:
        return [counterfactual(entry, ref, rows, edit, until_us)] if str(ref) == instance else []

    [found] = stories(folder, example, make)
    return found


def told(found: Counterfactual) -> list[str]:
    return [type(entry.event).__name__ for entry in found.told]


def test_without_an_answer_the_timer_fires_and_what_was_done_is_undone(example_databases: Path) -> None:
    found = story(example_databases, "order_processing", "OrderProcessing/order-0", Edit("drop", 7))

    assert told(found) == ["Received", "Published", "Compensating", "Sent", "Compensated", "Failed"]
    assert found.told[0].event == Received(PaymentTimedOut("order-0"))
    assert found.recorded[0].time is not None
    assert found.told[0].time == found.recorded[0].time - CHARGE_TAKES + PAYMENT_PATIENCE
    assert [entry.position for entry in found.assumed] == [10]
    assert (found.differs_at, found.state) == (7, Abandoned("the bank did not answer in time"))


def test_a_timer_that_is_not_due_yet_is_told_as_waiting(example_databases: Path) -> None:
    found = story(example_databases, "order_processing", "OrderProcessing/order-0", Edit("drop", 7), until_us=0)

    assert found.told == ()
    assert [entry.event for entry in found.waiting] == [
        Scheduled(PaymentTimedOut("order-0"), PAYMENT_PATIENCE, None, "PaymentTimedOut")
    ]


def test_a_timer_that_is_dropped_does_not_fire_after_all(example_databases: Path) -> None:
    fired: list[tuple[str, Counterfactual]] = []

    def make(entry: Any, ref: Ref, rows: Any) -> list[tuple[str, Counterfactual]]:
        timers = [row.version for row in rows if row.event == "Received" and row.kind == "timer"]
        return [(str(ref), counterfactual(entry, ref, rows, Edit("drop", timer), LATE_US)) for timer in timers[:1]]

    for example in ("expense_approval", "payment_gateway", "order_processing"):
        fired += stories(example_databases, example, make)

    assert fired
    for name, found in fired:
        dropped = found.recorded[0].event
        assert dropped not in [entry.event for entry in found.told], name


def test_a_command_that_was_never_sent_is_told_as_unanswered(example_databases: Path) -> None:
    edit = Edit("replace", 4, OrderValidated("order-0", 5))
    found = story(example_databases, "order_processing", "OrderProcessing/order-0", edit)

    assert [entry.event.message for entry in found.unanswered] == [ChargeCard("order-0", "card-ann", 5)]  # pyright: ignore[reportAttributeAccessIssue]
    assert found.differs_at == 5


def test_what_was_answered_in_the_recorded_story_is_answered_as_long_after(example_databases: Path) -> None:
    edit = Edit("insert", 11, ShippingOverdue("order-0"))
    found = story(example_databases, "order_processing", "OrderProcessing/order-0", edit)

    assert told(found) == ["Received", "Published", "Received", "Completed"]
    assert [entry.time for entry in found.told[2:]] == [entry.time for entry in found.recorded]
    assert (found.differs_at, found.unanswered, found.state) == (12, (), found.recorded_state)


def test_an_inserted_timer_fires_early_and_not_again(example_databases: Path) -> None:
    edit = Edit("insert", 7, PaymentTimedOut("order-0"))
    found = story(example_databases, "order_processing", "OrderProcessing/order-0", edit)

    assert (found.told[0].kind, found.told[-1].event) == (Kind.TIMER, Failed("the bank did not answer in time"))
    assert [entry.message for entry in found.untaken] == [CardCharged("order-0")]


def test_an_end_that_comes_earlier_leaves_the_later_inputs_untaken(example_databases: Path) -> None:
    edit = Edit("replace", 7, CardDeclined("order-0", "limit"))
    found = story(example_databases, "order_processing", "OrderProcessing/order-0", edit)

    assert told(found) == ["Received", "Published", "Failed"]
    assert found.untaken == ()  # what the later commands were answered is not asked for


def test_an_input_that_finds_no_case_stops_the_story(example_databases: Path) -> None:
    edit = Edit("insert", 4, CardCharged("order-0"))
    found = story(example_databases, "order_processing", "OrderProcessing/order-0", edit)

    assert found.error is not None
    assert found.error.startswith("UnknownTransitionError")
    assert found.told == ()


def test_an_answer_to_a_task_is_taken_where_the_task_is_open(example_databases: Path) -> None:
    approve = ApproveExpense("expense-4")
    recorded = story(example_databases, "expense_approval", "ExpenseApproval/expense-4", Edit("insert", 6, approve))

    assert recorded.told[0].kind is Kind.ANSWER
    assert told(recorded)[1] == "TaskClosed"


def test_a_dropped_beginning_leaves_nothing(example_databases: Path) -> None:
    found = story(example_databases, "order_processing", "OrderProcessing/order-0", Edit("drop", 2))

    assert (found.told, found.state) == ((), New())


@pytest.mark.parametrize("edit", [Edit("drop", 3), Edit("drop", 99), Edit("insert", 3, None), Edit("replace", 1, None)])
def test_only_inputs_can_be_changed(example_databases: Path, edit: Edit) -> None:
    with pytest.raises(OperationError, match=r"has no input at position \d+ that counts\. Choose one of 2, 4, 7, 11"):
        story(example_databases, "order_processing", "OrderProcessing/order-0", edit)


def test_an_instance_that_began_anew_is_told_from_its_last_beginning(tmp_path: Path) -> None:
    async def body() -> Counterfactual:
        async with app_of(f"sqlite:///{tmp_path / 'claims.db'}") as app:
            for hours in (8, 3, 5):
                await app.send(Shift("s-1", hours))
            ref = Ref("Shifts", "s-1")
            rows = live(await whole_stream(internals_of(app).engine.store, ref))
            return counterfactual(
                internals_of(app).registry.workflows["Shifts"], ref, rows, Edit("replace", 5, Shift("s-1", 8)), LATE_US
            )

    found = run(body)

    # With eight hours at once it ends, so that the next shift begins it anew.
    assert told(found) == ["InitiatedBy", "Completed", "Began", "InitiatedBy"]
    assert [entry.position for entry in found.told] == [5, 6, 7, 8]
    assert (found.recorded_state, found.state) == (Worked(8), Worked(5))


def test_what_operators_did_is_left_out_and_a_reset_counts(tmp_path: Path) -> None:
    async def body() -> Counterfactual:
        async with app_of(f"sqlite:///{tmp_path / 'claims.db'}") as app:
            for message in (Claim("c-1", 50), Note("c-1", "a"), Note("c-1", "b")):
                await app.send(message)
            claim = app.instance(Claims, "c-1")
            await claim.reset(5, "too many notes")
            await claim.suspend("lunch")
            await claim.resume()
            await app.send(Note("c-1", "c"))
            ref = Ref("Claims", "c-1")
            rows = live(await whole_stream(internals_of(app).engine.store, ref))
            edit = Edit("replace", 5, Note("c-1", "A"))
            return counterfactual(internals_of(app).registry.workflows["Claims"], ref, rows, edit, 0)

    found = run(body)

    assert {type(entry.event).__name__ for entry in found.left_out} >= {"Reset", "Suspended", "Resumed"}
    assert (found.recorded_state, found.state) == (UnderReview(50, ("a", "c")), UnderReview(50, ("A", "c")))


# ---- the command


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("dropped", ("--at", "7", "--drop")),
        ("replaced", ("--at", "4", "--replace", '{"order_id": "order-0", "amount_cents": 5}')),
        ("inserted", ("--at", "11", "--insert", '{"order_id": "order-0"}', "--type", "ShippingOverdue")),
    ],
)
def test_a_counterfactual_reads_as_approved(examples: Path, name: str, arguments: tuple[str, ...]) -> None:
    ran = command_line("order_processing", "counterfactual", "order-0", *arguments)

    assert (ran.code, ran.err) == (0, "")
    approved(f"counterfactual/order-0-{name}.txt", ran.text)


def test_a_counterfactual_is_one_document_for_programs(examples: Path) -> None:
    body = json.dumps({"order_id": "order-0", "reason": "limit"})
    ran = command_line("order_processing", "counterfactual", "order-0", "--at", "7", "--replace", "-", "--type", "CardDeclined", "--json", input=body)  # fmt: skip  # noqa: E501

    document = ran.document
    assert (document["what"], document["at"], document["differs_at"]) == ("replace", 7, 8)
    assert document["told"][0]["message"] == {"order_id": "order-0", "reason": "limit"}
    assert [event["event"] for event in document["told"]] == ["Received", "Published", "Failed"]
    assert document["state"] == {"type": "Abandoned", "state": {"reason": "limit"}}
    assert (document["recorded_state"]["type"], document["error"]) == ("Fulfilled", None)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--drop", "--replace", "{}"), "Say one of --replace JSON, --insert JSON and --drop."),
        ((), "Say one of --replace JSON, --insert JSON and --drop."),
        (("--drop", "--type", "PlaceOrder"), "--drop takes no --type."),
        (("--insert", "{}"), "--insert needs --type: which message is it?"),
        (("--replace", "{}", "--type", "Unheard"), "No workflow takes Unheard."),
        (("--replace", '{"order_id": 5}', "--type", "CardCharged"), "CardCharged"),
    ],
)
def test_a_counterfactual_that_makes_no_sense_is_refused(examples: Path, arguments: tuple[str, ...], told: str) -> None:
    ran = command_line("order_processing", "counterfactual", "order-0", "--at", "7", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_timers_that_are_not_due_yet_fire_where_one_looks_ahead(examples: Path) -> None:
    """The reminder and the escalation lie three and seven days behind the request, which came now."""

    async def body() -> None:
        app = example_apps.app_of("expense_approval")
        await app.start(work=False)
        try:
            await app.send(SubmitExpense("now-1", Expense("ann", "a train", 100), senior_manager="cho"), actor="ann")
        finally:
            await app.stop()

    run(body)

    def look(*ahead: str) -> tuple[list[Any], int]:
        note = json.dumps({"expense_id": "now-1", "expense": {"employee": "ann", "purpose": "a bus", "amount_cents": 1}, "senior_manager": "cho"})  # noqa: E501  # fmt: skip
        document = command_line("expense_approval", "counterfactual", "now-1", "--at", "2", "--replace", note, "--json", *ahead).document  # noqa: E501  # fmt: skip
        fired = [event for event in document["told"] if (event["kind"], event["direction"]) == ("timer", "input")]
        return [event["message"] for event in fired], len(document["waiting"])

    assert look() == ([], 2)
    fired, waiting = look("--ahead", "4")
    assert (fired, waiting) == ([{"expense_id": "now-1"}], 1)


@pytest.mark.parametrize("option", [("--replace", "{}"), ("--drop",), ("--insert", "{}", "--type", "CardCharged")])
def test_what_is_no_input_is_refused_before_its_message_is_read(examples: Path, option: tuple[str, ...]) -> None:
    ran = command_line("order_processing", "counterfactual", "order-0", "--at", "3", *option)

    assert ran.code == 1
    assert ran.err.startswith(
        "Error: OrderProcessing/order-0 has no input at position 3 that counts. Choose one of 2, 4"
    )


def test_a_stream_that_cannot_be_folded_any_more_is_refused(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("no more")

    monkeypatch.setattr(OrderProcessing, "evolve", broken)

    ran = command_line("order_processing", "counterfactual", "order-0", "--at", "7", "--drop")

    assert ran.code == 1
    assert "cannot be folded by today's code (ZeroDivisionError: no more)" in ran.err
    assert "`mainspring replay OrderProcessing/order-0` shows where" in ran.err


def test_a_result_that_is_no_input_is_left_alone_as_it_was(tmp_path: Path) -> None:
    async def body() -> Counterfactual:
        app = Mainspring(f"sqlite:///{tmp_path / 'claims.db'}")
        app.add(Asker())

        @app.handler
        async def knock(command: Knock) -> Note:
            return Note(command.door, "nobody asked for it")

        internals_of(app).registry.codec.register(Note)
        async with app:
            await app.send(Tick("d-1"))
            await quiet(app)
            ref = Ref("Asker", "d-1")
            rows = live(await whole_stream(internals_of(app).engine.store, ref))
            assert [row.event for row in rows][-1] == "Kept"
            edit = Edit("replace", 2, Tick("d-1"))
            return counterfactual(internals_of(app).registry.workflows["Asker"], ref, rows, edit, LATE_US)

    found = run(body)

    assert (found.differs_at, found.error, found.untaken) == (None, None, ())


def test_nothing_is_written(examples: Path) -> None:
    before = (examples / "order_processing.db").read_bytes()
    command_line("order_processing", "counterfactual", "order-0", "--at", "7", "--drop")

    assert command_line("order_processing", "show", "order-0", "--json").document["position"] == 12
    assert (examples / "order_processing.db").read_bytes() == before
