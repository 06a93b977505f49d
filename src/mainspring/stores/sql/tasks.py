"""Tasks as people see them."""

from __future__ import annotations

from mainspring.port.pages import Page
from mainspring.port.records import Ref
from mainspring.port.tasks import TaskFilter, TaskRow, TaskSpot
from mainspring.stores.commit.task_rows import read_task
from mainspring.stores.sql.dialogue import Dialogue, Row, Verbs, read


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
