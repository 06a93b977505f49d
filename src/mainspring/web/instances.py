"""Instances: found, shown, and operated on."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Path, Query, Response
from msgspec.structs import replace
from pydantic import ConfigDict, Field

from mainspring.analysis.reading.model import shortened
from mainspring.analysis.stuck.awaited import awaited_of
from mainspring.analysis.stuck.held import held_among
from mainspring.app import Mainspring
from mainspring.app.given import LARGEST, checked_place
from mainspring.app.instance import Instance
from mainspring.app.internals import internals_of
from mainspring.app.search import searched
from mainspring.app.states import state_at
from mainspring.app.viewing import event_view, input_view, instance_view, output_view
from mainspring.app.waiting import waits_at
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import InstancePurgedError, NoSuchInstanceError, SettingError
from mainspring.port.records import EventRow, InstanceRow, Loaded, Ref
from mainspring.views import Frame, FunctionText, InstanceInfo, StateInfo, Waiting, WaitingOutput, WaitsAt
from mainspring.web import models
from mainspring.web.matching import ETAG, etag
from mainspring.web.models import Asked
from mainspring.web.searching import Searched
from mainspring.web.served import PAGE, Actor, Id, Limit, Router, Served, Workflow, answer, fitting, page, told

WAITING: Final = 100
EVENTS_LOOKED_AT: Final = 20_000
REASON_CHARACTERS: Final = 1_000
INSTANCE: Final = told(InstanceInfo) | {"headers": ETAG}

V = TypeVar("V", Frame, FunctionText)

Operation = Literal["suspend", "resume", "retry", "skip", "cancel", "terminate", "reset"]


class InstanceOrder(Asked):
    """Why the operation is done, and to which position a reset goes back."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the address was wrong"}]})

    reason: str = Field(default="by an operator", max_length=REASON_CHARACTERS)
    to: int | None = Field(default=None, ge=1, le=LARGEST, description="For reset: the position to go back to.")


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "instances")
    _finding(router, served)
    _looking(router, served)
    _waiting(router, served)
    _operating(router, served)
    return router


def _finding(router: Router, served: Served) -> None:
    @router.get("/instances", "read", models.InstancePage, 422, 503)
    async def instances(
        search: Searched,
        limit: Limit = PAGE,
        after: Annotated[int | None, Query(ge=0, description="The `next` of the page before.")] = None,
        newest: Annotated[bool, Query(description="The newest first; else the oldest.")] = False,
    ) -> Response:
        """Find instances, in the order in which they began, or the newest first. Every word narrows.

        A request looks at 10,000 of them at most, or finds few by an index: a page may be short, or empty, and the
        search is over only when `next` is null.
        """
        place = None if after is None else checked_place(after)
        found = await searched(served.store, served.sought(**search), limit, place, newest=newest)
        return answer(models.InstancePage([served.shown(instance_view(row)) for row in found.rows], found.next))


def _looking(router: Router, served: Served) -> None:
    app = served.app

    @router.get("/instances/{workflow}/{id:path}", "read", INSTANCE, 404, 410, 503)
    async def instance(workflow: Workflow, id: Id) -> Response:
        """Return one instance. Its ETag says how far its stream goes, for the If-Match of what is sent to it."""
        return _found(served, (await loaded(app, workflow, id, events=0)).row)

    @router.get("/streams/{workflow}/{id:path}", "read", models.StreamPage, 404, 410, 503)
    async def stream(
        workflow: Workflow,
        id: Id,
        limit: Limit = PAGE,
        after: Annotated[int, Query(ge=0, description="The position behind which to begin.")] = 0,
    ) -> Response:
        """Return the events of an instance, in order."""
        ref = Ref(workflow, id)
        await loaded(app, workflow, id, events=0)

        def ask(behind: int, wanted: int) -> Awaitable[list[EventRow]]:
            return internals_of(app).engine.store.stream(ref, behind, wanted)

        return await page(ask, lambda row: served.shown(event_view(ref, row)), "position", checked_place(after), limit)

    @router.get("/states/{workflow}/{id:path}", "read", told(StateInfo) | {"headers": ETAG}, 404, 409, 410, 503)
    async def state(
        workflow: Workflow, id: Id, at: Annotated[int | None, Query(ge=1, description="As at this position.")] = None
    ) -> Response:
        """Return the state of an instance, now or at a position. Only that of now has an ETag."""
        found = await state_at(app, await loaded(app, workflow, id), at)
        return answer(served.shown(found.view(), "state"), headers=etag(found.position) if at is None else None)


def _waiting(router: Router, served: Served) -> None:
    app = served.app

    @router.get("/waiting/{workflow}/{id:path}", "read", Waiting, 404, 410, 503)
    async def waiting(workflow: Workflow, id: Id) -> Response:
        """Return what an instance waits for: inputs, commands, timers, children and tasks; the next hundred of each."""
        ref, store = Ref(workflow, id), internals_of(app).engine.store
        row = (await loaded(app, workflow, id, events=0)).row
        inbox = await store.inbox(ref, WAITING)
        outbox = await store.outputs(ref, timers=False, limit=WAITING)
        timers = await store.outputs(ref, timers=True, limit=WAITING)
        awaited = await awaited_of(store, row, internals_of(app).registry, EVENTS_LOOKED_AT)
        found = Waiting(
            fitting(served.shown(input_view(row)) for row in inbox),
            fitting(served.shown(output_view(claim)) for claim in outbox),
            fitting(served.shown(output_view(claim)) for claim in timers),
            awaited.children,
            awaited.since,
            [str(task) for task in awaited.tasks],
            await held_among(
                served.store, ref, inbox, [*outbox, *timers], awaited.children, internals_of(app).registry
            ),
        )
        return answer(found)

    @router.get("/waits-at/{workflow}/{id:path}", "read", WaitsAt, 404, 409, 410, 503, 504)
    async def lines(
        workflow: Workflow,
        id: Id,
        at: Annotated[int | None, Query(ge=1, le=LARGEST, description="Behind the step of this position.")] = None,
    ) -> Response:
        """Return at which lines of its code a flow waits, with calls, variables and the source of its functions.

        The code is run once more on what is recorded; nothing is carried out. Where fields are redacted, variables have
        their types alone. `is_flow` is false of any other workflow.
        """
        found, inside = await loaded(app, workflow, id, events=0), internals_of(app)
        looked = await waits_at(
            inside.engine.store,
            inside.registry,
            found,
            at,
            values=not served.redaction.fields,
            compute=served.slow.compute,
        )
        return answer(_shown(served, looked))

    @router.get("/timers", "read", list[WaitingOutput], 503)
    async def timers(limit: Limit = PAGE) -> Response:
        """Return the timers of all instances, the next one first; not those that a worker is about to let fire."""
        claims = await internals_of(app).engine.store.timers(limit)
        return answer(fitting(served.shown(output_view(claim)) for claim in claims))


def _operating(router: Router, served: Served) -> None:
    app = served.app

    @router.post("/operations/{operation}/{workflow}/{id:path}", "act", INSTANCE, 404, 409, 410, 422, 503)
    async def operate(
        operation: Annotated[Operation, Path(description="What is to be done.")],
        workflow: Workflow,
        id: Id,
        actor: Actor,
        order: InstanceOrder | None = None,
    ) -> Response:
        """Suspend, resume, retry, skip, cancel, terminate or reset an instance. The stream records who did it."""
        await loaded(app, workflow, id, events=0)
        await operation_of(app.instance_at(f"{workflow}/{id}"), operation, order or InstanceOrder(), actor)()
        return _found(served, (await loaded(app, workflow, id, events=0)).row)


def _shown(served: Served, found: WaitsAt) -> WaitsAt:
    """Return where a flow waits as it may be shown, its files from where Python finds the module."""

    def short(view: V) -> V:
        return replace(view, file=shortened(view.file, sys.path))

    waiting = tuple(
        replace(
            each,
            task=served.redaction.text(each.task),
            awaits=served.redaction.text(each.awaits),
            frames=tuple(map(short, each.frames)),
        )
        for each in found.waiting
    )
    functions = tuple(map(short, found.functions))
    return replace(found, waiting=waiting, functions=functions, problem=served.error(found.problem))


def _found(served: Served, row: InstanceRow) -> Response:
    return answer(served.shown(instance_view(row)), headers=etag(row.version))


def operation_of(
    instance: Instance[Any, Any], operation: Operation, order: InstanceOrder, actor: str | None
) -> Callable[[], Awaitable[None]]:
    """Return what is to be done."""
    match operation:
        case "suspend":
            return lambda: instance.suspend(order.reason, actor=actor)
        case "resume":
            return lambda: instance.resume(actor=actor)
        case "retry":
            return lambda: instance.retry(actor=actor)
        case "skip":
            return lambda: instance.skip(actor=actor)
        case "cancel":
            return lambda: instance.cancel(order.reason, actor=actor)
        case "terminate":
            return lambda: instance.terminate(order.reason, actor=actor)
        case "reset":
            if order.to is None:
                raise SettingError("to", None, "Say to which position the reset goes back.")
            to = order.to
            return lambda: instance.reset(to, order.reason, actor=actor)


async def loaded(app: Mainspring, workflow: str, id: str, events: int | None = None) -> Loaded:
    """Return an instance as the store has it, with so many of the events behind its snapshot, or all."""
    identity = f"{workflow}/{id}"
    found = (
        (await internals_of(app).engine.store.load([Ref(workflow, id)], events))[0] if identity.isprintable() else None
    )
    if found is None:
        raise NoSuchInstanceError(identity)
    if found.row.purged_us is not None:
        raise InstancePurgedError(identity, found.row.status, moment(found.row.purged_us))
    return found
