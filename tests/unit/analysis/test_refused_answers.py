"""Answers that their workflow refused, as the tools see them: decided anew, told otherwise, tested, drawn, exported."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from examples.document_approval.workflow import (
    ApproveDocument,
    ArchiveDocument,
    DocumentApproval,
    InReview,
    RejectDocument,
    SubmitDocument,
)
from mainspring import Envelope, Mainspring, RefuseAnswer
from mainspring.analysis.diagram.mining import Miner, machine_of, mine
from mainspring.analysis.export.event_logs import XesWriter
from mainspring.analysis.export.redaction import Redaction
from mainspring.analysis.replay.as_test import as_test
from mainspring.analysis.replay.counterfactual import counterfactual
from mainspring.analysis.replay.explain import explain
from mainspring.analysis.replay.retelling import Edit
from mainspring.analysis.replay.travel import travel
from mainspring.analysis.what_if.check import check
from mainspring.app.internals import internals_of
from mainspring.core.events import AnswerRefused
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.walk import Moment
from mainspring.errors import TaskRefusedError
from mainspring.port.records import InstanceFilter, Ref
from tests.support.running import run

T = TypeVar("T")
REF = Ref("DocumentApproval", "d-1")
AT = 5
"""The position of the refused answer."""


def after_a_refusal(folder: Path, use: Callable[[Mainspring], Awaitable[T]]) -> T:
    """Let an approval of an empty draft be refused, then reject it, and use what was recorded."""

    async def body() -> T:
        app = Mainspring(f"sqlite:///{folder / 'documents.db'}")
        app.add(DocumentApproval())
        app.external(ArchiveDocument)
        async with app:
            if not await app.tasks.list():
                await app.send(SubmitDocument("d-1", ""), actor="ann")
                (task,) = await app.tasks.list()
                with pytest.raises(TaskRefusedError):
                    await app.tasks.complete(task.id, ApproveDocument("d-1"), actor="bob", roles=["checker"])
                await app.tasks.reject(task.id, "it is empty", actor="bob", roles=["checker"])
            return await use(app)

    return run(body)


def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let today's code refuse nothing."""
    decide = DocumentApproval.decide

    def decides(self: DocumentApproval, envelope: Envelope[Any], state: Any) -> Any:
        if isinstance(envelope.message, ApproveDocument) and isinstance(state, InReview):
            state = InReview(state.round, state.draft or "blank", state.maker)
        return decide(self, envelope, state)

    monkeypatch.setattr(DocumentApproval, "decide", decides)


async def moments(app: Mainspring) -> list[Moment]:
    entry = internals_of(app).registry.workflows["DocumentApproval"]
    return [one async for one in travel(internals_of(app).engine.store, entry, REF) if isinstance(one, Moment)]


def test_what_was_refused_is_decided_once_more_and_the_same_again(tmp_path: Path) -> None:
    report = after_a_refusal(tmp_path, check)

    assert (report.safe, report.compared.decisions, report.differences) == (True, 3, ())


def test_code_that_does_not_refuse_it_any_more_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after_a_refusal(tmp_path, check)
    lenient(monkeypatch)

    (difference,) = after_a_refusal(tmp_path, check).differences

    assert difference.what == (
        "ApproveDocument in InReview: AnswerRefused(ApproveDocument) is not decided any more, TaskClosed is decided, "
        "Sent(ArchiveDocument) is decided"
    )


def test_code_that_refuses_now_what_it_took_differs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after_a_refusal(tmp_path, check)
    decide = DocumentApproval.decide

    def strict(self: DocumentApproval, envelope: Envelope[Any], state: Any) -> Any:
        refuses = isinstance(envelope.message, RejectDocument)
        return [RefuseAnswer("ask its maker first")] if refuses else decide(self, envelope, state)

    monkeypatch.setattr(DocumentApproval, "decide", strict)

    (difference,) = after_a_refusal(tmp_path, check).differences

    assert difference.what.startswith("RejectDocument in InReview: TaskClosed is not decided any more")
    assert "AnswerRefused(RejectDocument) is decided" in difference.what


def test_a_refusal_is_a_moment_with_its_decision_and_is_explained(tmp_path: Path) -> None:
    (refused,) = [one for one in after_a_refusal(tmp_path, moments) if one.position == AT]

    assert (refused.is_step, refused.before == refused.after) == (True, True)
    assert refused.envelope is not None
    assert (refused.envelope.actor, refused.envelope.task) == ("bob", "review")

    async def explained(app: Mainspring) -> Any:
        return explain(internals_of(app).registry.workflows["DocumentApproval"], refused)

    explanation = after_a_refusal(tmp_path, explained)
    assert explanation.agrees
    assert [type(event) for event in explanation.recorded] == [AnswerRefused]
    assert explanation.decide[-1].text.endswith('InReview(_, "", _) if person')


def test_a_refusal_can_be_made_a_test_that_passes(tmp_path: Path) -> None:
    async def written(app: Mainspring) -> str:
        told = await moments(app)
        (place,) = (n for n, one in enumerate(told) if one.position == AT)
        return as_test(internals_of(app).registry.workflows["DocumentApproval"], told[:place], told[place])

    source = after_a_refusal(tmp_path, written)

    assert ".then(RefuseAnswer('there is no draft to archive" in source
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102  it was made here
    (test,) = (made for name, made in namespace.items() if name.startswith("test_"))
    test()


def test_without_the_guard_the_story_would_have_gone_on_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told(app: Mainspring) -> Any:
        entry, rows = (
            internals_of(app).registry.workflows["DocumentApproval"],
            await whole_stream(internals_of(app).engine.store, REF),
        )
        edit = Edit("replace", AT, ApproveDocument("d-1"))
        return counterfactual(entry, REF, rows, edit, rows[-1].time_us)

    same = after_a_refusal(tmp_path, told)
    assert (same.differs_at, same.error, same.state) == (None, None, same.recorded_state)
    lenient(monkeypatch)

    other = after_a_refusal(tmp_path, told)

    assert [type(entry.event).__name__ for entry in other.told][:3] == ["Received", "TaskClosed", "Sent"]
    assert [one.message for one in other.untaken] == [RejectDocument("d-1", "it is empty")]


def test_the_way_is_drawn_and_stays_where_it_is(tmp_path: Path) -> None:
    async def drawn(app: Mainspring) -> Any:
        mined = await mine(internals_of(app).engine.store, InstanceFilter(), Miner("DocumentApproval", initial="New"))
        return machine_of(internals_of(app).registry.workflows["DocumentApproval"]), mined

    machine, mined = after_a_refusal(tmp_path, drawn)

    (way,) = (one for one in machine.transitions if any(o.decision == "RefuseAnswer" for o in one.outputs))
    assert (way.source, way.message, way.target) == ("InReview", "ApproveDocument", "InReview")
    (step,) = (one for one in mined.steps if one.outputs == ("RefuseAnswer",))
    assert (step.source, step.message, step.target, step.count) == ("InReview", "ApproveDocument", "InReview", 1)


def test_a_log_for_process_mining_does_not_tell_it_as_complete(tmp_path: Path) -> None:
    async def exported(app: Mainspring) -> str:
        file, redaction = io.BytesIO(), Redaction(payloads=True)
        writer = XesWriter(file, redaction)
        writer.begin(datetime(2026, 1, 1, tzinfo=UTC))
        (instance,) = await internals_of(app).engine.store.instances(InstanceFilter(), 10)
        writer.instance(instance)
        for row in await whole_stream(internals_of(app).engine.store, REF):
            if row.version == AT:
                writer.event(REF, row, redaction.outgoing(row))
        writer.end()
        return file.getvalue().decode()

    text = after_a_refusal(tmp_path, exported)

    assert '<string key="event" value="AnswerRefused"/>' in text
    assert '<string key="lifecycle:transition" value="unknown"/>' in text
    assert '<string key="concept:name" value="ApproveDocument"/>' in text
    assert '<string key="key" value="review"/>' in text
