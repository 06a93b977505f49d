"""Helpers of another module that ask, for the test of what answers tasks."""

from typing import Any

import mainspring
from mainspring import Ask


def ask_plainly(title: str, answer: Any) -> Ask[Any]:
    return Ask(title, answer, role="manager")


def ask_for_a(title: str) -> Ask[Any]:
    from tests.unit.purity.test_task_answers import A  # noqa: PLC0415  as far away as can be

    return mainspring.Ask(title, role="manager", answer=A)


class Desk:
    @staticmethod
    def ask(title: str) -> Ask[Any]:
        return ask_for_a(title)
