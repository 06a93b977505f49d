"""Other stories: with another input, without one, with one more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.analysis.counterfactual import Counterfactual, counterfactual
from mainspring.analysis.retelling import Edit
from mainspring.core.events import Received
from mainspring.engine.branches import live
from mainspring.engine.loader import whole_stream
from mainspring.port.records import InstanceFilter, Ref
from tests.analysis import example_apps
from tests.analysis.doing import done

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
            for row in await app.engine.store.instances(InstanceFilter(), 1_000):
                ref = Ref(row.workflow, row.id)
                rows = live(await whole_stream(app.engine.store, ref))
                entry = app.registry.workflows.get(row.workflow)
                if entry is not None:
                    found += make(entry, ref, rows)
            return found
        finally:
            await app.stop()

    return done(body)


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
