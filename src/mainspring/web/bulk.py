"""One operation on many instances: counted first, then done at a bounded rate, and watched while it runs.

It runs in this process. If that ends midway, those that were reached have their record, and the others are found by
the same search once more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from typing import Annotated, Final, Literal

from fastapi import Path, Response
from msgspec import Struct
from pydantic import ConfigDict, Field

from mainspring.app import bulk
from mainspring.app.bulk import PER_SECOND
from mainspring.app.given import LARGEST
from mainspring.app.internals import internals_of
from mainspring.errors import MainspringError
from mainspring.views import Action, BulkReport
from mainspring.views import Refusal as Refused
from mainspring.web import models
from mainspring.web.instances import REASON_CHARACTERS
from mainspring.web.problems import Problem, Refusal
from mainspring.web.searching import Words
from mainspring.web.served import Actor, Router, Served, answer

AT_ONCE: Final = 2
KEPT: Final = 50
ANSWER_SECONDS: Final = 2.0
"""How long a request waits for the end, before it answers how far it is."""
REFUSALS_SHOWN: Final = 100
FASTEST: Final = 1_000.0

JobId = Annotated[str, Path(description="The id of an operation on many.")]


class BulkOrder(Words):
    """Which instances, and what is to be done with them. Unless `dry_run` is false, they are only counted."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"workflow": "OrderFulfilment", "status": "suspended", "dry_run": False}]}
    )

    dry_run: bool = True
    reason: str = Field(default="by an operator", max_length=REASON_CHARACTERS)
    to: int | None = Field(
        default=None,
        ge=1,
        le=LARGEST,
        description="For reset the position, for migrate the version of the workflow to go to.",
    )
    per_second: float = Field(default=PER_SECOND, gt=0, le=FASTEST)


class Job(Struct):
    """A bulk operation, running or finished."""

    id: str
    task: asyncio.Task[BulkReport]
    report: BulkReport

    def document(self, served: Served) -> models.BulkDocument:
        """Return its progress."""
        failure, report = self.task.exception() if self.over else None, self.report
        return models.BulkDocument(
            id=self.id,
            operation=report.action,
            dry_run=report.dry_run,
            status=self._status(),
            matched=report.matched,
            done=report.done,
            left=report.left,
            refusals=report.refusals,
            refused=[_refused(served, each) for each in report.refused[:REFUSALS_SHOWN]],
            error=served.detail(failure) if isinstance(failure, Exception) else None,
        )

    @property
    def over(self) -> bool:
        """Whether it reached its end, and was not stopped before."""
        return self.task.done() and not self.task.cancelled()

    def _status(self) -> Literal["running", "done", "stopped", "failed"]:
        if not self.task.done():
            return "running"
        if self.task.cancelled():
            return "stopped"
        return "failed" if self.task.exception() else "done"


class Jobs:
    """The bulk operations of this process: a few at once, and the last finished ones."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    async def begin(self, action: Action, order: BulkOrder, actor: str | None) -> Job:
        """Begin one, and wait a moment for its end."""
        if sum(not job.task.done() for job in self._jobs.values()) >= AT_ONCE:
            detail = f"{AT_ONCE} operations on many are under way. Wait for one, or stop it."
            raise Refusal(Problem(503, "busy", detail, "BulkBusy"))
        progress = BulkReport(action, dry_run=order.dry_run)
        app = self._served.app

        def tell(report: BulkReport) -> None:
            job.report = report

        work = bulk.operate(
            internals_of(app),
            action,
            self._served.sought(**order.search()),
            reason=order.reason,
            actor=actor,
            dry_run=order.dry_run,
            per_second=order.per_second,
            on_progress=tell,
            to=order.to,
            store=self._served.store,
        )
        job = Job(secrets.token_urlsafe(12), asyncio.create_task(work), progress)
        self._jobs[job.id] = job
        # One that runs for days must not keep all that are over.
        over = [id for id, known in self._jobs.items() if known.task.done()]
        for id in over[: max(0, len(self._jobs) - KEPT)]:
            del self._jobs[id]
        await asyncio.wait({job.task}, timeout=ANSWER_SECONDS)
        if job.over:
            if isinstance(job.task.exception(), MainspringError):
                # A search or a version that cannot be: the request itself is wrong.
                self._jobs.pop(job.id, None)
            tell(job.task.result())
        return job

    async def stop(self) -> None:
        """Stop all that are running: the app is about to stop."""
        under_way = [job.task for job in self._jobs.values() if not job.task.done()]
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)

    def get(self, id: str) -> Job:
        """Return one of them."""
        job = self._jobs.get(id)
        if job is None:
            raise Refusal(Problem(404, "no such operation", f"There is no operation {id} here any more.", "NoSuchJob"))
        return job

    def list(self) -> list[Job]:
        """Return all that are known, the last one first."""
        return [*reversed(self._jobs.values())]


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "many instances")
    jobs = Jobs(served)
    served.on_stop.append(jobs.stop)

    @router.post("/bulk/{operation}", "act", models.BulkDocument, 409, 422, 503)
    async def operate(
        operation: Annotated[Action, Path(description="What is to be done.")], order: BulkOrder, actor: Actor
    ) -> Response:
        """Suspend, resume, retry, skip, cancel, terminate, reset or migrate all instances that are found.

        Unless `dry_run` is false they are only counted. What takes longer continues, and its `id` says how far it is.
        """
        return answer((await jobs.begin(operation, order, actor)).document(served))

    @router.get("/bulk", "read", list[models.BulkDocument])
    async def listed() -> Response:
        """Return the operations on many of this process, the last one first."""
        return answer([job.document(served) for job in jobs.list()])

    @router.get("/bulk/{id}", "read", models.BulkDocument, 404)
    async def progress(id: JobId) -> Response:
        """Return how far an operation on many is."""
        return answer(jobs.get(id).document(served))

    @router.delete("/bulk/{id}", "act", models.BulkDocument, 404)
    async def stop(id: JobId) -> Response:
        """Stop an operation on many: those that were not reached stay as they are."""
        job = jobs.get(id)
        job.task.cancel()
        await asyncio.wait({job.task})
        return answer(job.document(served))

    return router


def _refused(served: Served, refusal: Refused) -> Refused:
    """Return why one refused: what is said of the instance may be shown, what is said of a message may quote it."""
    tell = served.redaction.rule if refusal.why.startswith(refusal.instance) else served.redaction.error
    return Refused(refusal.instance, tell(refusal.why))
