"""What a pause holds back, in this process: the one place that says so. `operations.known_pauses` writes it."""

from __future__ import annotations


class PausedWork:
    """The paused workflows, and the queues of which nothing is carried out.

    Of a workflow, nothing is stepped: what comes is accepted into the inbox and waits there (`stepping.disposition`,
    and `stepper.submit`, which claims nothing for it), and what waits there is not claimed (`claimer.leaves`).

    A queue is a handler's, or the timers and replies of a paused workflow. Nothing of it is claimed
    (`dispatcher.capacity`, `lone_trials`), a runner gives back what it has not begun (`runners.heed`), and a start of a
    child that waits may be withdrawn (`child_deliveries`). What runs already runs to its end.

    >>> PausedWork().queues
    frozenset()
    """

    __slots__ = ("queues", "workflows")

    def __init__(self) -> None:
        self.workflows: frozenset[str] = frozenset()
        self.queues: frozenset[str] = frozenset()
