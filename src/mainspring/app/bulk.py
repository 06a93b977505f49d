"""One operation on many instances, found by a filter."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, get_args

from msgspec.structs import replace

from mainspring.app.instance import Instance
from mainspring.app.internals import Internals
from mainspring.app.search import found
from mainspring.errors import MainspringError, SettingError
from mainspring.port.records import InstanceFilter, InstanceRow, Ref
from mainspring.port.store import Store
from mainspring.views import Action, BulkReport, Refusal

PAGE: Final = 1_000
PER_SECOND: Final = 100.0
REFUSALS_KEPT: Final = 1_000


async def operate(
    internals: Internals,
    action: Action,
    where: InstanceFilter,
    *,
    reason: str,
    actor: str | None,
    dry_run: bool,
    per_second: float,
    on_progress: Callable[[BulkReport], None] | None,
    to: int | None = None,
    store: Store | None = None,
) -> BulkReport:
    """Operate on all instances that a filter finds, no faster than allowed. One that refuses does not stop the rest.

    Which they are is settled before the first is touched: those that come to match later are left alone. A dry run
    counts; one of a migration also asks each whether it could, and touches none. What the engine began for itself, such
    as a fan-out or a schedule, is touched only where the filter names its workflow. `store` is another one than the
    app's in which to look for them.
    """
    store = store or internals.engine.store
    _check(action, where, per_second, to)
    tell = on_progress or _ignored
    keys = array("q")
    async for row in _found(store, where):
        keys.append(row.key)
    report = BulkReport(action, len(keys), dry_run=dry_run)
    tell(report)
    if dry_run and action != "migrate":
        return report
    clock = internals.engine.runtime.clock
    begun_us = clock.now_us()
    tried = 0
    async for row in _still_found(store, where, keys):
        ahead_seconds = tried / per_second - (clock.now_us() - begun_us) / 1e6
        if ahead_seconds > 0:
            await clock.sleep(ahead_seconds)
        tried += 1
        instance = Instance[Any, Any](internals, Ref(row.workflow, row.id))
        try:
            if to is None:
                await _acted(instance, action, reason, actor)
            elif action == "reset":
                await instance.reset(to, reason, actor=actor)
            else:
                await instance.migrate(to, actor=actor, dry_run=dry_run)
            report = replace(report, done=report.done + (not dry_run))
        except MainspringError as error:
            report = _refused(report, Refusal(str(instance), str(error)))
        tell(report)
    return replace(report, matched=tried)


def _refused(report: BulkReport, refusal: Refusal) -> BulkReport:
    """Return a report with one more that refused, and its reason if there is room."""
    kept = (*report.refused, refusal) if len(report.refused) < REFUSALS_KEPT else report.refused
    return replace(report, refusals=report.refusals + 1, refused=kept)


async def _found(store: Store, where: InstanceFilter) -> AsyncIterator[InstanceRow]:
    after = 0
    while page := await found(store, where, PAGE, after):
        for row in page:
            yield row
        after = page[-1].key


async def _still_found(store: Store, where: InstanceFilter, keys: Sequence[int]) -> AsyncIterator[InstanceRow]:
    """Yield those of the instances with these keys, in their order, that the filter finds still; and no others."""
    async for row in _found(store, where):
        place = bisect_left(keys, row.key)
        if place == len(keys):
            return
        if keys[place] == row.key:
            yield row


def _acted(instance: Instance[Any, Any], action: Action, reason: str, actor: str | None) -> Awaitable[None]:
    match action:
        case "suspend":
            return instance.suspend(reason, actor=actor)
        case "resume":
            return instance.resume(actor=actor)
        case "retry":
            return instance.retry(actor=actor)
        case "skip":
            return instance.skip(actor=actor)
        case "terminate":
            return instance.terminate(reason, actor=actor)
        case _:
            return instance.cancel(reason, actor=actor)


def _check(action: str, where: InstanceFilter, per_second: float, to: int | None) -> None:
    if action not in get_args(Action):
        raise SettingError("The action", action, f"Use one of {', '.join(get_args(Action))}.")
    if where == InstanceFilter():
        raise SettingError(
            "The filter", "empty", "Narrow it by workflow, status, state or id_prefix: it means everything."
        )
    if (action in ("reset", "migrate")) != (to is not None):
        raise SettingError(
            "to", to, "Say to which position to reset, or to which version to migrate; other actions have none."
        )
    if not isinstance(per_second, int | float) or not per_second > 0:  # pyright: ignore[reportUnnecessaryIsInstance]  it may be anything
        raise SettingError("per_second", per_second, "Use a positive number, such as 100.")


def _ignored(_: BulkReport) -> None:
    """Ignore the report."""
