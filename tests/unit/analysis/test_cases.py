"""Cases that are made up for tests and measurements are such as the engine itself would have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mainspring.analysis.what_if.check import check
from mainspring.app.internals import internals_of
from mainspring.port.records import EventRow, Ref
from tests.support.cases.filling import fill_file
from tests.support.cases.logs import cases
from tests.support.cases.machines import BEGINS, drawn, load
from tests.support.running import run

SHAPES = {
    "small": drawn(3, states=5, inputs=7, transitions=10, name="Small"),
    "year": drawn(),
    "large": drawn(4, states=40, inputs=25, transitions=300, name="Large"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_the_code_of_a_machine_would_do_is_what_its_cases_did(shape: str, tmp_path: Path) -> None:
    machine, path = SHAPES[shape], tmp_path / "cases.db"
    fill_file(path, cases(machine, 100))
    module = load(machine, tmp_path)

    async def body() -> None:
        app = module.app(f"sqlite:///{path}")
        await app.start(work=False)
        try:
            report = await check(app)
        finally:
            await app.stop()
        assert (report.instances, report.differing, report.unchecked) == (100, 0, ())

    run(body)


def test_the_engine_writes_the_same_stream_when_it_is_sent_the_same(tmp_path: Path) -> None:
    machine = drawn(5, states=6, inputs=6, transitions=12, asks=False)
    case = next(case for case in cases(machine, 50) if case.status == "completed" and len(case.taken) > 3)
    module = load(machine, tmp_path)

    async def body() -> list[EventRow]:
        app = module.app("memory://")
        async with app:
            for taken in case.taken:
                fields: dict[str, Any] = {"case": case.id}
                if taken.input == BEGINS:
                    fields |= {"amount": case.amount, "region": case.region}
                await app.send(getattr(module, taken.input)(**fields), actor=taken.actor)
            return await internals_of(app).engine.store.stream(Ref(case.workflow, case.id), 0, 1_000)

    assert [_without_names(event) for event in run(body)] == [_without_names(event) for event in case.events]


def _without_names(event: EventRow) -> tuple[Any, ...]:
    return (event.version, event.event, event.type, event.body, event.kind, event.actor, event.state, event.cause)


def test_the_same_seed_makes_the_same_cases_and_another_seed_others() -> None:
    machine = drawn()
    assert list(cases(machine, 20)) == list(cases(drawn(), 20))
    assert list(cases(machine, 20)) != list(cases(machine, 20, seed=2))


def test_a_year_of_cases_has_the_shape_of_a_real_one() -> None:
    machine = drawn()
    found = list(cases(machine, 1_000))
    assert (len(machine.states), len(machine.inputs), len(machine.moves)) == (13, 11, 88)
    assert 3.2 < sum(len(case.taken) for case in found) / len(found) < 4.2
    assert 0.18 < sum(case.status == "running" for case in found) / len(found) < 0.22
    assert any(len(case.taken) > 12 for case in found)
