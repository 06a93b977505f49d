"""Tasks: what people are asked to do, and their answers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from msgspec import to_builtins
from pydantic import BaseModel, ConfigDict, Field

from mainspring.app.task_views import Task
from mainspring.errors import SettingError
from mainspring.web import models
from mainspring.web.problems import responses
from mainspring.web.served import PAGE, Limit, Served, actor, answer, page, who

TaskId = Annotated[str, Path(description="The id of a task.", examples=["ExpenseApproval/e-1/3"])]


class Answered(BaseModel):
    """An answer: which of the forms, and what was filled in."""

    model_config = ConfigDict(extra="forbid")

    answer: str = Field(description="The name of the message type.", examples=["ApproveExpense"])
    fields: dict[str, Any] = Field(default={}, description="What the form asks for beyond what it knows.")


class Handed(BaseModel):
    """To whom a task goes."""

    model_config = ConfigDict(extra="forbid")

    to: str = Field(min_length=1, examples=["bob"])


def routes(served: Served) -> APIRouter:
    """Return them."""
    router = APIRouter(tags=["tasks"])
    _looking(router, served)
    _answering(router, served)
    return router


def _looking(router: APIRouter, served: Served) -> None:
    tasks, read = served.app.tasks, [served.needs("read")]

    @router.get(
        "/tasks",
        response_model=None,
        dependencies=read,
        responses={200: {"model": models.TaskPage}, **responses(401, 403, 404, 422, 503)},
    )
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
        found = await tasks.list(
            role=role or (), person=person, workflow=workflow, overdue=overdue, limit=limit, after=after
        )
        return page([_document(task) for task in found], limit, lambda last: last["id"])

    @router.get(
        "/tasks/{id:path}",
        response_model=None,
        dependencies=read,
        responses={200: {"model": models.TaskWithForms}, **responses(401, 403, 404, 503)},
    )
    async def task(id: TaskId) -> Response:
        """Return a task, whatever became of it, with the forms by which it is answered."""
        found = await tasks.get(id)
        return answer({**_document(found), "forms": to_builtins(await tasks.forms(id))})


def _answering(router: APIRouter, served: Served) -> None:
    tasks, act = served.app.tasks, [served.needs("act")]

    async def roles(request: Request, id: str) -> tuple[str, ...]:
        """Return which roles somebody has; at one's own machine, where nobody is asked who they are, any."""
        if who(request).name is not None:
            return who(request).groups
        role = (await tasks.get(id)).role
        return () if role is None else (role,)

    told = {200: {"model": models.TaskDocument}, **responses(401, 403, 404, 409, 422, 503)}

    @router.post("/task-claims/{id:path}", response_model=None, dependencies=act, responses=told)
    async def claim(request: Request, id: TaskId) -> Response:
        """Take a task, so that nobody else works at it."""
        return answer(_document(await tasks.claim(id, actor=_person(request), roles=await roles(request, id))))

    @router.delete("/task-claims/{id:path}", response_model=None, dependencies=act, responses=told)
    async def release(request: Request, id: TaskId) -> Response:
        """Give a task back."""
        return answer(_document(await tasks.release(id, actor=_person(request))))

    @router.post("/task-delegations/{id:path}", response_model=None, dependencies=act, responses=told)
    async def delegate(request: Request, id: TaskId, handed: Handed) -> Response:
        """Hand a task to somebody else."""
        found = await tasks.delegate(id, handed.to, actor=_person(request), roles=await roles(request, id))
        return answer(_document(found))

    @router.post(
        "/task-answers/{id:path}",
        response_model=None,
        dependencies=act,
        responses={200: {"model": models.TaskOutcomeDocument}, **responses(401, 403, 404, 409, 422, 503)},
    )
    async def complete(request: Request, id: TaskId, answered: Answered) -> Response:
        """Answer a task. Whoever answers it again gets the outcome of the first answer."""
        outcome = await tasks.complete(
            id, answered.answer, answered.fields, actor=_person(request), roles=await roles(request, id)
        )
        encoded = None if outcome.message is None else served.app.registry.codec.encode(outcome.message)
        document = {
            "id": outcome.id,
            "first": outcome.first,
            "status": outcome.status,
            "answered_by": outcome.answered_by,
            "answered_at": outcome.answered_at,
            "answer": outcome.answer,
            "message": None if encoded is None else served.body(encoded.name, encoded.body),
        }
        return answer(document)


def _document(task: Task) -> dict[str, Any]:
    return to_builtins(task, builtin_types=())


def _person(request: Request) -> str:
    """Return who works at a task: nobody can do it unnamed."""
    name = actor(request)
    if name is None:
        raise SettingError("The actor", None, "Say who you are: send the header X-Mainspring-Actor.")
    return name
