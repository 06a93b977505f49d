"""Streams in a file, checked as those in a database are: with the code of an app that need not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from mainspring.analysis.export.stream_file import Item, read_file
from mainspring.analysis.what_if.check import entry_of
from mainspring.analysis.what_if.comparison import Comparison
from mainspring.analysis.what_if.old_code import EVENTS_PER_QUESTION, Beside, OldCode, OldStates
from mainspring.analysis.what_if.report import EXAMPLES, Report, Tally
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.port.records import EventRow, InstanceFilter, InstanceRow, Ref
from mainspring.purity.guarding import Watch

ITEMS_AT_ONCE: Final = 1_000
NO_VERSION: Final = "an archive does not say which version of its workflow it ran under, and this app has several"


def check_file(
    app: Mainspring,
    path: Path,
    wanted: Callable[[InstanceRow], bool] = lambda _: True,
    *,
    examples: int = EXAMPLES,
    against: OldCode | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Report:
    """Walk the streams of a file that `export` or a purge has written with the code of an app, and report.

    The app is not started. With `against`, every state is held against the one that the old code comes to.
    `on_progress` is told how many lines were read since it was told last.
    """
    internals_of(app).registry.add_publication()
    internals_of(app).registry.add_fan_out()
    with nullcontext() if against is None else OldStates(against) as old:
        check = _Check(internals_of(app).registry, wanted, examples, old)
        items = read_file(path, internals_of(app).seal)
        while page := list(islice(items, ITEMS_AT_ONCE)):
            for item in page:
                check.take(item)
            if on_progress is not None:
                on_progress(len(page))
        check.close()
    return replace(check.tally.report(), against=None if against is None else against.name)


class _Check:
    """Takes the items of a file, one after the other; one instance is open at a time."""

    def __init__(
        self, registry: Registry, wanted: Callable[[InstanceRow], bool], examples: int, old: OldStates | None
    ) -> None:
        self.tally = Tally(examples)
        self._registry = registry
        self._wanted = wanted
        self._watch = Watch()
        self._old = old
        self._rows: list[EventRow] = []
        self._row: InstanceRow | None = None
        self._entry: WorkflowEntry | None = None
        self._beside: Beside | None = None

    def take(self, item: Item) -> None:
        beside = self._beside
        if isinstance(item, InstanceRow):
            self.close()
            self._begin(item)
        elif beside is None:
            return
        elif isinstance(item, EventRow):
            self._rows.append(item)
            if len(self._rows) == EVENTS_PER_QUESTION:
                self._give(beside)
        elif beside.walk.gone is None:
            self._give(beside)
            beside.walk.stop(item.why, inside=item.inside)

    def close(self) -> None:
        """Count the instance that is open."""
        beside, entry, row = self._beside, self._entry, self._row
        self._beside = None
        if beside is not None and entry is not None and row is not None:
            self._give(beside, ends=True)
            self.tally.walked(row, entry.version, beside.walk)

    def _give(self, beside: Beside, *, ends: bool = False) -> None:
        rows, self._rows = self._rows, []
        beside.take(rows, ends=ends)

    def _begin(self, row: InstanceRow) -> None:
        if not self._wanted(row):
            return
        entry = entry_of(self._registry, row)
        if not isinstance(entry, str) and not row.definition_version and len(entry.versions) > 1:
            entry = NO_VERSION
        if isinstance(entry, str):
            self.tally.unchecked(row, entry)
            return
        self._row, self._entry = row, entry
        told = self.tally.told(row, entry.version)
        walk = Comparison(entry, Ref(row.workflow, row.id), told=told, watch=self._watch)
        self._beside = Beside(walk, row, self._old)


def matches(where: InstanceFilter, row: InstanceRow) -> bool:
    """Return True if a filter finds an instance, by all that a file says of it.

    >>> matches(InstanceFilter(status="running"), InstanceRow(7, "W", "i", 1, "failed", None, None, 1, b"{}", 0, 0))
    False

    An archive does not say under which version of its workflow an instance ran, so that is asked of exports alone.

    >>> matches(InstanceFilter(workflow_version=2), InstanceRow(7, "W", "i", 1, "failed", None, None, 1, b"{}", 0, 0))
    False
    """
    return all(_conditions(where, row))


def _conditions(where: InstanceFilter, row: InstanceRow) -> Iterator[bool]:
    yield where.workflow in (None, row.workflow)
    yield where.status in (None, row.status)
    yield where.state in (None, row.state)
    yield where.workflow_version in (None, row.definition_version or where.workflow_version)
    yield row.id.startswith(where.id_prefix or "")
    yield (where.error or "") in (row.error or "")
    yield where.created_from_us is None or row.created_us >= where.created_from_us
    yield where.created_to_us is None or row.created_us < where.created_to_us
    yield where.updated_from_us is None or row.updated_us >= where.updated_from_us
    yield where.updated_to_us is None or row.updated_us < where.updated_to_us
