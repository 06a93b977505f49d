"""The app as a whole: its workflows and schedules, how much of everything there is, and whether it is well."""

from __future__ import annotations

import inspect
from typing import Annotated, Final

from fastapi import Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import ConfigDict, Field

from mainspring.analysis.export.viewed_store import paused
from mainspring.analysis.stuck.held import told_by
from mainspring.app.internals import internals_of
from mainspring.app.pauses import with_waiting
from mainspring.app.schedules import MOST_NEXT
from mainspring.app.scraping import exposition
from mainspring.core.messages import type_of
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import WorkflowEntry, is_internal
from mainspring.port.workers import WorkerRow
from mainspring.views import ScheduleInfo, Stats
from mainspring.web import models
from mainspring.web.instances import REASON_CHARACTERS
from mainspring.web.models import Asked
from mainspring.web.served import Actor, Router, Served, answer, told_as

NEXT: Final = 5
# As Prometheus asks for them.
EXPOSED: Final = ("text/plain", "application/openmetrics-text")

ScheduleName = Annotated[str, Path(description="The name of a schedule.", examples=["nightly"])]


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "app")
    app = served.app
    _pausing(router, served)

    @router.get("/stats", "read", Stats, 503)
    async def stats() -> Response:
        """Return how many instances there are by status, and how much waits; as of a moment ago.

        Where there are so many that counting takes long, the figures may be some seconds older.
        """
        return answer(await served.live.stats())

    @router.get("/metrics", "read", told_as(*EXPOSED), 409, response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Return what Prometheus scrapes, where the app counts: `app.observe(metrics=True)`."""
        body, content_type = await exposition(app, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type, "cache-control": "no-store"})

    @router.get("/workflows", "read", list[models.WorkflowDocument])
    async def workflows() -> Response:
        """Return the workflows of this app."""
        return answer(
            [_workflow(entry) for entry in internals_of(app).registry.entries() if not is_internal(entry.name)]
        )

    @router.get("/workers", "read", list[models.WorkerDocument], 503)
    async def workers() -> Response:
        """Return the workers that are registered; one whose lease is over is about to be relieved."""
        store = internals_of(app).engine.store
        return answer([_worker(row, store.now_us()) for row in await store.workers()])

    @router.get("/schedules", "read", list[ScheduleInfo], 503)
    async def schedules() -> Response:
        """Return what is sent by a calendar."""
        return answer(await app.schedules.list())

    _schedule_operations(router, served)
    return router


def health(served: Served) -> Router:
    """Return the two routes that need no token: they say nothing but that all is well."""
    router = Router(served, "health")

    @router.get("/health", None, models.Health)
    async def healthy() -> Response:
        """Report that the process lives."""
        return answer(models.Health("ok"))

    @router.get("/ready", None, models.Health, 503)
    async def ready() -> Response:
        """Return True if the database answers."""
        await served.app.dead_letters(1)  # a question that costs nothing, however much there is
        return answer(models.Health("ok"))

    return router


def _schedule_operations(router: Router, served: Served) -> None:
    schedules = served.app.schedules

    @router.post("/schedules/{name}/pause", "act", list[ScheduleInfo], 404, 409, 422, 503)
    async def pause(name: ScheduleName, actor: Actor) -> Response:
        """Let a schedule fire no more until it is resumed."""
        await schedules.pause(name, actor=actor)
        return answer(await schedules.list())

    @router.post("/schedules/{name}/resume", "act", list[ScheduleInfo], 404, 409, 422, 503)
    async def resume(name: ScheduleName, actor: Actor) -> Response:
        """Let a paused schedule fire again."""
        await schedules.resume(name, actor=actor)
        return answer(await schedules.list())

    @router.delete("/schedules/{name}", "act", list[ScheduleInfo], 404, 409, 422, 503)
    async def remove(name: ScheduleName, actor: Actor) -> Response:
        """Let a schedule fire no more, until it is declared differently or resumed. Take it out of the code as well."""
        await schedules.remove(name, actor=actor)
        return answer(await schedules.list())

    @router.get("/schedules/{name}/next", "read", models.NextTimes, 404, 409, 422, 503)
    async def next_times(
        name: ScheduleName, n: Annotated[int, Query(ge=1, le=MOST_NEXT, description="So many.")] = NEXT
    ) -> Response:
        """Return the next times of a schedule, as they would be if it were not paused."""
        return answer(models.NextTimes(name, await schedules.next(name, n)))

    @router.post("/schedules/{name}/run", "act", list[ScheduleInfo], 404, 409, 422, 503)
    async def run(name: ScheduleName, actor: Actor) -> Response:
        """Let a schedule fire once, now."""
        await schedules.run_now(name, actor=actor)
        return answer(await schedules.list())


def _worker(row: WorkerRow, now_us: int) -> models.WorkerDocument:
    held_back = list(told_by([row], now_us).values())
    return models.WorkerDocument(
        row.key, row.name, moment(row.heard_us), moment(row.ends_us), row.lease_us / 1e6, held_back
    )


def _workflow(entry: WorkflowEntry) -> models.WorkflowDocument:
    definition = entry.definition
    return models.WorkflowDocument(
        name=entry.name,
        workflow_version=entry.version,
        # Its own words only: those that it inherits are about workflows in general.
        purpose=None if (doc := type(entry.workflow).__doc__) is None else inspect.cleandoc(doc),
        inputs=sorted(type_of(cls).name for cls in definition.inputs),
        begins=sorted(type_of(cls).name for cls in definition.begins),
    )


What = Annotated[
    str, Path(description="What a handler takes, or a workflow, by its name.", examples=["handler:ChargeCard"])
]


class PauseOrder(Asked):
    """Why it is paused."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the bank moves"}]})

    reason: str = Field(default="by an operator", max_length=REASON_CHARACTERS)


def _pausing(router: Router, served: Served) -> None:
    pauses = served.app.pauses

    @router.get("/pauses", "read", models.PausesDocument, 503)
    async def list_pauses() -> Response:
        """Return what is paused for all workers, by which actor, since when and why, and what can be paused."""
        return await _found(served)

    @router.post("/pauses/{what:path}", "act", models.PausesDocument, 404, 409, 422, 503)
    async def pause(what: What, actor: Actor, order: PauseOrder | None = None) -> Response:
        """Let all workers begin nothing more of a handler or a workflow; they know within two seconds."""
        await pauses.pause(what, (order or PauseOrder()).reason, actor=actor)
        return await _found(served)

    @router.delete("/pauses/{what:path}", "act", models.PausesDocument, 404, 409, 422, 503)
    async def resume(what: What, actor: Actor) -> Response:
        """Resume it, with what has waited."""
        await pauses.resume(what, actor=actor)
        return await _found(served)


async def _found(served: Served) -> Response:
    found = await with_waiting(served.store, await paused(served.store))
    pausable = [f"{kind}:{name}" for kind, name in served.app.pauses.pausable()]
    return answer(models.PausesDocument(found, pausable))
