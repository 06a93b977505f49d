"""Workflows: drawn from their code and their history, checked, and documented."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated, Final, Literal

from fastapi import Path, Query, Response
from msgspec import Struct

from mainspring.analysis.diagram.diagram import Diagram, diagram_of
from mainspring.analysis.diagram.dot import to_dot
from mainspring.analysis.diagram.mermaid import to_mermaid
from mainspring.analysis.diagram.mining import mined_of
from mainspring.analysis.diagram.svg import to_svg
from mainspring.analysis.documentation.subject import Subject, subject_of
from mainspring.analysis.lint.rules import Finding
from mainspring.analysis.reading.model import shortened
from mainspring.app.internals import internals_of
from mainspring.app.search import filter_of
from mainspring.engine.registry import WorkflowEntry, is_internal
from mainspring.web import models
from mainspring.web.problems import Problem, Refusal
from mainspring.web.searching import Since, Until
from mainspring.web.served import Router, Served, answer, told, told_as

SAMPLE: Final = 1_000
LARGEST_SAMPLE: Final = 100_000

Source = Literal["code", "history", "both"]
Format = Literal["json", "svg", "mermaid", "dot"]
Name = Annotated[str, Path(description="The name of a workflow.", examples=["OrderFulfilment"])]

_WRITERS: Final = {"svg": to_svg, "mermaid": to_mermaid, "dot": to_dot}
_MEDIA_TYPES: Final = {"svg": "image/svg+xml", "mermaid": "text/plain", "dot": "text/plain"}
# A picture has its colours inside: they are its own, and nothing else is let in.
_PICTURE: Final = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}


class DrawnDiagram(Struct, frozen=True):
    """A diagram. The program that draws it lays it out; `format=svg` is a whole picture."""

    diagram: Diagram


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "workflows")
    _drawing(router, served)
    _reading(router, served)
    return router


def _drawing(router: Router, served: Served) -> None:
    document, pictures = told(DrawnDiagram), told_as(*sorted(set(_MEDIA_TYPES.values())))
    drawn = {**document, "content": {**document["content"], **pictures["content"]}}

    @router.get("/workflows/{name}/diagram", "read", drawn, 404, 422, 503, 504)
    async def diagram(
        *,
        name: Name,
        source: Annotated[Source, Query(alias="from", description="What is drawn.")] = "code",
        format: Format = "json",
        since: Since = None,
        until: Until = None,
        sample: Annotated[int, Query(ge=1, le=LARGEST_SAMPLE, description="Of so many instances at most.")] = SAMPLE,
        ignored: Annotated[bool, Query(description="Also what changes nothing and decides nothing.")] = False,
    ) -> Response:
        """Draw a workflow: what its code can do, what its instances did, or both together.

        What instances did is counted in a sample of those that moved between `since` and `until`.
        """
        found = await _diagram(served, name, source, (since, until), sample, ignored=ignored)
        if format == "json":
            return answer(DrawnDiagram(found))
        text = await served.slow.compute(lambda: _WRITERS[format](found))
        headers = {"cache-control": "no-store", **(_PICTURE if format == "svg" else {})}
        return Response(text, media_type=_MEDIA_TYPES[format], headers=headers)


def _reading(router: Router, served: Served) -> None:
    @router.get("/workflows/{name}/findings", "read", models.FindingsDocument, 404, 504)
    async def findings(name: Name) -> Response:
        """Return what is wrong with a workflow, or may be, as far as its code and the app's wiring show."""
        entry_of(served, name)
        from mainspring.analysis.lint.check import lint  # noqa: PLC0415  the reader of code, loaded with the first question

        report = await served.slow.compute(lambda: lint(served.app, name))
        found = [each.document(_file(each)) for each in report.findings]
        intended = [each.document(_file(each.finding)) for each in report.intended]
        return answer(models.FindingsDocument(name, found, intended))

    @router.get("/workflows/{name}/documentation", "read", Subject, 404, 504)
    async def documentation(name: Name) -> Response:
        """Return what is known of a workflow from its code: states, messages with fields, transitions, handlers."""
        entry = entry_of(served, name)

        def written() -> Subject:
            machine = served.machine(entry)
            return subject_of(served.app, entry, machine, diagram_of(machine, None))

        return answer(await served.slow.compute(written))


def entry_of(served: Served, name: str) -> WorkflowEntry:
    """Return the workflow of a name."""
    entry = internals_of(served.app).registry.workflows.get(name)
    if entry is None or is_internal(name):
        known = ", ".join(sorted(each for each in internals_of(served.app).registry.workflows if not is_internal(each)))
        detail = f"There is no workflow {name}. This app has {known or 'none'}."
        raise Refusal(Problem(404, "no such workflow", detail, "NoSuchWorkflow"))
    return entry


async def _diagram(
    served: Served,
    name: str,
    source: Source,
    between: tuple[datetime | None, datetime | None],
    sample: int,
    *,
    ignored: bool,
) -> Diagram:
    # What only older code knew can still be drawn from what it left behind.
    unknown = source == "history" and name not in internals_of(served.app).registry.workflows
    entry = None if unknown else entry_of(served, name)
    machine = None
    if entry is not None and source != "history":
        machine = await served.slow.compute(lambda: served.machine(entry))
    mined = None
    if source != "code":
        where = filter_of(workflow=name, updated_from=between[0], updated_to=between[1])
        mined = await served.slow.read(
            ("mined", where, sample), lambda store: mined_of(store, name, entry, where, sample)
        )
    return await served.slow.compute(lambda: diagram_of(machine, mined, ignored=ignored))


def _file(finding: Finding) -> str:
    return shortened(finding.place.file, sys.path)
