"""Time travel: a stream moment by moment, why something was decided, and how it would have gone otherwise."""

from __future__ import annotations

import json as python_json
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from msgspec import Struct, json
from pydantic import ConfigDict, Field

from mainspring.analysis.replay.counterfactual import (
    DAY_US,
    DAYS_AHEAD,
    EVENTS_MOST,
    counterfactual,
    silent_commands,
)
from mainspring.analysis.replay.documents import CounterfactualDocument, ExplainedMoment, MomentDocument, StateShown
from mainspring.analysis.replay.explain import explain
from mainspring.analysis.replay.retelling import Edit
from mainspring.analysis.replay.travel import EVENTS_PER_PAGE, RowJourney, stream_turns
from mainspring.app.given import LARGEST
from mainspring.app.internals import internals_of
from mainspring.app.outside import read_message
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.walk import INPUTS, Moment, Stopped
from mainspring.errors import OperationError
from mainspring.port.records import EventRow
from mainspring.web import models
from mainspring.web.access import Permission
from mainspring.web.models import Asked
from mainspring.web.opened import Opened, opened
from mainspring.web.served import PAGE, PAGE_BYTES, Id, Limit, Router, Served, Workflow, answer

At = Annotated[int | None, Query(ge=1, description="The step to which this position belongs; else the last one.")]


class Otherwise(Asked):
    """What would have been otherwise: an input replaced, another one before it, or none at all."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"what": "replace", "at": 4, "type": "CardDeclined", "message": {"order_id": "o-1"}}]
        }
    )

    what: Literal["replace", "insert", "drop"]
    at: int = Field(
        ge=1, le=LARGEST, description="The position of an input; to insert behind everything, the next position."
    )
    type: str | None = Field(
        default=None,
        description="The type of the other message; that of the replaced one if not said.",
        examples=["CardDeclined"],
    )
    message: dict[str, Any] | None = Field(default=None, examples=[{"order_id": "o-1"}])
    ahead_days: float = Field(default=0, ge=0, le=DAYS_AHEAD, description="How far to look ahead, for timers.")


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "time travel")

    @router.get("/moments/{workflow}/{id:path}", "read", models.MomentPage, 404, 409, 410, 503, 504)
    async def moments(
        *,
        workflow: Workflow,
        id: Id,
        limit: Limit = PAGE,
        after: Annotated[int, Query(ge=0, description="The position behind which to begin.")] = 0,
        explained: Annotated[bool, Query(description="With why each step was decided.")] = False,
    ) -> Response:
        """Walk through a stream: each input with what was decided for it, and what every event made of the state.

        Nothing is carried out. `stopped` says why no more can be shown: today's code cannot read or fold an event.
        """
        found = await opened(served, workflow, id, "walked through")
        return answer(await _page(served, found, after, limit, explained=explained))

    @router.get("/explanations/{workflow}/{id:path}", "read", ExplainedMoment, 404, 409, 410, 503, 504)
    async def explanation(workflow: Workflow, id: Id, at: At = None) -> Response:
        """Say why something was decided: the cases that matched, and what today's code decides.

        decide is run once more in the recorded state, where it can do nothing but decide.
        """
        found = await opened(served, workflow, id, "explained")
        found.check(at)
        return answer(await _explained(served, found, at))

    # Where fields are redacted, whether a guess changes anything would reveal whether it is right.
    needed: Permission = "act" if served.redaction.fields else "read"

    @router.post("/counterfactuals/{workflow}/{id:path}", needed, CounterfactualDocument, 404, 409, 410, 422, 503, 504)
    async def otherwise(workflow: Workflow, id: Id, edit: Otherwise) -> Response:
        """Replace, insert or drop an input, and see how the story would have gone. Nothing is carried out."""
        found = await opened(served, workflow, id, "told otherwise")
        return answer(await _otherwise(served, found, edit))

    return router


# ---- moments


class Walker(Struct):
    """Takes the rows of a stream, and makes documents of so many moments behind a version."""

    served: Served
    opened: Opened
    journey: RowJourney
    after: int
    most: int
    explained: bool
    last: Moment | None = None
    found: list[MomentDocument] = []
    before: StateShown | None = None
    size: int = 0

    @property
    def enough(self) -> bool:
        """Whether the page is full."""
        return len(self.found) >= self.most or self.size > PAGE_BYTES

    @property
    def over(self) -> bool:
        """Whether no more rows are wanted: the page is full, or the stream cannot be read on."""
        return self.enough or self.journey.stopped is not None

    def take(self, page: Sequence[EventRow]) -> None:
        """Take a page of rows, or as much of it as is wanted."""
        for row in page:
            self._close(self.journey.take(row))
            if self.over:
                return

    def end(self) -> None:
        """Take the last moment, when there are no more rows."""
        self._close(self.journey.end())

    def _close(self, moment: Moment | None) -> None:
        if moment is None or moment.last <= self.after:
            return
        documents = self.opened.documents(self.served)
        if self.before is None:
            self.before = documents.state(moment.before)
        why = explain(self.opened.entry, moment) if self.explained else None
        document = documents.moment(moment, self.journey.rows, why)
        self.size += len(json.encode(document))
        self.found.append(document)
        self.last = moment


async def _page(served: Served, found: Opened, after: int, most: int, *, explained: bool) -> models.MomentPage:
    walker = await _walked(served, found, after, most, explained=explained)
    stopped = None if walker.enough else walker.journey.stopped
    if not found.row.version and found.row.error is not None:
        stopped = Stopped(1, f"its first input was not taken: {found.row.error}")
    last = 0 if walker.last is None else walker.last.last
    return models.MomentPage(
        walker.found,
        walker.before,
        last if walker.enough and last < found.row.version else None,
        None if stopped is None else found.documents(served).stopped(stopped),
    )


async def _walked(served: Served, found: Opened, after: int, most: int, *, explained: bool) -> Walker:
    """Walk through a stream from its beginning, in a thread, until there is enough or its end."""
    store, version = internals_of(served.app).engine.store, 0
    journey = RowJourney(found.entry, found.ref, await stream_turns(store, found.ref))
    walker = Walker(served, found, journey, after, most, explained)
    while not walker.over and (page := await store.stream(found.ref, version, EVENTS_PER_PAGE)):
        version = page[-1].version
        await served.slow.compute(partial(walker.take, page), watched=explained)
    if not walker.enough:
        await served.slow.compute(walker.end, watched=explained)
    return walker


# ---- explanations


async def _explained(served: Served, found: Opened, at: int | None) -> ExplainedMoment:
    if at is None:
        at = await _last_input(served, found)
    walker = await _walked(served, found, at - 1, 1, explained=True)
    stopped = walker.journey.stopped
    if not walker.found and stopped is not None:
        if stopped.erased is not None:
            raise stopped.erased
        problem = f"stops at position {stopped.position}: {served.error(stopped.problem)}"
        raise OperationError(str(found.ref), problem, "Mend the code.")
    if not walker.found or walker.found[0].explanation is None:
        problem = f"decided nothing at position {at}: no input was taken there"
        raise OperationError(str(found.ref), problem, "Ask for the position of an input.")
    assert walker.before is not None  # noqa: S101  a moment was found
    return found.documents(served).explained(walker.found[0], walker.before)


async def _last_input(served: Served, found: Opened) -> int:
    """Return the version of the last input; 1 if there is none."""
    version, last = 0, 1
    while page := await internals_of(served.app).engine.store.outlines([(found.row.key, version)], EVENTS_PER_PAGE):
        version = page[-1][1]
        last = max([last, *(outline[1] for outline in page if outline[2] in INPUTS)])
    return last


# ---- how it would have gone


async def _otherwise(served: Served, found: Opened, edit: Otherwise) -> CounterfactualDocument:
    app, entry = served.app, found.entry
    if found.row.version > EVENTS_MOST:
        problem = f"has {found.row.version:,} events; {EVENTS_MOST:,} can be changed in a story"
        raise OperationError(str(found.ref), problem, "Choose a shorter one.")
    rows = live(await whole_stream(internals_of(app).engine.store, found.ref))
    changed = Edit(edit.what, edit.at, _message(served, found, rows, edit))
    until_us = internals_of(app).engine.store.now_us() + round(edit.ahead_days * DAY_US)
    silent = silent_commands(internals_of(app).registry)

    def compared() -> CounterfactualDocument:
        story = counterfactual(entry, found.ref, rows, changed, until_us, silent)
        return found.documents(served).counterfactual(story)

    return await served.slow.compute(compared, watched=True)


def _message(served: Served, found: Opened, rows: Sequence[EventRow], edit: Otherwise) -> Any:
    if edit.what == "drop":
        if edit.type is not None or edit.message is not None:
            raise OperationError("To drop an input", "takes no message", "Leave type and message out.")
        return None
    there = next((row for row in rows if row.version == edit.at), None)
    replaced = there.type if there is not None and edit.what == "replace" else None
    type_name = edit.type or replaced
    if type_name is None or edit.message is None:
        raise OperationError(f"To {edit.what}", "takes a message", "Say its type and its fields.")
    # Python's own writer: it writes all that its reader has let through, and ours says what is wrong with it.
    given = python_json.dumps(edit.message).encode()
    stored = b"" if there is None else there.body or b""
    message = read_message(served.app, type_name, served.restored(type_name, given, stored))
    if type(message) not in found.entry.definition.inputs:
        raise OperationError(found.ref.workflow, f"takes no {type_name}", "Choose one of its inputs.")
    return message
