"""Reading decide and evolve: many ways to write the same, and what cannot be read is said."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring import Workflow
from mainspring.analysis.model import Machine
from mainspring.analysis.reading import read_machine
from tests.analysis.forms import FORMS, MACHINE

Line = tuple[str, str, str, str, str | None]


def lines(machine: Machine) -> set[Line]:
    """Return the transitions without their guards and details: what every form has in common."""
    return {
        (
            transition.source,
            transition.message,
            ", ".join(f"{output.decision}({output.message or ''})" for output in transition.outputs),
            transition.target,
            transition.ends,
        )
        for transition in machine.transitions
    }


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_however_it_is_written_the_machine_is_the_same(form: type[Workflow[Any, Any, Any]]) -> None:
    machine = read_machine(form)

    assert machine.unresolved == ()
    assert lines(machine) == MACHINE
