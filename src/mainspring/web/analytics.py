"""Figures of workflows, instances that seem stuck, and what today's code would do otherwise with those there are."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Response
from msgspec.structs import replace

from mainspring.analysis.figures.advice import advice_of
from mainspring.analysis.figures.figures import VARIANTS_SHOWN, Figures, figures_of, moved_within
from mainspring.analysis.reading.model import Machine
from mainspring.analysis.stuck.held import not_going_on
from mainspring.analysis.stuck.lines import lines_of
from mainspring.analysis.stuck.stuck import SHOWN, StuckFound, bounds_of, stuck_of
from mainspring.analysis.what_if.check import check_sample
from mainspring.analysis.what_if.report import EXAMPLES, Report
from mainspring.app.internals import internals_of
from mainspring.app.search import microseconds, read_condition
from mainspring.port.store import Store
from mainspring.web.searching import Attribute, Searched, Since, Until
from mainspring.web.served import Limit, Router, Served, answer

MOST_VARIANTS: Final = 100
SAMPLE: Final = 100
LARGEST_SAMPLE: Final = 1_000
Prefix = Annotated[str | None, Query(description="How the id begins.")]
Variants = Annotated[int, Query(ge=0, le=MOST_VARIANTS, description="So many paths at most.")]


def routes(served: Served) -> Router:
    """Return them."""
    router = Router(served, "analytics")
    _counting(router, served)
    _asking(router, served)
    return router


def _counting(router: Router, served: Served) -> None:
    app = served.app

    @router.get("/analytics", "read", Figures, 409, 422, 503, 504)
    async def analytics(
        *,
        workflow: str | None = None,
        prefix: Prefix = None,
        attribute: Attribute = None,
        since: Since = None,
        until: Until = None,
        variants: Variants = VARIANTS_SHOWN,
    ) -> Response:
        """Return figures of workflows: throughput, durations, failures, time in states, commands, paths and costs.

        `advice` says what of it is worth a look, at most five things.

        What is counted is what happened between `since` and `until`. An answer may be some seconds old.
        """
        begin_us, end_us = microseconds("since", since), microseconds("until", until)
        found = served.sought(
            workflow=workflow, id_prefix=prefix, attributes=[read_condition(text) for text in attribute or ()]
        )
        where = moved_within(found, begin_us, end_us)
        figures = await served.slow.read(
            ("figures", where, begin_us, end_us, variants),
            lambda store: figures_of(store, where, begin_us, end_us, variants),
        )

        def machine(name: str) -> Machine | None:
            entry = internals_of(app).registry.workflows.get(name)
            return None if entry is None else served.machine(entry)

        advice = await served.slow.compute(lambda: advice_of(figures, machine))
        return answer(replace(figures, advice=advice))

    @router.get("/stuck", "read", StuckFound, 409, 422, 503, 504)
    async def stuck(
        workflow: str | None = None, prefix: Prefix = None, attribute: Attribute = None, limit: Limit = SHOWN
    ) -> Response:
        """Return instances that seem stuck, and why: those over their bound, and those unusually long in a state."""
        where = served.sought(
            workflow=workflow, id_prefix=prefix, attributes=[read_condition(text) for text in attribute or ()]
        )
        known, bounds = internals_of(app).registry, bounds_of(internals_of(app).registry)

        async def ask(store: Store) -> StuckFound:
            found = await stuck_of(served.view(store), where, bounds, limit, registry=known)
            return replace(found, lines=await lines_of(store, known, found.shown, served.slow.compute))

        found = await served.slow.read(("stuck", where, limit), ask)
        return answer(replace(found, held_back=tuple(await not_going_on(served.store))))


def _asking(router: Router, served: Served) -> None:
    app = served.app

    @router.get("/what-if", "read", Report, 409, 422, 503, 504)
    async def what_if(
        search: Searched,
        sample: Annotated[int, Query(ge=1, le=LARGEST_SAMPLE, description="So many of each workflow.")] = SAMPLE,
    ) -> Response:
        """Report what would differ if today's code had run all along, for a sample of the instances found.

        Nothing is carried out. Where fields are redacted, the differences are counted and not shown.
        """
        where = served.sought(**search)
        stories = 0 if served.redaction.fields else EXAMPLES
        found = await served.slow.read(
            ("what if", where, sample),
            lambda store: check_sample(served.view(store), internals_of(app).registry, [where], sample, stories),
        )
        return answer(found)
