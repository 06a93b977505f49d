"""Looks for what is wrong, and says what to do about it."""

from __future__ import annotations

import asyncio
import platform
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

import click
from msgspec import Struct, field
from msgspec.structs import asdict

from mainspring.analysis.stuck import held
from mainspring.analysis.stuck.held import FIX, held_back
from mainspring.app import Mainspring
from mainspring.app.commands import command
from mainspring.app.internals import internals_of
from mainspring.app.observing import OVERDUE_LOOKED_AT, orphans_of, overdue_of
from mainspring.app.pauses import COMMANDS_COUNTED
from mainspring.app.services import Source
from mainspring.app.viewing import instance_view
from mainspring.cli.failures import REFUSED, one_line
from mainspring.cli.loading import load_app, shown_url, with_app
from mainspring.cli.options import app_argument, examples, json_option, optional_app_option
from mainspring.cli.output import counted, distance, visible, write_json, write_table
from mainspring.core.story import duration
from mainspring.engine.fleet.unread import fleet_of, unread_of
from mainspring.engine.operations.known_pauses import unread_pauses
from mainspring.engine.operations.pause_orders import WAY_OUT
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.runtime import SystemClock
from mainspring.errors import MainspringError, told
from mainspring.port.examination import Examination, Examined, Finding, note, problem
from mainspring.port.records import InstanceFilter, Ref
from mainspring.port.store import Store
from mainspring.stores import open_store
from mainspring.views import InstanceInfo, PauseInfo, ProjectionStatus, Stats

SAFE_SQLITE: Final = (3, 51, 3)
LATE: Final = timedelta(minutes=2)
SHOWN: Final = 10
SUSPENDED_LOOKED_AT: Final = 1_000
LOOK_SECONDS: Final = 60.0
PACKAGES: Final = ("mainspring", "msgspec", "apsw", "asyncpg")


class Health(Struct):
    """What the doctor has seen.

    >>> Health({"Python": "3.13"}).ok
    True
    """

    versions: dict[str, str]
    app: str | None = None
    store: str | None = None
    database: dict[str, str] = field(default_factory=dict[str, str])
    now_us: int = 0
    stats: Stats | None = None
    suspended: list[InstanceInfo] = field(default_factory=list[InstanceInfo])
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; notes are nothing wrong."""
        return not any(finding.level == "problem" for finding in self.findings)

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        stats = self.stats or Stats({}, 0, 0, 0, 0, 0, None)
        return {
            "ok": self.ok,
            "versions": self.versions,
            "app": self.app,
            "store": self.store,
            "database": self.database,
            **asdict(stats),
            "suspended": self.suspended,
            "findings": self.findings,
        }


@click.command(epilog=examples("mainspring doctor", "mainspring doctor --json | jq .findings"))
@json_option
@app_argument
@optional_app_option
def doctor(as_json: bool, address: str | None) -> int:
    """Look for what is wrong: versions, queues, stuck instances, late timers.

    Exit code 1 says that something is wrong; each finding says what to do. Without an app, only versions are shown.
    """
    health = Health(versions())
    health.findings += version_findings()
    if address is None:
        health.findings.append(note("No app was checked", "Name one with --app module:app."))
    else:
        health.app = address
        _examine(health, address)
    if as_json:
        write_json(health.document())
    else:
        _write(health)
    return 0 if health.ok else REFUSED


# ---- looking


def versions() -> dict[str, str]:
    """Return the versions of everything that matters.

    >>> sorted(versions())
    ['Python', 'SQLite', 'apsw', 'asyncpg', 'mainspring', 'msgspec']
    """
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["SQLite"] = ".".join(map(str, _sqlite())) or "not installed"
    return found


def version_findings() -> list[Finding]:
    """Return what is wrong with the versions."""
    sqlite = _sqlite()
    if sqlite and sqlite < SAFE_SQLITE:
        what = f"SQLite {'.'.join(map(str, sqlite))} can damage a database in WAL mode"
        return [problem(what, f"Upgrade apsw, so that it brings {'.'.join(map(str, SAFE_SQLITE))} or newer.")]
    return []


def _sqlite() -> tuple[int, ...]:
    try:
        import apsw  # noqa: PLC0415  an app on another database need not have it
    except ImportError:
        return ()
    return tuple(map(int, apsw.sqlite_lib_version().split(".")))


def _examine(health: Health, address: str) -> None:
    try:
        app = load_app(address)
        health.store = shown_url(internals_of(app).url)
        examination = asyncio.run(_examined(app))
        health.database = examination.facts
        health.findings += examination.findings
        if examination.ready:
            with_app(address, lambda app: _look(health, app), LOOK_SECONDS)
    except (MainspringError, TimeoutError) as error:
        why = one_line(str(error)) or f"it takes more than {LOOK_SECONDS:g} s"
        health.findings.append(problem(f"{address} cannot be read: {why}", "See above."))


async def _examined(app: Mainspring) -> Examination:
    """Let the store look at itself before it is opened: it may be unable to open, or change something by it."""
    store = open_store(internals_of(app).url, SystemClock())
    if not isinstance(store, Examined):
        return Examination([])
    async with asyncio.timeout(LOOK_SECONDS):
        return await store.examine()


async def _look(health: Health, app: Mainspring) -> None:
    store = internals_of(app).engine.store
    health.now_us = store.now_us()
    health.stats = await app.stats()
    found = await store.instances(InstanceFilter(status="suspended"), SHOWN)
    health.suspended = [instance_view(row) for row in found]
    paused = await app.pauses.list()
    health.findings += [_pause_finding(info) for info in paused]
    if (unread_orders := await unread_pauses(store)) is not None:
        health.findings.append(problem(one_line(unread_orders).rstrip("."), WAY_OUT))
    parked = 0 if health.stats.workers else await _parked(store, health.stats.inbox)
    waits = bool(paused) and await _waits_for_pauses(store, paused)
    health.findings = [one for one in health.findings if not _is_of_pauses(one, paused)]
    health.findings += queue_findings(health.stats, moment(health.now_us), paused=waits, parked=parked)
    health.findings += [problem(what, FIX) for what in (await held_back(store)).values()]
    lost = [text for texts in (await held.suspected(store)).values() for text in texts]
    health.findings += [problem(text, held.SUSPECTED_FIX) for text in lost[:SHOWN]]
    strange = await unread_of(store)
    health.findings += [problem(held.unread_told(one, health.now_us), held.UNREAD_FIX) for one in strange]
    health.findings += await _orphans(app)
    health.findings += await _overdue(app)
    health.findings += [found for status in await app.projections.list() for found in projection_findings(status)]
    for source in internals_of(app).services.sources.values():
        health.findings += await _source_findings(source, health.stats)


def _pause_finding(info: PauseInfo) -> Finding:
    """Return what is paused, by which actor, since when and why: no fault, but an operator has to end it."""
    text = one_line(str(info))
    or_more = " or more" if info.more else ""
    waits = "" if not info.waiting else f"; {counted(info.waiting, 'message')}{or_more} waiting"
    return note(f"{text[0].upper()}{text[1:]}{waits}", f"{command('pauses', 'resume', info.what)}.")


async def _waits_for_pauses(store: Store, paused: list[PauseInfo]) -> bool:
    """Return True if all that is due, as far as it was read, waits for what is paused."""
    now_us, whats = store.now_us(), {info.what for info in paused}
    outputs = await store.outputs(None, timers=False, limit=COMMANDS_COUNTED)
    due = [claim for claim in (*outputs, *await store.timers(COMMANDS_COUNTED)) if claim.due_us <= now_us]
    return all({f"handler:{claim.type}", f"workflow:{claim.workflow}"} & whats for claim in due)


def _is_of_pauses(finding: Finding, paused: list[PauseInfo]) -> bool:
    """Return True if a store reports what is paused as not taken: it knows of no pauses."""
    return any(finding.what.startswith(f"Nothing takes {info.name}: ") for info in paused)


async def _parked(store: Store, inbox: int) -> int:
    """Return how many of the inputs that wait do so for suspended instances: no worker would take them."""
    parked = 0
    if inbox:
        for row in await store.instances(InstanceFilter(status="suspended"), SUSPENDED_LOOKED_AT):
            parked += len(await store.inbox(Ref(row.workflow, row.id), inbox))
    return parked


def queue_findings(stats: Stats, now: datetime, *, paused: bool = False, parked: int = 0) -> list[Finding]:
    """Return what the depths and ages say. Of the inputs that wait, `parked` ones do so for suspended instances.

    >>> queue_findings(Stats({"suspended": 2}, 0, 0, 0, 0, 1, None), datetime(2026, 1, 1))[0].what
    '2 instances are suspended'
    """
    found: list[Finding] = []
    suspended = stats.instances.get("suspended", 0)
    if suspended:
        are = "is" if suspended == 1 else "are"
        what = f"{counted(suspended, 'instance')} {are} suspended"
        found.append(problem(what, "`mainspring show ID` says why, and what to do."))
    if stats.dead_letters:
        what = f"{counted(stats.dead_letters, 'message')} could not be carried out"
        fix = "See `mainspring dead-letters list`; then retry what is still wanted: it says what is refused, and why."
        found.append(problem(what, f"{fix} Discard that, and what is not needed."))
    due = stats.oldest_due
    waits = stats.inbox > parked or (due is not None and due <= now)
    if waits and not stats.workers:
        found.append(problem("Work waits, and no worker runs", "Start one: `mainspring worker module:app`."))
    elif due is not None and now - due > LATE:
        what = f"The oldest due message was due {distance(due, now)}"
        if paused:
            found.append(note(what, "It waits for what is paused."))
        else:
            found.append(problem(what, "Start more workers, or look at what their handlers wait for."))
    elif not stats.workers:
        found.append(note("No worker runs", "Nothing waits for one now."))
    return found


def projection_findings(status: ProjectionStatus) -> list[Finding]:
    """Return what is wrong with a read model.

    >>> projection_findings(ProjectionStatus("orders", declared=True, live=None, building=None))
    []
    """
    found: list[Finding] = []
    if status.left is not None:
        what = f"The projection {status.name} waits in a worker for one of a newer release: {one_line(status.left)}"
        found.append(note(what, "There is nothing to do while one runs: it continues with the others."))
    for lag in (status.live, status.building):
        if lag is None:
            continue
        what = f"The projection {status.name}, generation {lag.generation},"
        if lag.error is not None:
            holds = " Until then, what has ended since is not purged." if status.declared and lag is status.live else ""
            fix = f"Mend its code or that event's cause; it continues by itself.{holds}"
            found.append(problem(f"{what} is stopped: {one_line(lag.error)}", fix))
        elif lag.events and lag.seconds > LATE.total_seconds() and status.declared:
            fix = "Start a worker that has it, or more of them."
            if status.left is not None:
                fix = "No worker that runs can read what is next: start one of the newer release."
            found.append(problem(f"{what} is {counted(lag.events, 'event')} and {lag.seconds:,.0f} s behind", fix))
    return found


async def _source_findings(source: Source, stats: Stats) -> list[Finding]:
    """Return what keeps a source from taking what waits at its broker."""
    name = source.figures.name
    try:
        lag = await source.lag()
    except Exception as error:  # noqa: BLE001  whatever a broker's client says
        what = f"The broker {source.figures.broker} cannot be asked by the source {name}: {one_line(told(error))}"
        return [problem(what, "Look at the broker; sources connect again by themselves.")]
    if (paused := await source.paused()) is not None:
        waits = "" if not lag else f"; {counted(lag, 'message')} waiting"
        return [
            note(f"The source {name} is paused: {one_line(paused)}{waits}", f"{command('sources', 'resume', name)}.")
        ]
    if lag and not stats.workers:
        what = f"{counted(lag, 'message')} waiting for the source {name}, and no worker runs"
        return [problem(what, "Start one: `mainspring worker module:app`.")]
    return []


async def _orphans(app: Mainspring) -> list[Finding]:
    """Return what waits for a handler that this app does not have, where no worker reports what it has."""
    if await fleet_of(internals_of(app).engine.store) is not None:
        return []
    return [
        problem(f"No handler of this app takes {name}: {counted(count, 'message')} waiting", "Register one.")
        for name, count in sorted((await orphans_of(internals_of(app))).items())
    ]


async def _overdue(app: Mainspring) -> list[Finding]:
    """Return which workflows have instances that run longer than the workflow expects."""
    found: list[Finding] = []
    for name, late in sorted((await overdue_of(internals_of(app))).items()):
        within = internals_of(app).registry.workflows[name].definition.expected_within
        if late and within is not None:
            or_more = " or more" if late == OVERDUE_LOOKED_AT else ""
            what = f"{counted(late, 'instance')}{or_more} of {name} {'runs' if late == 1 else 'run'} longer than"
            what = f"{what} {duration(within)}"
            found.append(problem(what, f"{command('stuck', '--workflow', name)} says why."))
    return found


# ---- writing

_MARKS: Final[dict[Literal["problem", "note"], tuple[str, str]]] = {"problem": ("wrong:", "red"), "note": ("note:", "")}


def _write(health: Health) -> None:
    rows = [*health.versions.items()]
    if health.app is not None:
        rows.append(("app", health.app))
    if health.store is not None:
        rows += [("store", health.store), *health.database.items()]
    stats = health.stats
    if stats is not None:
        due = "nothing is due" if stats.oldest_due is None else distance(stats.oldest_due, moment(health.now_us))
        instances = ", ".join(f"{count:,} {status}" for status, count in sorted(stats.instances.items()))
        rows += [
            ("instances", instances or "none"),
            ("inbox", f"{stats.inbox:,}"),
            ("outbox", f"{stats.outbox:,}"),
            ("timers", f"{stats.timers:,}"),
            ("oldest due", due),
            ("dead letters", f"{stats.dead_letters:,}"),
            ("workers", f"{stats.workers:,}"),
        ]
    write_table(("what", "found"), rows, heading=False)
    if health.suspended:
        click.echo()
        write_table(
            ("suspended", "state", "updated", "error"),
            [
                (row.instance, row.state or "", distance(row.updated, moment(health.now_us)), row.error or "")
                for row in health.suspended
            ],
        )
    click.echo()
    for finding in health.findings:
        mark, colour = _MARKS[finding.level]
        click.echo(f"{click.style(mark, fg=colour or None)} {visible(finding.what)}. {finding.fix}")
    if health.ok:
        click.secho("Nothing is wrong.", fg="green")
