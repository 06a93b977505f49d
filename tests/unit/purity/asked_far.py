"""A helper that asks, whose name no global of the test bears."""

from typing import Any

from mainspring import Ask


def ask_far(title: str) -> Ask[Any]:
    from tests.unit.purity.test_task_answers import A  # noqa: PLC0415  as far away as can be

    return Ask(title, A, role="manager")
