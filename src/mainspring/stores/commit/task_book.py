"""The tasks that a batch is about: as the store has them, and then as the units so far have changed them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mainspring.port.tasks import Refused, TaskAnswer, TaskRow, TaskWork, answered, barred, opened, refusal, reopened


class TaskBook:
    """Tasks by the key of their instance and the version at which they were asked.

    >>> TaskBook().refusal(7, TaskAnswer(3, "ann", (), "Approve"))
    Refused(reason='missing')
    """

    def __init__(self) -> None:
        self._tasks: dict[int, dict[int, TaskRow]] = {}
        self._changed: dict[tuple[int, int], None] = {}
        self._opened: dict[tuple[int, int], None] = {}

    def put(self, key: int, task: TaskRow) -> None:
        """Take in a task as the store has it: those that are open, and those that units name."""
        self._tasks.setdefault(key, {})[task.version] = task

    def refusal(self, key: int, answer: TaskAnswer | None) -> Refused | None:
        """Return why an answer is refused, if there is one."""
        return answer and refusal(self._tasks.get(key, {}).get(answer.version), answer.actor, answer.roles)

    def barred(self, key: int, work: TaskWork) -> Refused | None:
        """Return why a message from outside is refused, if that is what a unit takes."""
        return barred(self._tasks.get(key, {}).values(), work) if work.bars else None

    def apply(self, key: int, work: TaskWork, now_us: int) -> None:
        """Do what a unit says to the tasks of the instance with this key."""
        own = self._tasks.setdefault(key, {})
        if work.answer is not None and not work.refuses:
            self._end(key, answered(own[work.answer.version], work.answer, now_us))
        for task in list(own.values()):
            if task.status == "open" and (work.close_all or task.key in work.closes):
                self._end(key, replace(task, status="closed", ended_us=now_us))
        again = None if work.reopens is None else own.get(work.reopens)
        # What was asked anew under its key took its place: answering the old one would pass by whom that asks.
        if again is not None and not any(task.status == "open" and task.key == again.key for task in own.values()):
            self._end(key, reopened(again))
        for opening in work.opens:
            own[opening.version] = opened(opening, "", "", now_us, b"")
            self._opened[key, opening.version] = None

    def _end(self, key: int, task: TaskRow) -> None:
        self._tasks[key][task.version] = task
        if (key, task.version) not in self._opened:
            self._changed[key, task.version] = None

    def changed(self) -> Iterator[tuple[int, TaskRow]]:
        """Return what became of tasks that were there, each with its instance's key."""
        return ((key, self._tasks[key][version]) for key, version in self._changed)

    def opened(self) -> Iterator[tuple[int, TaskRow]]:
        """Return new tasks, and what became of them since, each with its instance's key. They do not name that."""
        return ((key, self._tasks[key][version]) for key, version in self._opened)
