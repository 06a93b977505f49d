"""Tasks: what a batch does to them, and what people see."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.port.pages import Page
from mainspring.port.records import Ref
from mainspring.port.tasks import TaskFilter, TaskRow, TaskSpot
from mainspring.stores.commit.facts import Spot
from mainspring.stores.commit.task_book import TaskBook
from mainspring.stores.commit.task_rows import changed_values, new_values, read_task
from mainspring.stores.sql.dialect import Dialect
from mainspring.stores.sql.dialogue import Dialogue, Row, Verbs, read


def read_tasks(dialect: Dialect, book: TaskBook, asked: Iterable[Spot]) -> Dialogue[None]:
    """Hold still and read the tasks of instances that are open, and those of the versions that are named."""
    for key, *row in (yield "lock_tasks", *dialect.rows(sorted(set(asked)))):
        book.put(key, read_task(row))


def write_tasks(dialect: Dialect, book: TaskBook) -> Dialogue[None]:
    """Write what became of tasks, and new ones."""
    if changed := [changed_values(*task) for task in book.changed()]:
        yield "end_tasks", *dialect.rows(changed)
    if new := [new_values(*task) for task in book.opened()]:
        yield "insert_tasks", *dialect.inserted(new)


class TaskVerbs(Verbs):
    """The verbs of tasks that change nothing."""

    @read
    def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> Dialogue[list[TaskRow]]:
        asked = (where.workflow, where.due_before_us, where.person, self.dialect.values(where.roles))
        ref, version = (None, None) if after is None else after
        page = Page[Row, TaskRow](limit, read_task)
        while page.wants:
            page.take((yield "open_tasks", *asked, page.wants, *self.dialect.name(ref), version))
            if page.last:
                ref, version = Ref(page.last[0], page.last[1]), page.last[2]
        return page.records

    @read
    def task(self, ref: Ref, version: int) -> Dialogue[TaskRow | None]:
        found = yield "task", *self.dialect.name(ref), version
        return read_task(found[0]) if found else None
