"""More about one instance: its log, its attributes, its neighbours, its stream as a file, a step as a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Query, Response
from fastapi.responses import StreamingResponse
from msgspec.structs import replace

from mainspring.analysis.export.redaction import MARKER
from mainspring.analysis.export.stream_file import StreamWriter
from mainspring.analysis.replay.as_test import PAST_MOST, as_test, file_name
from mainspring.analysis.replay.travel import travel
from mainspring.analysis.streams import DAMAGED, PURGED
from mainspring.analysis.stuck.links import EVENTS_LOOKED_AT, Link, links_of
from mainspring.app.given import checked_place
from mainspring.app.instance import asked_before, log_before_its_stream, log_of_attempts
from mainspring.app.internals import internals_of
from mainspring.app.states import entry_of
from mainspring.core.execution import LogLine, execution_log, with_attempts
from mainspring.engine.inputs.stored_streams import readable
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.recording.walk import Moment, Stopped
from mainspring.engine.registry import is_internal
from mainspring.errors import DamagedRecordError, OperationError
from mainspring.port.records import InstanceRow, Loaded, Ref
from mainspring.web import models
from mainspring.web.instances import loaded
from mainspring.web.opened import Opened, opened
from mainspring.web.served import PAGE, Id, Limit, Router, Served, Workflow, answer, told_as

EVENTS_PER_READ: Final = 1_000
LINES: Final = "application/x-ndjson"
# Lines of the log that are about a reason, in which an error may quote anything; others are about a type.
REASONED: Final = (
    "Faulted",
    "Attempted",
    "Refused",
    "Suspended",
    "Reset",
    "Failed",
    "Cancelled",
    "Compensating",
    "Terminated",
)

After = Annotated[int, Query(ge=0, description="The position behind which to begin.")]


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "instances")
    _looking(router, served)
    _copying(router, served)
    return router


def _looking(router: Router, served: Served) -> None:
    app, inside = served.app, internals_of(served.app)

    @router.get("/log/{workflow}/{id:path}", "read", models.LogPage, 404, 409, 410, 503)
    async def log(workflow: Workflow, id: Id, limit: Limit = PAGE, after: After = 0) -> Response:
        """Return what happened to an instance, who did it, and how long it took. A page looks at `limit` events."""
        ref, found = Ref(workflow, id), await loaded(app, workflow, id, events=0)
        known = inside.registry.workflows.get(workflow)
        if known is None:
            raise OperationError(str(ref), f"cannot be read: this app has no {workflow}", "Serve an app that has it.")
        recorder = readable(known, found).recorder
        rows = await inside.engine.store.stream(ref, checked_place(after), limit)
        before = await asked_before(inside.engine.store, recorder, ref, rows)
        lines = execution_log([recorder.entry(ref, row, told=True) for row in rows], before)
        if rows:
            lines = with_attempts(lines, await log_of_attempts(inside.engine.store, ref, after, rows[-1].version))
        lines = lines or await log_before_its_stream(inside.engine.store, found.row)
        more = len(rows) == limit and rows[-1].version < found.row.version
        return answer(models.LogPage([_line(served, line) for line in lines], rows[-1].version if more else None))

    @router.get("/attributes", "read", list[models.AttributeName], 503)
    async def names() -> Response:
        """Return by which attributes instances can be found, a thousand at most."""
        return answer(
            [models.AttributeName(name, kind) for name, kind in await internals_of(app).engine.store.attribute_names()]
        )

    @router.get("/attributes/{workflow}/{id:path}", "read", models.AttributesDocument, 404, 410, 503)
    async def attributes(workflow: Workflow, id: Id) -> Response:
        """Return what an instance can be searched by."""
        await loaded(app, workflow, id, events=0)
        rows = await inside.engine.store.attributes(Ref(workflow, id))
        hides = served.redaction.hides
        found = {row.name: MARKER if hides("", row.name) else row.value for row in rows}
        return answer(models.AttributesDocument(f"{workflow}/{id}", found))

    @router.get("/links/{workflow}/{id:path}", "read", models.LinksDocument, 404, 410, 503, 504)
    async def links(workflow: Workflow, id: Id) -> Response:
        """Return the instances that began this one, that it began, that wrote to it, and to which it wrote.

        Where a message went, the route of today's code says.
        """
        found = await loaded(app, workflow, id, events=0)
        rows = await inside.engine.store.stream(Ref(workflow, id), 0, EVENTS_LOOKED_AT)
        entry = entry_of(app, found)
        linked = await served.slow.compute(lambda: links_of(inside.registry, entry, found.row, rows))
        others = await inside.engine.store.load([link.ref for link in linked.links], 0)
        documents = [
            _link(link, None if other is None else other.row) for link, other in zip(linked.links, others, strict=True)
        ]
        return answer(models.LinksDocument(f"{workflow}/{id}", documents, linked.cut, linked.unread))


def _copying(router: Router, served: Served) -> None:
    file = told_as(LINES, description="The stream, as JSON lines.")

    @router.get("/exports/{workflow}/{id:path}", "read", file, 404, 410, 503, response_class=StreamingResponse)
    async def export(workflow: Workflow, id: Id) -> Response:
        """Return a stream as a file of JSON lines, as `mainspring export` writes it and `what-if --from` reads it."""
        found = await loaded(served.app, workflow, id, events=0)
        name = quote(f"{workflow}-{id}.jsonl", safe="")
        disposition = {"content-disposition": f"attachment; filename*=UTF-8''{name}", "cache-control": "no-store"}
        return StreamingResponse(_lines(served, found), media_type=LINES, headers=disposition)

    @router.get("/tests/{workflow}/{id:path}", "read", models.GivenWhenThen, 404, 409, 410, 503, 504)
    async def test(
        workflow: Workflow, id: Id, at: Annotated[int, Query(ge=1, description="The position of an input.")]
    ) -> Response:
        """Return a step as a given / when / then test, in Python."""
        if is_internal(workflow) and served.redaction.fields:
            # It holds messages of others as they are stored.
            raise OperationError(f"{workflow}/{id}", "is the engine's own, and is not shown whole", "Choose another.")
        found = await opened(served, workflow, id, "made a test of")
        found.check(at)
        past, step = await _step(served, found, at)
        text = await served.slow.compute(lambda: as_test(found.entry, past, step, served.redaction))
        return answer(models.GivenWhenThen(file_name(found.entry), text))


async def _step(served: Served, found: Opened, at: int) -> tuple[list[Moment], Moment]:
    """Return the step to which a position belongs, and the moments before it that count."""
    moments: list[Moment] = []
    async for each in travel(internals_of(served.app).engine.store, found.entry, found.ref, 1, at):
        if isinstance(each, Stopped):
            if each.erased is not None:
                raise each.erased
            problem = f"stops at position {each.position}: {served.error(each.problem)}"
            raise OperationError(str(found.ref), problem, "Mend the code.")
        moments.append(each)
        if len(moments) > PAST_MOST:
            raise OperationError(
                str(found.ref), f"has more than {PAST_MOST:,} steps before it", "Choose an earlier one."
            )
    step = moments.pop()
    if not step.is_step:
        raise OperationError(f"{found.ref} at position {at}", "took no input", "Choose the position of an input.")
    return [moment for moment in moments if not moment.abandoned or step.abandoned], step


async def _lines(served: Served, found: Loaded) -> AsyncIterator[bytes]:
    """Yield the lines of an export, some at a time."""
    row, store, file = found.row, internals_of(served.app).engine.store, BytesIO()
    ref, writer = Ref(row.workflow, row.id), StreamWriter(file, served.redaction)
    writer.begin(moment(store.now_us()))
    writer.instance(row)
    version, why = 0, None
    try:
        while version < row.version and (page := await store.stream(ref, version, EVENTS_PER_READ)):
            for event in page:
                writer.event(ref, event, served.redaction.outgoing(event))
            version = page[-1].version
            yield file.getvalue()
            file.seek(0)
            file.truncate()
    except DamagedRecordError:
        why = DAMAGED
    else:
        kept = found.snapshot is None or not found.snapshot.is_all
        why = PURGED if kept and version < row.version else None
    if why is not None:
        writer.cut(ref, why)
    writer.end()
    yield file.getvalue()


def _line(served: Served, line: LogLine) -> LogLine:
    return replace(line, about=served.error(line.about)) if line.what in REASONED else line


def _link(link: Link, other: InstanceRow | None) -> models.LinkedInstance:
    return models.LinkedInstance(
        relation=link.relation,
        instance=str(link.ref),
        workflow=link.ref.workflow,
        id=link.ref.id,
        position=link.position,
        type=link.type,
        status=None if other is None else other.status,
        state=None if other is None else other.state,
    )
