"""A module that asks, for the test of what comes past the task."""

from mainspring import Ask
from mainspring.testing.samples import Leave


def may_go(maker: str) -> Ask[Leave]:
    return Ask("Leave?", Leave, role="manager", excludes=(maker,))
