"""What the server's answers mean: what is wrong, how bad it is, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from mainspring.port.examination import Finding, note, problem
from mainspring.stores.postgres.schema import OLDEST_SERVER

MEGABYTE: Final = 1 << 20
# A transaction of ours lasts milliseconds, and the server ends one that is idle for 30 s.
IDLE_SECONDS: Final = 60.0
LONG_SECONDS: Final = 300.0
LATE_SECONDS: Final = 120
LEASE_GRACE_SECONDS: Final = 5.0
SKEW_SECONDS: Final = 2.0
DEAD_ROWS: Final = 100_000
INDEX_BYTES: Final = 256 * MEGABYTE
INDEX_TIMES: Final = 10
SLOT_BYTES: Final = 1_024 * MEGABYTE
SLOT_TRANSACTIONS: Final = 1_000_000
FULL: Final = 0.9
WORK_TABLES: Final = ("inbox", "outbox", "results", "workers")

Answer: TypeAlias = Mapping[str, Any]
Answers: TypeAlias = Sequence[Answer]


def span(seconds: float) -> str:
    """Return a time as people say it.

    >>> span(42), span(600), span(7_300)
    ('42 s', '10 min', '2 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.0f} h"


def of_server(server: Answer) -> Iterator[Finding]:
    """Return what is wrong with the server itself; after these problems no store can be opened.

    >>> [found.what for found in of_server({"version": 12, "full_version": "12.3"})]
    ['The server is PostgreSQL 12.3']
    """
    if server["version"] < OLDEST_SERVER:
        yield problem(f"The server is PostgreSQL {server['full_version']}", f"Use {OLDEST_SERVER} or newer.")
        return
    if server["encoding"] != "UTF8":
        yield problem(f"The database has the encoding {server['encoding']}", "Use a database with the encoding UTF8.")
    if server["standby"]:
        yield problem(
            "This is a standby: it cannot be written",
            "Name the primary in the URL, or all servers with ?target_session_attrs=primary.",
        )
    if server["synchronous_commit"] == "off":
        yield problem(
            "synchronous_commit is off: a crash of the server would lose what it has acknowledged; workers refuse it",
            f'Run ALTER DATABASE "{server["database"]}" SET synchronous_commit = on (or ALTER ROLE, where it was set).',
        )


def of_settings(server: Answer) -> Iterator[Finding]:
    """Return which settings are dangerous, though a store can be opened.

    >>> list(of_settings({"fsync": "on", "full_page_writes": "on", "autovacuum": "on", "track_counts": "on",
    ...     "read_only": False, "idle_session_ms": 0, "transaction_ms": None, "awaited_standbys": ""}))
    []
    """
    for name in ("fsync", "full_page_writes"):
        if server[name] == "off":
            what = f"{name} is off: a crash of the server's machine can damage the database, or lose what it holds"
            yield problem(what, f"Set {name} = on in postgresql.conf and reload.")
    for name in ("autovacuum", "track_counts"):
        if server[name] == "off":
            what = f"{name} is off: dead rows are never removed, and claiming work becomes slow"
            yield problem(what, f"Set {name} = on in postgresql.conf and reload.")
    if server["read_only"]:
        yield problem(
            "default_transaction_read_only is on: nothing can be written",
            "Reset it for this user and database, unless a maintenance has set it.",
        )
    if server["idle_session_ms"]:
        yield problem(
            f"idle_session_timeout is {span(server['idle_session_ms'] / 1e3)}: it ends the connection by which workers "
            "show that they live, and others take over what they are doing",
            f'Run ALTER ROLE "{server["username"]}" SET idle_session_timeout = 0.',
        )
    if server["transaction_ms"] and server["transaction_ms"] < 30_000:
        yield note(
            f"transaction_timeout is {server['transaction_ms']} ms: it ends large batches",
            f'Run ALTER ROLE "{server["username"]}" SET transaction_timeout = 0, or at least 30 s.',
        )
    if server["awaited_standbys"] and not server["standbys"]:
        yield problem(
            f"synchronous_standby_names is {server['awaited_standbys']!r}, and no standby is connected: commits wait",
            "Bring the standby back, or take its name out.",
        )


def of_connections(limits: Answers, workers: int, connections: int) -> Iterator[Finding]:
    """Return which limit of connections is near.

    >>> limits = [{"name": "max_connections", "used": 3, "allowed": 17}]
    >>> [found.what for found in of_connections(limits, workers=4, connections=6)]
    ['4 workers may take 24 connections, and max_connections allows 17']
    """
    for limit in limits:
        name, used, allowed = limit["name"], limit["used"], limit["allowed"]
        if used >= FULL * allowed:
            what = f"{used} of {allowed} connections are taken ({name})"
            yield problem(what, "Raise it, start fewer processes, or give each fewer by ?connections=.")
        elif workers * connections > allowed:
            what = f"{workers} workers may take {workers * connections} connections, and {name} allows {allowed}"
            yield note(what, "Raise it, give each worker fewer by ?connections=, or put a pooler between.")


def of_transactions(transactions: Answers, prepared: Answers, hidden: int) -> Iterator[Finding]:
    """Return which sessions keep a transaction open for long."""
    for one in transactions:
        who = f"Session {one['pid']} (user {one['username']}, application {one['application'] or 'unnamed'})"
        holds = "vacuum and the feed" if one["writes"] else "vacuum"
        since = f"for {span(one['seconds'])}; its last statement began {one['asked']} UTC. It holds back {holds}"
        end = f"SELECT pg_terminate_backend({one['pid']}) ends it."
        if one["idle"] and one["seconds"] >= IDLE_SECONDS:
            yield problem(f"{who} is idle in a transaction {since}", f"Let its program commit; {end}")
        elif one["seconds"] >= LONG_SECONDS:
            found = problem if one["writes"] else note
            yield found(f"{who} has a transaction open {since}", f"Wait for it, or shorten it; {end}")
    for one in prepared:
        what = f"The prepared transaction {one['gid']!r} of {one['username']} is {span(one['seconds'])} old"
        yield problem(f"{what}: it holds back vacuum and the feed", "COMMIT PREPARED or ROLLBACK PREPARED it.")
    if hidden:
        what = f"{hidden} sessions of other users cannot be looked at: one of them may hold back vacuum"
        yield note(what, "GRANT pg_read_all_stats to this user, or let the doctor use another.")


def of_slots(slots: Answers) -> Iterator[Finding]:
    """Return which replication slots hold back what.

    >>> lost = {"name": "old", "active": False, "wal_status": "lost", "bytes": 0, "transactions": 0}
    >>> [found.what for found in of_slots([lost])]
    ["The replication slot 'old' has lost the log that it needs"]
    """
    for slot in slots:
        name = f"The replication slot {slot['name']!r}"
        drop = f"Let its reader catch up, or drop it: SELECT pg_drop_replication_slot('{slot['name']}')."
        if slot["wal_status"] == "lost":
            yield problem(f"{name} has lost the log that it needs", "Build its reader anew, and drop the slot.")
        elif (slot["bytes"] or 0) >= SLOT_BYTES:
            reads = "" if slot["active"] else ", and nothing reads it"
            yield problem(f"{name} keeps {slot['bytes'] // MEGABYTE:,} MB of the log{reads}: the disk fills", drop)
        if slot["transactions"] >= SLOT_TRANSACTIONS:
            yield problem(f"{name} keeps dead rows of the last {slot['transactions']:,} transactions", drop)


def of_tables(tables: Answers, schema: str) -> Iterator[Finding]:
    """Return which tables are full of what is gone."""
    for table in tables:
        name = f'"{schema}".{table["name"]}'
        if table["unattended"]:
            fix = f"ALTER TABLE {name} RESET (autovacuum_enabled)."
            yield problem(f"autovacuum is turned off for {table['name']}", fix)
        if table["dead"] >= DEAD_ROWS and table["dead"] > table["live"]:
            seconds = table["seconds"]
            cleaned = "never cleaned" if seconds is None else f"last cleaned {span(seconds)} ago"
            yield problem(
                f"{table['name']} has {table['dead']:,} dead rows beside {table['live']:,} live ones, {cleaned}",
                f"End old transactions, see that autovacuum runs, and run VACUUM (ANALYZE) {name}.",
            )
        if (
            table["name"] in WORK_TABLES
            and table["index_bytes"] >= INDEX_BYTES
            and table["index_bytes"] > INDEX_TIMES * table["bytes"]
        ):
            size, beside = table["index_bytes"] // MEGABYTE, table["bytes"] // MEGABYTE
            what = f"The indexes of {table['name']} have {size:,} MB, its rows {beside:,} MB"
            yield note(what, f"Run REINDEX TABLE CONCURRENTLY {name}.")


def of_workers(workers: Answers) -> Iterator[Finding]:
    """Return the workers that are gone and not yet relieved.

    >>> left = {"name": "web-1:7", "session": True, "seconds_left": 20.0, "present": False}
    >>> [found.level for found in of_workers([left])]
    ['problem']
    """
    gone = [w for w in workers if w["seconds_left"] < -LEASE_GRACE_SECONDS or (w["session"] and not w["present"])]
    for worker in gone:
        late = worker["seconds_left"] < -LEASE_GRACE_SECONDS
        why = f"let its lease end {span(-worker['seconds_left'])} ago" if late else "has lost its connection"
        what = f"The worker {worker['name']} {why}, and no worker has taken over what it held"
        if len(gone) < len(workers):
            yield note(what, "Another worker does within seconds; look again. If it stays, look at that one's log.")
        else:
            yield problem(what, "Start a worker: it takes over at once, or when the lease ends; nothing is lost.")


def of_overdue(overdue: Answers) -> Iterator[Finding]:
    """Return what is due and not claimed.

    >>> waits = {"kind": "output", "name": "ChargeCard", "count": 3, "seconds": 700.0}
    >>> [found.what for found in of_overdue([waits])]
    ['Nothing takes ChargeCard: 3 waiting, the oldest for 12 min']
    """
    for one in overdue:
        if one["kind"] == "damaged":
            what = f"{one['count']} rows of {one['name']} are damaged and were set aside"
            yield problem(what, "Restore them from a backup, and set their owner to NULL.")
            continue
        what = f"Nothing takes {one['name']}: {one['count']:,} waiting, the oldest for {span(one['seconds'])}"
        knows = "has its handler and serves its pool" if one["kind"] == "output" else "has this workflow and this type"
        yield problem(what, f"Start a worker that {knows}, or more workers.")


def of_clock(skew_seconds: float, uncertain_seconds: float) -> Iterator[Finding]:
    """Return whether the clocks of this machine and the server differ by more than latency can explain.

    >>> [found.what for found in of_clock(-90.0, 0.1)]
    ["This machine's clock is 90 s ahead of the server's"]
    """
    if abs(skew_seconds) - uncertain_seconds > SKEW_SECONDS:
        which = "behind" if skew_seconds > 0 else "ahead of"
        yield problem(
            f"This machine's clock is {span(abs(skew_seconds))} {which} the server's",
            "Leases and timers go by the server's; times that programs here compute do not. Set both by NTP.",
        )


def of_sessions(address_pooled: bool, shared: bool, behind: bool) -> Iterator[Finding]:
    """Return what is wrong with the connection to the server: a pooler in transaction mode must be known to the store.

    >>> [found.what for found in of_sessions(False, shared=True, behind=True)]
    ['A pooler in transaction mode stands before the server, and the URL does not say so']
    """
    if shared and not address_pooled:
        yield problem(
            "A pooler in transaction mode stands before the server, and the URL does not say so",
            "Add pooler=transaction to the URL, or connect past the pooler.",
        )
    if address_pooled and not shared and not behind:
        yield note(
            "The URL says pooler=transaction, but no pooler was noticed",
            "Without it in the URL, dead workers are noticed at once and not by their lease.",
        )
