"""Every place where content is kept or shown, with what a seal and a redaction make of it: docs/reference/content.md.

Which places there are is asked of the code: of the schemas, the API, the command line, the telemetry, and the modules
that write files. What each holds is said here. A place without a word, and a word without a place, are errors; and what
is said is held against a search for marked secrets by `tests/proof/secrets/test_every_place.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, get_args

from docs.site import places
from mainspring.telemetry import logs
from mainspring.web import live

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/reference/content.md"


class Holding(NamedTuple):
    """What a place holds: in a word, what a seal makes of it, and what is shown of it where fields are redacted."""

    word: str
    sealed: str
    redacted: str


# ---- what columns hold
BODY: Final = Holding("content", "sealed", "without the fields that are redacted")
ERROR: Final = Holding("content", "sealed; before it stands its kind, which is readable", "its kind")
KIND: Final = Holding("content", "its kind is kept and no more", "its kind")
TEXT: Final = Holding(
    "texts of authors and rules", "readable by design", "without the values of redacted fields that it names"
)
ATTRIBUTE: Final = Holding("attributes", "readable by design", "those that do not bear the name of a redacted field")
NAME: Final = Holding("names, ids, keys, people", "readable by design", "the same")
NONE: Final = Holding("no content: numbers, times, statuses, checksums", "the same", "the same")

COLUMNS: Final[dict[str, dict[Holding, str]]] = {
    "attempts": {ERROR: "error", NAME: "worker", NONE: "instance version number began_us ended_us"},
    "attributes": {ATTRIBUTE: "text number", NAME: "name", NONE: "instance kind"},
    "checkpoints": {KIND: "error", NAME: "name", NONE: "generation version status position updated_us"},
    "dead_letters": {
        BODY: "body",
        ERROR: "error",
        TEXT: "reason",
        NAME: "workflow instance message_id type context actor output_destination output_key",
        NONE: "id kind type_version time_us attempts output_instance output_version output_kind output_priority "
        "checksum",
    },
    "documents": {BODY: "body", NAME: "projection key type", NONE: "generation type_version"},
    "endings": {NAME: "workflow", NONE: "ended_us instance"},
    "events": {
        BODY: "body detail",
        NAME: "type message_id context actor state",
        NONE: "position instance version event time_us type_version kind cause attempt duration_us checksum",
    },
    "feed": {NONE: "base purged"},
    "inbox": {
        BODY: "body",
        NAME: "workflow instance message_id type context actor timer_key name message",
        NONE: "position kind type_version time_us cause owner checksum lost",
    },
    "instances": {
        ERROR: "error",
        NAME: "workflow id state context name",
        NONE: "key version status definition_version created_us updated_us context_version purged_us born moved "
        "position",
    },
    "outbox": {
        ERROR: "last_error",
        NAME: "destination key",
        NONE: "instance version kind due_us priority owner attempts checksum lost",
    },
    "posted": {
        BODY: "body",
        NAME: "workflow instance message_id type context actor",
        NONE: "position type_version time_us checksum kind",
    },
    "results": {BODY: "body", NAME: "key type name", NONE: "type_version expires_us"},
    "schema_migrations": {NAME: "name", NONE: "version applied_us"},
    "snapshots": {BODY: "body", NAME: "type", NONE: "instance version fingerprint type_version checksum"},
    "tasks": {
        BODY: "data",
        TEXT: "title",
        NAME: "key answers role person excludes reject claimed_by answered_by answer_type",
        NONE: "instance version opened_us due_us status claimed_us ended_us",
    },
    "workers": {NAME: "name knows held alone life", NONE: "key lease_us ends_us session"},
}

# ---- what is shown: to whoever may ask, opened if it was sealed
SHOWN: Final = Holding("content", "opened", "without redacted fields; of errors the kind")
REFUSALS: Final = Holding("why one was refused, which may be an error", "opened", "the kind of the error")
NAMES: Final = Holding("names", "the same", "the same")
FIGURES: Final = Holding("no content", "the same", "the same")

ROUTES: Final[dict[Holding, str]] = {
    SHOWN: """
        POST /api/requests/{type}
        GET /api/results/{workflow}/{id}
        GET /api/instances
        GET /api/instances/{workflow}/{id}
        GET /api/streams/{workflow}/{id}
        GET /api/states/{workflow}/{id}
        GET /api/waiting/{workflow}/{id}
        GET /api/waits-at/{workflow}/{id}
        GET /api/timers
        GET /api/moments/{workflow}/{id}
        GET /api/explanations/{workflow}/{id}
        POST /api/counterfactuals/{workflow}/{id}
        GET /api/log/{workflow}/{id}
        GET /api/exports/{workflow}/{id}
        GET /api/tests/{workflow}/{id}
        GET /api/live
        GET /api/tasks
        GET /api/tasks/{id}
        POST /api/task-claims/{id}
        DELETE /api/task-claims/{id}
        POST /api/task-delegations/{id}
        POST /api/task-picks
        POST /api/task-answers/{id}
        POST /api/task-rejections/{id}
        GET /api/dead-letters
        GET /api/dead-letters/{id}
        GET /api/dead-letter-kinds
        GET /api/stuck
        GET /api/pauses
        POST /api/pauses/{what}
        DELETE /api/pauses/{what}
        GET /api/what-if
        """,
    REFUSALS: """
        POST /api/dead-letter-operations/{operation}
        POST /api/bulk/{operation}
        GET /api/bulk
        GET /api/bulk/{id}
        DELETE /api/bulk/{id}
        """,
    ATTRIBUTE: "GET /api/attributes/{workflow}/{id}",
    NAMES: """
        POST /api/messages/{type}
        POST /api/events/{type}
        POST /api/envelopes
        POST /api/hooks/{name}
        POST /api/operations/{operation}/{workflow}/{id}
        GET /api/attributes
        GET /api/links/{workflow}/{id}
        DELETE /api/dead-letters/{id}
        POST /api/dead-letters/{id}/retry
        GET /api/workflows/{name}/diagram
        GET /api/workflows/{name}/findings
        GET /api/workflows/{name}/documentation
        GET /api/analytics
        GET /api/metrics
        GET /api/openapi.json
        GET /api/workflows
        GET /api/workers
        GET /api/schedules
        POST /api/schedules/{name}/pause
        POST /api/schedules/{name}/resume
        DELETE /api/schedules/{name}
        GET /api/schedules/{name}/next
        POST /api/schedules/{name}/run
        """,
    FIGURES: "GET /api/stats\nGET /api/health\nGET /api/ready",
}

LIVE: Final[dict[Holding, str]] = {SHOWN: "instance\nevents", FIGURES: "stats"}

# ---- what is printed: to whoever has the app, its database and its keys
PRINTED: Final = Holding("content", "opened", "not redacted: its user has the database")
EXPORTED: Final = Holding("content, in a file, with `--payloads`", "opened", "`--redact`: without fields; the kind")
WRITTEN: Final = Holding("content, in a file, with `--payloads`", "opened", "not redacted: leave out `--payloads`")
RECORDED: Final = Holding("content, in a file", "opened", "not redacted: its user has the database")
SERVED: Final = Holding("what the routes show", "opened", "`--redact`: as the routes")
LOGGED: Final = Holding("its log", "of errors the kind", "not redacted: see the log below")

COMMANDS: Final[dict[Holding, str]] = {
    PRINTED: """
        ls
        show
        state
        log
        reply
        timers
        tasks list
        tasks show
        tasks claim
        tasks release
        tasks delegate
        tasks pick
        tasks complete
        tasks reject
        sources list
        sources pause
        sources resume
        pauses list
        pauses pause
        pauses resume
        dead-letters list
        dead-letters show
        projections list
        projections show
        doctor
        stuck
        what-if
        replay
        explain
        counterfactual
        verify
        bulk
        """,
    EXPORTED: "export",
    WRITTEN: "docs",
    RECORDED: "record",
    SERVED: "studio",
    LOGGED: "worker\ndemo",
    NAMES: """
        new
        send
        schedules list
        schedules next
        schedules pause
        schedules remove
        schedules resume
        schedules run
        dead-letters retry
        dead-letters edit
        dead-letters discard
        projections rebuild
        lint
        stats
        diagram
        suspend
        resume
        retry
        skip
        cancel
        terminate
        reset
        migrate
        purge
        """,
}

# ---- what is told while it runs: to whoever collects it
SAID: Final = Holding("content: what an error says", "its kind", "not redacted")
TOLD: Final = Holding("names", "readable by design", "not redacted")
COUNTED: Final = Holding("no content", "the same", "not redacted")

LOG_FIELDS: Final[dict[Holding, str]] = {
    TOLD: "workflow\ninstance\nmessage_id\nmessage_type\ncorrelation_id\nhandler\ntrace_id",
    COUNTED: "attempt",
}
SPANS: Final[dict[Holding, str]] = {
    SAID: "exception.message",
    TOLD: """
        messaging.destination.name
        messaging.message.id
        messaging.message.conversation_id
        mainspring.workflow
        mainspring.instance
        mainspring.handler
        mainspring.message.type
        error.type
        exception.type
        exception.stacktrace
        """,
    COUNTED: """
        messaging.system
        messaging.operation.name
        messaging.operation.type
        messaging.batch.message_count
        mainspring.message.kind
        mainspring.attempt
        mainspring.outcome
        mainspring.position
        mainspring.link
        """,
}
LABELS: Final[dict[Holding, str]] = {
    TOLD: "handler\nroute\nsource\ntype\nwhat\nworkflow",
    COUNTED: "method\noutcome\nreason\nstatus",
}

# ---- what is written to files, by the module that does it
FILES: Final[dict[str, tuple[str, Holding]]] = {
    "analysis/export/export.py": ("an export, and its part file until it is whole", EXPORTED),
    "analysis/files.py": ("diagrams and documentation, and their part files", WRITTEN),
    "analysis/export/event_logs.py": (
        "objects of an export to OCEL, in the folder for temporary files until it ends",
        NAMES,
    ),
    "analysis/what_if/old_code.py": (
        "older code, in the folder for temporary files until `what-if --against` ends",
        NAMES,
    ),
    "analysis/what_if/old_process.py": (
        "no file: states that older code comes to, through a pipe to the `what-if` that asked",
        Holding("content", "opened", "not redacted: its user has the database"),
    ),
    "app/archive.py": ("the archive of a purge", Holding("content", "sealed", "as it is")),
    "app/histories.py": ("golden histories", RECORDED),
    "cli/demo.py": ("the database of the demo, until it ends", Holding("made up", "not sealed", "as it is")),
    "cli/new.py": ("a project to start from", NAMES),
    "cli/plotting.py": ("plots", NAMES),
    "sealing/keys.py": ("the keys themselves: not beside the database", Holding("keys", "as they are", "never shown")),
    "stores/sqlite/place.py": (
        "the database, its log (`-wal`, `-shm`) and what SQLite itself puts in the folder for temporary files",
        Holding("the columns above", "as the columns", "never shown"),
    ),
    "stores/sqlite/workers.py": ("lock files of workers", Holding("no content", "empty", "never shown")),
}

# ---- what is sent to others, by the module that does it
SENT: Final = Holding("content, with its envelope", "opened", "not redacted: they are to read it")
CARRIED: Final = Holding("what the sink gives it", "opened", "not redacted")
SENDERS: Final[dict[str, tuple[str, Holding]]] = {
    "brokers/sink.py": ("to brokers: what goes to a sink, and replies to who asked through a broker", SENT),
    "remote/service.py": ("to handlers elsewhere: the commands that they carry out", SENT),
    "remote/webhooks.py": ("to webhooks: what they want to hear of", SENT),
    "remote/client.py": (
        "by HTTP: for handlers elsewhere and webhooks",
        Holding("what they give it", "opened", "not redacted"),
    ),
    **{
        f"brokers/{broker}{part}.py": ("by the protocol of a broker", CARRIED)
        for broker, parts in {
            "kafka": ("", "_subscription"),
            "nats": ("", "_publishing", "_subscription", "_turn"),
            "rabbitmq": ("", "_subscription"),
            "redis": ("", "_subscription"),
            "sqs": ("_client",),
        }.items()
        for part in parts
    },
}

HEAD = """\
# Where content is

<!-- Written by `make docs` from the code; what is changed here is lost. -->

Every place where mainspring keeps, shows or sends something of a message, a state, a result or an error, and what a
[seal](../how-to/protect-data.md) that hides, and [`redact`](../how-to/http.md), make of it. Which places there are,
the code says, and one that is not listed fails the tests. Modules that write files or send are known by
the calls and libraries that they use.

The words about columns, routes, commands and spans are tried with marked secrets that go every way: without a seal they
are found in those of content and in no others; with one, in no column, log, span or archive; with `redact`, on no
route. Routes and commands that this does not reach are named, with the reason, in
[the test](../../tests/proof/secrets/test_every_place.py). That the other fields of the log, the labels of metrics and
the live `stats` have no content is said from their code; nothing searches them without a seal.

Put no secret into what is *readable by design*: names, ids, keys, attributes, titles, roles, people. Tables of your own
projections are yours, and so is what your handlers log, send and write. What is refused may quote what was asked for,
to the one that asked.
"""


HOLD = "hold | under a seal | shown where fields are redacted"


class Unsaid(Exception):  # noqa: N818  it says what is missing, and where to say it
    """The code has places of which nothing is said here, or has no longer those of which something is."""


def page() -> str:
    """Return the page as it is committed."""
    log = {"message": SAID, "error": SAID} | said("log fields", LOG_FIELDS, logs.FIELDS)
    parts = [
        HEAD,
        "\n## Kept in the database\n\n" + _columns(),
        "\n## Shown by HTTP and the studio\n\n" + _table("routes", said("routes", ROUTES, places.all_routes())),
        "\n## Shown by `/api/live`\n\n" + _table("events", said("live events", LIVE, get_args(live.Name))),
        "\n## Printed by commands\n\n" + _table("commands", said("commands", COMMANDS, places.all_commands())),
        "\n## Logged\n\n" + _table("fields", log),
        "\n## Told by spans\n\n"
        + _table("attributes", {"status": SAID} | said("span attributes", SPANS, places.all_span_attributes())),
        "\n## Told by metrics\n\n" + _table("labels", said("metric labels", LABELS, places.all_labels())),
        "\n## Sent to others\n\n" + _by_module("senders", SENDERS, places.all_senders(), "what is sent", "sent by"),
        "\n## Written to files\n\n"
        + _by_module("writers of files", FILES, places.all_writers(), "files", "written by"),
    ]
    return "".join(parts)


def said(what: str, words: Mapping[Holding, str], there: Iterable[str]) -> dict[str, Holding]:
    """Return what each place holds, in the order of the places; raise unless each has one word.

    >>> said("doors", {NAMES: "front"}, ["front", "back"])
    Traceback (most recent call last):
    docs.site.content.Unsaid: doors: nothing is said of back; say it in docs/site/content.py
    """
    known = [(place.strip(), holding) for holding, text in words.items() for place in text.strip().splitlines()]
    return _whole(what, known, list(there))


def columns() -> dict[str, Holding]:
    """Return what each column holds, as in `events.body`."""
    known = [
        (f"{table}.{name}", holding)
        for table, holdings in COLUMNS.items()
        for holding, names in holdings.items()
        for name in names.split()
    ]
    return _whole("columns", known, places.all_columns())


def _whole(what: str, known: list[tuple[str, Holding]], there: list[str]) -> dict[str, Holding]:
    words = dict(known)
    silent, idle = [place for place in there if place not in words], sorted(words.keys() - set(there))
    where = "in docs/site/content.py"
    if silent:
        raise Unsaid(f"{what}: nothing is said of {', '.join(silent)}; say it {where}")
    if idle:
        raise Unsaid(f"{what}: there is no {', '.join(idle)} any more; take it out {where}")
    if len(words) != len(known):
        raise Unsaid(f"{what}: one is named twice {where}")
    return {place: words[place] for place in there}


def _columns() -> str:
    rows: dict[Holding, dict[str, list[str]]] = {
        holding: {} for holding in (BODY, ERROR, KIND, TEXT, ATTRIBUTE, NAME, NONE)
    }
    for column, holding in columns().items():
        table, _, name = column.partition(".")
        rows[holding].setdefault(table, []).append(name)
    lines = [f"| columns | {HOLD} |", "|---|---|---|---|"]
    for holding, found in rows.items():
        cell = " · ".join(f"`{table}` {', '.join(names)}" for table, names in found.items())
        lines.append(f"| {cell} | {' | '.join(holding)} |")
    return "\n".join(lines) + "\n"


def _table(what: str, held: Mapping[str, Holding]) -> str:
    """Return a row for all places that hold the same."""
    rows: dict[Holding, list[str]] = {}
    for place, holding in held.items():
        rows.setdefault(holding, []).append(f"`{place}`")
    lines = [f"| {what} | {HOLD} |", "|---|---|---|---|"]
    lines += [f"| {' · '.join(found)} | {' | '.join(holding)} |" for holding, found in rows.items()]
    return "\n".join(lines) + "\n"


def _by_module(
    what: str, words: Mapping[str, tuple[str, Holding]], there: Iterable[str], column: str, done_by: str
) -> str:
    held = _whole(what, [(module, holding) for module, (_, holding) in words.items()], list(there))
    rows: dict[tuple[str, Holding], list[str]] = {}
    for module in held:
        rows.setdefault(words[module], []).append(f"[`{module}`](../../src/mainspring/{module})")
    lines = [f"| {column} | {HOLD} | {done_by} |", "|---|---|---|---|---|"]
    lines += [f"| {text} | {' | '.join(holding)} | {' · '.join(by)} |" for (text, holding), by in rows.items()]
    return "\n".join(lines) + "\n"
