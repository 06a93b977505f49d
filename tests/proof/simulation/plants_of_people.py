"""Planted mistakes about what people do wrong: answers, skips, and messages that no handler can carry out."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mainspring.app.tasks import Tasks
from mainspring.engine.handlers.policies.breaker import Breaker
from mainspring.engine.operations import operations
from tests.proof.simulation.planting import Plants

PEOPLE_PLANTS: Final = Plants()
plant = PEOPLE_PLANTS.plant


@plant("a breaker counts whatever a handler raises, also what is the message's own fault", first=4)
def breaker_judges_messages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Breaker, "counts", lambda _self, _error: True)


@plant("a task is answered with what names another instance", first=3)
def answered_for_another(patch: pytest.MonkeyPatch) -> None:
    async def nobody(*_: Any) -> None:
        return None

    patch.setattr(Tasks, "_named", nobody)


@plant("the task whose answer was skipped stays answered", first=3)
def skipped_answer_keeps_its_task(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        return None

    patch.setattr(operations, "asked_still", nothing)
