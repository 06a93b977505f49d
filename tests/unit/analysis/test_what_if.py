"""What-if: streams recorded by one behaviour, held against another one, in a real database."""

from __future__ import annotations

import functools
import shutil
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Received, Workflow, message
from mainspring.analysis.processes import Sharing
from mainspring.analysis.streams import DAMAGED, PURGED
from mainspring.analysis.what_if import check as checking
from mainspring.analysis.what_if import comparison
from mainspring.analysis.what_if.check import NOT_KEPT, check
from mainspring.analysis.what_if.report import Difference, Report
from mainspring.app.internals import internals_of
from mainspring.errors import OperationError
from mainspring.port.records import InstanceFilter
from mainspring.sealing import Encrypted, FileKeys
from mainspring.styles.state_returning import StateReturningWorkflow
from tests.unit.analysis.refunds import (
    Claim,
    Closed,
    InReview,
    New,
    Note,
    Refund,
    Review,
    differing,
    fill,
    missing,
    refunds,
    running,
)


@pytest.fixture
def url(refunds_database: Path, tmp_path: Path) -> str:
    """A database with six claims in it."""
    return f"sqlite:///{shutil.copy(refunds_database, tmp_path)}"


def checked(url: str, **settings: Any) -> Report:
    return running(refunds(url), lambda app: check(app, **settings))


def only(report: Report) -> Difference:
    (difference,) = report.differences
    return difference


# ---- nothing differs


def test_the_code_that_recorded_it_differs_nowhere(url: str) -> None:
    report = checked(url)

    assert report.safe
    assert (report.instances, report.in_flight) == (6, 3)
    assert report.compared.decisions == 11
    assert report.compared.state_names == 11
    assert report.compared.states == 1
    assert (report.differences, report.unchecked) == ((), ())


# ---- something differs


def test_a_changed_decision_is_counted_and_told_with_its_story(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "limit", 200)

    report = checked(url)

    difference = only(report)
    assert difference.kind == "decision"
    assert difference.what == (
        "Claim in New: Sent(Review) is not decided any more, Scheduled(Overdue) is not decided any more, "
        "Published(Paid) is decided, Completed is decided"
    )
    assert (difference.instances, difference.in_flight, difference.steps) == (1, 1, 1)
    (story,) = difference.examples
    assert (story.instance, story.status, story.position) == ("Refund/waits-1", "running", 2)
    assert story.lines == (
        "Claim(id='waits-1', amount=150, card='4111-card') in New()",
        "- Sent(message=Review(id='waits-1', amount=150))",
        "- Scheduled(message=Overdue(id='waits-1'), after=datetime.timedelta(days=1), at=None, key='Overdue')",
        "+ Published(message=Paid(id='waits-1'))",
        "+ Completed(result=None)",
    )
    assert (report.safe, report.differing, report.differing_in_flight) == (False, 1, 1)


def test_what_differs_in_a_field_is_one_kind_for_all(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "patience", timedelta(days=2))

    difference = only(checked(url, examples=2))

    assert difference.what == "Claim in New: Scheduled(Overdue) differs in after"
    assert (difference.instances, difference.in_flight, difference.steps) == (4, 3, 4)
    # Stories of instances in flight come first.
    assert [story.instance for story in difference.examples] == ["Refund/waits-1", "Refund/waits-2"]


def test_steps_of_one_instance_are_counted_each(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "decide_raises", KeyError)

    difference = only(checked(url))

    assert (difference.kind, difference.what) == ("error", "Note in InReview: decide raises KeyError")
    assert (difference.instances, difference.steps) == (1, 4)
    assert difference.examples[0].lines == (
        "Note(id='noted', text='note 0') in InReview(amount=400, notes=0)",
        "KeyError: 'planted'",
    )


def test_a_state_of_another_name_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "closes", False)

    report = checked(url)

    difference = only(report)
    assert (difference.kind, difference.what) == ("state", "Reviewed in InReview leads to InReview, not to Closed")
    assert (report.differing, report.differing_in_flight) == (1, 0)


def test_a_field_of_a_state_is_told_where_a_snapshot_has_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "weight", 2)

    difference = only(checked(url))

    assert difference.kind == "state"
    assert difference.what == "the state InReview behind a step in InReview differs in notes"
    assert difference.examples[0].instance == "Refund/noted"


def test_behind_an_evolve_that_fails_nothing_is_claimed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refund, "evolve_raises", ValueError)

    report = checked(url)

    difference = only(report)
    assert (difference.kind, difference.what) == (
        "evolve",
        "evolve raises ValueError on Received(Note) in InReview",
    )
    assert (difference.instances, difference.steps) == (1, 1)
    assert difference.examples[0].lines[-1] == comparison.STOPPED
    assert report.compared.decisions == 8


def test_a_decision_that_would_be_refused_is_an_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(self: Refund, message: Any, state: Any) -> Any:
        return (
            [Complete(), Complete()] if isinstance(message, Note) else Refund.__dict__["original"](self, message, state)
        )

    monkeypatch.setattr(Refund, "original", Refund.decide, raising=False)
    monkeypatch.setattr(Refund, "decide", decide)

    difference = only(checked(url))

    assert difference.what == "Note in InReview: what is decided is refused, DecisionAfterEndError"


def test_no_effect_happens_where_decide_would_have_one(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effects = tmp_path / "effects"
    original = Refund.decide

    def decide(self: Refund, message: Any, state: Any) -> Any:
        if isinstance(message, Note):
            with effects.open("a") as file:
                file.write("mail sent")
        return original(self, message, state)

    monkeypatch.setattr(Refund, "decide", decide)

    difference = only(checked(url))

    assert not effects.exists()
    assert difference.what.startswith("Note in InReview: it is not pure and calls ")
    assert (difference.kind, difference.steps) == ("error", 4)


def test_an_evolve_that_is_not_pure_is_stopped_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Refund.evolve

    def evolve(self: Refund, state: Any, event: Any) -> Any:
        time.sleep(0)  # what is not pure: it is stopped before it sleeps
        return original(self, state, event)

    monkeypatch.setattr(Refund, "evolve", evolve)

    difference = only(checked(url))

    assert (difference.what, difference.instances) == ("evolve raises ImpureCallError on Began in New", 6)


# ---- other code altogether


class Less(Workflow[Claim, New | InReview | Closed, Review]):
    """Knows neither notes nor reviews any more."""

    name = "Refund"
    initial_state = New()

    def route(self, message: Claim) -> str | None:
        return message.id

    def decide(self, message: Claim, state: New | InReview | Closed) -> Decisions[Claim, Review] | None:
        return []

    def evolve(self, state: New | InReview | Closed, event: Event[Claim, Review]) -> InReview | None:
        return InReview(event.message.amount) if isinstance(event, Received) else None


def test_messages_that_nobody_can_read_any_more_are_told(url: str) -> None:
    app = Mainspring(url)
    app.add(Less())
    report = running(app, check)

    unreadable = {each.what: each.instances for each in report.differences if each.kind == "unreadable"}
    assert unreadable == {
        "Overdue (version 1) in Scheduled cannot be read any more": 4,
        "Paid (version 1) in Published cannot be read any more": 2,
    }


def test_an_app_without_the_workflow_says_so(url: str) -> None:
    app = Mainspring(url)
    report = running(app, check)

    (unchecked,) = report.unchecked
    assert (unchecked.why, unchecked.instances, unchecked.in_flight) == ("this app has no workflow Refund", 6, 3)


class Second(Refund):
    name = "Refund"
    version = 2
    limit = 10_000


def test_each_instance_is_held_against_the_version_that_it_runs_under(url: str) -> None:
    both = refunds(url)
    both.add(Second())

    async def go_on(app: Mainspring) -> Report:
        await app.send(Claim("new", 900))
        await app.instance(Refund, "noted").migrate(to=2, actor="ann")
        return await check(app)

    report = running(both, go_on, work=True)

    assert report.safe
    assert report.compared.before_migration == 5
    assert report.compared.decisions == 7

    alone = Mainspring(url)
    alone.add(Second())
    alone.external(Review)
    difference = only(running(alone, check))
    assert (difference.workflow_version, difference.instances) == (2, 3)

    report = checked(url)
    assert {each.why for each in report.unchecked} == {"it runs under version 2 of Refund, and this app knows 1"}


# ---- what cannot be checked


def test_a_damaged_stream_hides_no_other(url: str, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "refunds.db"))
    connection.execute("UPDATE events SET body = CAST('{}' AS BLOB) WHERE message_id = 'm-3'")
    connection.close()

    report = checked(url)

    (unchecked,) = report.unchecked
    assert (unchecked.why, unchecked.instances, unchecked.example) == (DAMAGED, 1, "Refund/waits-1")
    assert (report.instances, report.compared.decisions) == (6, 10)


def test_a_stream_that_is_purged_while_it_is_read_hides_no_other(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One with a snapshot is read by two questions: between them its events may go."""

    async def use(app: Mainspring) -> Report:
        stream, store = internals_of(app).engine.store.stream, internals_of(app).engine.store
        monkeypatch.setattr(store, "stream", lambda ref, *rest: nothing() if ref.id == "noted" else stream(ref, *rest))
        return await check(app)

    async def nothing() -> list[Any]:
        return []

    report = running(refunds(url), use)
    (unchecked,) = report.unchecked
    assert (report.instances, unchecked.why, unchecked.example) == (6, PURGED, "Refund/noted")


def test_an_erased_stream_is_counted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sealed.db'}"
    keys = FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance)
    running(refunds(url, seal=seal), fill, work=True)
    keys.destroy("noted")

    report = running(refunds(url, seal=seal), check)

    (unchecked,) = report.unchecked
    assert (unchecked.why, unchecked.example) == ("a part of its stream was erased", "Refund/noted")
    assert report.safe
    assert report.instances == 6


@message(name="Counted")
@dataclass(frozen=True)
class Counted:
    times: int = 0


@message(name="Counted")
@dataclass(frozen=True)
class CountedOtherwise:
    total: int


class Unkept(Workflow[Claim, Counted, Review]):
    initial_state = Counted()
    history = "state"

    def route(self, message: Claim) -> str | None:
        return message.id

    def decide(self, message: Claim, state: Counted) -> Decisions[Claim, Review] | None:
        return []

    def evolve(self, state: Counted, event: Event[Claim, Review]) -> Counted | None:
        return Counted(state.times + 1) if isinstance(event, Received) else None


class UnkeptOtherwise(Workflow[Claim, CountedOtherwise, Review]):
    name = "Unkept"
    initial_state = CountedOtherwise(0)
    history = "state"

    def route(self, message: Claim) -> str | None:
        return message.id

    def decide(self, message: Claim, state: CountedOtherwise) -> Decisions[Claim, Review] | None:
        return []

    def evolve(self, state: CountedOtherwise, event: Event[Claim, Review]) -> CountedOtherwise | None:
        return None


def test_without_history_the_state_must_be_readable_at_least(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'unkept.db'}"

    async def send(app: Mainspring) -> Report:
        await app.send(Claim("c-1", 1))
        await app.send(Claim("c-1", 2))
        return await check(app)

    kept = Mainspring(url)
    kept.add(Unkept())
    report = running(kept, send, work=True)
    assert report.safe
    assert [each.why for each in report.unchecked] == [NOT_KEPT]

    otherwise = Mainspring(url)
    otherwise.add(UnkeptOtherwise())
    difference = only(running(otherwise, check))
    assert difference.what == "the state Counted (version 1) cannot be read any more"
    assert difference.in_flight == 1


def test_an_instance_whose_first_input_failed_is_counted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def send(app: Mainspring) -> None:
        monkeypatch.setattr(Refund, "limit", None)
        await app.send(Claim("broken", 1))
        monkeypatch.undo()

    running(refunds(url), send, work=True)

    (unchecked,) = checked(url).unchecked
    assert (unchecked.why, unchecked.example) == (checking.NOT_BEGUN, "Refund/broken")


# ---- styles


class Door(StateReturningWorkflow[Claim, Counted, Review]):
    initial_state = Counted()
    step_size = 1

    def route(self, message: Claim) -> str | None:
        return message.id

    def decide(self, message: Claim, state: Counted) -> tuple[Counted, Decisions[Claim, Review]]:
        return Counted(state.times + self.step_size), []


def test_a_state_that_decide_returned_is_a_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Mainspring(f"sqlite:///{tmp_path / 'door.db'}")
    app.add(Door())

    async def send(app: Mainspring) -> Report:
        await app.send(Claim("c-1", 1))
        await app.send(Claim("c-1", 2))
        return await check(app)

    assert running(app, send, work=True).safe
    monkeypatch.setattr(Door, "step_size", 2)
    again = Mainspring(internals_of(app).url)
    again.add(Door())
    difference = only(running(again, check))
    assert (difference.what, difference.steps) == ("Claim in Counted: Became(Counted) differs in times", 2)


# ---- many


def test_filters_and_samples_choose(url: str) -> None:
    wheres = [InstanceFilter(status="running"), InstanceFilter(status="suspended")]
    assert checked(url, wheres=wheres).instances == 3

    some = checked(url, sample=2)
    assert (some.instances, checked(url, sample=2)) == (2, some)
    assert checked(url, sample=100).instances == 6


def test_long_streams_are_walked_page_by_page(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = checked(url)
    monkeypatch.setattr("mainspring.analysis.streams.EVENTS_PER_READ", 1)
    monkeypatch.setattr("mainspring.analysis.streams.EVENTS_PER_PAGE", 2)

    assert checked(url) == whole


def test_several_processes_find_what_one_finds(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "INSTANCES_PER_CHUNK", 2)
    alone = running(differing(url), check)
    monkeypatch.setattr(checking, "CHUNKS_ALONE", 0)
    told: list[int] = []

    shared = running(
        differing(url),
        lambda app: check(
            app,
            sharing=Sharing(functools.partial(differing, url), 2),
            on_progress=lambda part: told.append(part.instances),
        ),
    )

    assert not alone.safe
    assert shared == alone
    assert told == [2, 2, 2]


def test_a_process_that_cannot_load_the_app_says_why(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "CHUNKS_ALONE", 0)

    with pytest.raises(OperationError, match="has failed: ValueError: no such app"):
        running(refunds(url), lambda app: check(app, sharing=Sharing(missing, 2)))


def test_kinds_of_difference_are_bounded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.analysis.what_if.report.KINDS", 1)
    monkeypatch.setattr(Refund, "limit", 200)
    monkeypatch.setattr(Refund, "decide_raises", KeyError)
    monkeypatch.setattr(Refund, "closes", False)

    report = checked(url)

    assert report.differing == 3
    assert sum(each.instances for each in report.differences) == 3
    assert sum("others" in each.what for each in report.differences) == 2
