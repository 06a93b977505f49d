"""Tasks: what people are asked to do, and their answers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from msgspec.structs import asdict, replace
from pydantic import ConfigDict, Field

from mainspring.analysis.export.redaction import MARKER
from mainspring.app.internals import internals_of
from mainspring.app.tasks import MOST_PICKED
from mainspring.errors import SettingError
from mainspring.views import Form, FormField, Task, TaskOutcome
from mainspring.web import models
from mainspring.web.instances import REASON_CHARACTERS
from mainspring.web.models import Asked
from mainspring.web.problems import Problem, Refusal
from mainspring.web.served import PAGE, Limit, Router, Served, actor_of, answer, page, who

TaskId = Annotated[str, Path(description="The id of a task.", examples=["ExpenseApproval/e-1/3"])]


class Answered(Asked):
    """An answer: which of the forms, and what was filled in."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"answer": "ApproveExpense", "fields": {"comment": "as agreed"}}]}
    )

    answer: str = Field(description="The name of the message type.", examples=["ApproveExpense"])
    fields: dict[str, Any] = Field(default={}, description="What the form asks for beyond what it knows.")


class Rejected(Asked):
    """A no: why, and what else its form asks for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "no receipt"}]})

    reason: str = Field(min_length=1, max_length=REASON_CHARACTERS, examples=["no receipt"])
    fields: dict[str, Any] = Field(default={})


class Picked(Asked):
    """Whose next tasks, and how many of them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "manager", "count": 3}]})

    role: str = Field(min_length=1, examples=["manager"])
    count: int = Field(default=1, ge=1, le=MOST_PICKED)


class Handed(Asked):
    """The person that a task goes to."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"to": "bob"}]})

    to: str = Field(min_length=1, examples=["bob"])


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "tasks")
    _looking(router, served)
    _holding(router, served)
    _answering(router, served)
    return router


def _looking(router: Router, served: Served) -> None:
    tasks = served.app.tasks

    @router.get("/tasks", "read", models.TaskPage, 404, 422, 503)
    async def listed(
        *,
        role: Annotated[list[str] | None, Query(description="What was asked of this role; may be repeated.")] = None,
        person: Annotated[str | None, Query(description="What was asked of this person.")] = None,
        workflow: str | None = None,
        overdue: bool = False,
        limit: Limit = PAGE,
        after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
    ) -> Response:
        """Return open tasks, the next due first."""

        def ask(behind: str | None, wanted: int) -> Awaitable[list[Task]]:
            return tasks.list(
                role=role or (), person=person, workflow=workflow, overdue=overdue, limit=wanted, after=behind
            )

        return await page(ask, lambda task: _document(served, task), "id", after, limit)

    @router.get("/tasks/{id:path}", "read", models.TaskWithForms, 404, 503)
    async def task(id: TaskId) -> Response:
        """Return a task, whatever became of it, with the forms by which it is answered."""
        found = await tasks.get(id)
        forms = [_form(served, form) for form in await tasks.forms(id)]
        return answer(models.TaskWithForms(**asdict(_document(served, found)), forms=forms))


def _holding(router: Router, served: Served) -> None:
    tasks = served.app.tasks

    @router.post("/task-claims/{id:path}", "act", Task, 404, 409, 422, 503)
    async def claim(request: Request, id: TaskId) -> Response:
        """Claim a task, so that no other person works on it."""
        found = await tasks.claim(id, actor=_person(request), roles=await _roles(served, request, id))
        return answer(_document(served, found))

    @router.delete("/task-claims/{id:path}", "act", Task, 404, 409, 422, 503)
    async def release(request: Request, id: TaskId) -> Response:
        """Give a task back."""
        return answer(_document(served, await tasks.release(id, actor=_person(request))))

    @router.post("/task-delegations/{id:path}", "act", Task, 404, 409, 422, 503)
    async def delegate(request: Request, id: TaskId, handed: Handed) -> Response:
        """Hand a task to another person."""
        roles = await _roles(served, request, id)
        return answer(_document(served, await tasks.delegate(id, handed.to, actor=_person(request), roles=roles)))

    @router.post("/task-picks", "act", list[Task], 409, 422, 503)
    async def pick(request: Request, picked: Picked) -> Response:
        """Claim the next unclaimed tasks of a role: of many who pick at once, no two get the same."""
        known = who(request)
        if known.name is not None and picked.role not in known.groups:
            detail = f"{known.name} is not among {picked.role}."
            raise Refusal(Problem(403, "not permitted", detail, "NotPermitted"))
        found = await tasks.pick(picked.role, picked.count, actor=_person(request))
        return answer([_document(served, task) for task in found])


async def _roles(served: Served, request: Request, id: str) -> tuple[str, ...]:
    """Return the roles of a user; on one's own machine, where no authentication is asked for, any."""
    if who(request).name is not None:
        return who(request).groups
    role = (await served.app.tasks.get(id)).role
    return () if role is None else (role,)


def _answering(router: Router, served: Served) -> None:
    tasks = served.app.tasks

    def outcome_of(outcome: TaskOutcome) -> Response:
        encoded = None if outcome.message is None else internals_of(served.app).registry.codec.encode(outcome.message)
        message = None if encoded is None else served.body(encoded.name, encoded.body)
        return answer(replace(outcome, message=message))

    @router.post("/task-answers/{id:path}", "act", TaskOutcome, 404, 409, 422, 503)
    async def complete(request: Request, id: TaskId, answered: Answered) -> Response:
        """Answer a task. A second answer gets the outcome of the first."""
        roles = await _roles(served, request, id)
        return outcome_of(
            await tasks.complete(id, answered.answer, answered.fields, actor=_person(request), roles=roles)
        )

    @router.post("/task-rejections/{id:path}", "act", TaskOutcome, 404, 409, 422, 503)
    async def reject(request: Request, id: TaskId, rejected: Rejected) -> Response:
        """Say no: answer a task with the type that means no, and a reason."""
        roles, person = await _roles(served, request, id), _person(request)
        return outcome_of(await tasks.reject(id, rejected.reason, actor=person, roles=roles, fields=rejected.fields))


def _document(served: Served, task: Task) -> Task:
    return replace(task, title=served.redaction.text(task.title), data=served.redaction.data(task.data))


def _form(served: Served, form: Form) -> Form:
    """Return a form. What is known and not shown is filled in here, when the answer leaves it out."""
    return replace(form, fields=tuple(_field(served, field) for field in form.fields))


def _field(served: Served, field: FormField) -> FormField:
    # It is of the task's data, and hidden whole if any of it is: a part of it could not be sent back.
    known = {field.name: field.value}
    hidden = field.value is not None and served.redaction.data(known) != known
    return replace(field, value=MARKER) if hidden else field


def _person(request: Request) -> str:
    """Return who works on a task: that needs a name."""
    name = actor_of(request)
    if name is None:
        raise SettingError("The actor", None, "Say who you are: send the header X-Mainspring-Actor.")
    return name
