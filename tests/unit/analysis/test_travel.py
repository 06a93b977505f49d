"""Walking through a stream: what every event made of the state, also where history turned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.analysis.replay import travel as module
from mainspring.analysis.replay.changes import CHANGES_KEPT, change_lines, state_change
from mainspring.analysis.replay.travel import travel
from mainspring.app.internals import internals_of
from mainspring.core.fold import fold
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.walk import Moment, Stopped
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import Ref
from tests.support.running import run
from tests.unit.analysis.approved import approved
from tests.unit.analysis.claims import Claim, Claims, Note, Open, Settled, UnderReview, app, app_of
from tests.unit.analysis.command_line import command_line
from tests.unit.analysis.quiet import quiet

CLAIM = Ref("Claims", "c-1")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'claims.db'}"


async def walked(app: Mainspring, ref: Ref, first: int = 1, last: int | None = None) -> list[Moment | Stopped]:
    entry: WorkflowEntry = internals_of(app).registry.workflows[ref.workflow]
    return [moment async for moment in travel(internals_of(app).engine.store, entry, ref, first, last)]


def moments(url: str, *messages: Any, first: int = 1, last: int | None = None) -> list[Any]:
    async def body() -> list[Moment | Stopped]:
        async with app_of(url) as app:
            for message in messages:
                await app.send(message)
            await quiet(app)
            return await walked(app, CLAIM, first, last)

    return run(body)


def test_an_input_stands_with_what_was_decided_for_it_between_two_states(url: str) -> None:
    began, claimed, noted = moments(url, Claim("c-1", 50), Note("c-1", "hm"))

    assert (began.position, began.is_step) == (1, False)
    assert [type(h.entry.event).__name__ for h in claimed.happened] == ["InitiatedBy", "Sent", "Scheduled"]
    assert (claimed.before, claimed.after, claimed.begins) == (Open(), UnderReview(50), True)
    assert (noted.position, noted.after) == (5, UnderReview(50, ("hm",)))
    assert change_lines(state_change(noted.happened[0].before, noted.happened[0].state)) == ["+ notes[0]: 'hm'"]


def test_a_moment_that_begins_before_what_is_asked_for_and_ends_behind_is_whole(url: str) -> None:
    everything = moments(url, Claim("c-1", 50), Note("c-1", "a"), Note("c-1", "b"))
    assert moments(url, first=everything[-1].position - 1) == everything[-2:]
    assert moments(url, first=3)[0] == everything[1]


def test_only_the_moments_that_are_asked_for_come_and_they_come_whole(url: str) -> None:
    inputs = (Claim("c-1", 50), Note("c-1", "a"), Note("c-1", "b"))
    moments(url, *inputs)

    assert [moment.position for moment in moments(url, first=3, last=5)] == [2, 5]
    assert [moment.position for moment in moments(url, first=4, last=4)] == [2]


def test_a_long_stream_is_read_page_by_page(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVENTS_PER_PAGE", 2)
    found = moments(url, Claim("c-1", 50), *(Note("c-1", str(n)) for n in range(7)))

    assert [moment.position for moment in found] == [1, 2, *range(5, 12)]
    assert found[-1].after == UnderReview(50, tuple("0123456"))


def test_what_a_reset_leaves_behind_is_marked_and_the_state_goes_on_from_there(url: str) -> None:
    async def body() -> tuple[list[Moment | Stopped], Any]:
        async with app_of(url) as app:
            for message in (Claim("c-1", 50), Note("c-1", "a"), Note("c-1", "b")):
                await app.send(message)
            await app.instance(Claims, "c-1").reset(5, "too many notes")
            await app.send(Note("c-1", "c"))
            await quiet(app)
            rows = await whole_stream(internals_of(app).engine.store, CLAIM)
            entry = internals_of(app).registry.workflows["Claims"]
            state = fold(entry.workflow, entry.workflow.initial_state, entry.recorder.folded(CLAIM, live(rows)))
            return await walked(app, CLAIM), state

    found, state = run(body)
    steps = [moment for moment in found if isinstance(moment, Moment)]

    assert [moment.position for moment in steps if moment.abandoned] == [6]
    assert steps[-1].after == state == UnderReview(50, ("a", "c"))


def test_what_was_left_behind_is_explained_only_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with app_of(internals_of(app).url) as running:
            for message in (Claim("c-1", 50), Note("c-1", "a"), Note("c-1", "b")):
                await running.send(message)
            await running.instance(Claims, "c-1").reset(5, "too many notes")

    monkeypatch.chdir(tmp_path)
    run(body)

    assert command_line("tests.unit.analysis.claims:app", "explain", "c-1", "--json").document["position"] == 5
    assert (
        "position 6: Note(id='c-1', text='b') (left behind)\n"
        in command_line("tests.unit.analysis.claims:app", "explain", "c-1", "--at", "6").out
    )


def test_an_event_that_cannot_be_folded_any_more_ends_the_walk(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Claims, state: Any, event: Any) -> Any:
        if isinstance(state, UnderReview):
            raise ZeroDivisionError("no notes any more")
        return evolve(self, state, event)

    moments(url, Claim("c-1", 50), Note("c-1", "a"))
    evolve = Claims.evolve
    monkeypatch.setattr(Claims, "evolve", broken)

    *before, stopped = moments(url)

    assert [moment.position for moment in before] == [1, 2]
    assert stopped == Stopped(3, "cannot be folded: ZeroDivisionError: no notes any more")


def test_an_event_of_an_unknown_type_ends_the_walk(url: str) -> None:
    moments(url, Claim("c-1", 50), Note("c-1", "a"))

    async def body() -> list[Moment | Stopped]:
        app = app_of(url)
        async with app:
            del internals_of(app).registry.codec._by_name["Note"]  # noqa: SLF001  today's code has no such type
            return await walked(app, CLAIM)

    *before, stopped = run(body)

    assert [moment.position for moment in before if isinstance(moment, Moment)] == [1, 2]
    assert isinstance(stopped, Stopped)
    assert stopped.position == 5
    assert "Note" in stopped.problem


# ---- changes of a state


def test_a_state_of_another_type_keeps_the_fields_that_both_have() -> None:
    change = state_change(UnderReview(50, ("a",)), Settled(50, ("a", "b")))

    assert change_lines(change) == ["UnderReview → Settled", "+ notes[1]: 'b'"]
    assert state_change(Settled(1), Settled(1)) is None


def test_long_values_and_long_lists_of_changes_are_cut() -> None:
    [line] = change_lines(state_change(UnderReview(1, ("x" * 500,)), UnderReview(1, ("y" * 500,))))
    assert len(line) < 400

    many = state_change(UnderReview(1), UnderReview(1, tuple(map(str, range(2 * CHANGES_KEPT)))))
    assert many is not None
    assert many.cut
    assert len(many.places) == CHANGES_KEPT
    assert change_lines(many, 3)[-1] == f"… and more than {CHANGES_KEPT - 3} more"


# ---- the commands, on the examples' databases


@pytest.mark.parametrize(
    ("example", "instance"),
    [
        ("order_processing", "OrderProcessing/order-0"),
        ("order_processing", "OrderProcessing/order-4"),
        ("expense_approval", "ExpenseApproval/expense-4"),
        ("credit_limit", "CustomerCredit/customer-1"),
    ],
)
def test_a_replay_reads_as_approved(examples: Path, example: str, instance: str) -> None:
    ran = command_line(example, "replay", instance)

    assert ran.code == 0
    approved(f"replay/{instance.replace('/', '-')}.txt", ran.text)


@pytest.mark.parametrize(
    ("example", "instance", "at"),
    [
        ("order_processing", "OrderProcessing/order-0", "4"),
        ("traffic_fine", "TrafficFine/report-3", "2"),
        ("group_checkout", "GroupCheckout/group-1", "9"),
    ],
)
def test_an_explanation_reads_as_approved(examples: Path, example: str, instance: str, at: str) -> None:
    ran = command_line(example, "explain", instance, "--at", at)

    assert (ran.code, ran.err) == (0, "")
    approved(f"explain/{instance.replace('/', '-')}-{at}.txt", ran.text)
