"""Mistakes in the app and at its edges: HTTP, brokers, the command line."""

from __future__ import annotations

from typing import Final

from tests.mutants.mistake import Mistake

_SHOWN: Final = "tests/engine/test_what_is_shown.py::"

APP: Final = (
    Mistake(
        "a stream is purged before its archive is on the disk",
        "app/purging.py",
        "        await self._runtime.in_thread(archive.sync)\n",
        "",
        ("tests/engine/test_purge_archive.py",),
    ),
    Mistake(
        "an operation on many touches instances that came to match while it ran",
        "app/bulk.py",
        "        if keys[place] == row.key:\n            yield row\n",
        "        yield row\n",
        ("tests/engine/test_bulk.py",),
    ),
    Mistake(
        "whoever answers a task that was closed is told of an empty answer",
        "app/tasks.py",
        'if row.status != "answered":',
        'if row.status == "open":',
        ("tests/engine/coordination/test_tasks.py", "tests/engine/coordination/test_task_meetings.py"),
    ),
    Mistake(
        "an answer to a task is judged by the newest version's route, whichever its instance runs under",
        "app/tasks.py",
        "            entry = pinned(entry, loaded)\n",
        "",
        ("tests/engine/coordination/test_task_hands.py",),
    ),
    Mistake(
        "a webhook that was signed for the future is taken",
        "app/hooks.py",
        "abs(now_us - proven.time_s * _MICROSECONDS) > self._window // _MICROSECOND",
        "now_us - proven.time_s * _MICROSECONDS > self._window // _MICROSECOND",
        ("tests/edges/web/test_hooks.py",),
    ),
    Mistake(
        "a dead letter that was sent again meanwhile stays when it is retried",
        "app/letters.py",
        "        await discard(engine, id)  # it was sent again meanwhile, and taken\n",
        "        pass\n",
        ("tests/engine/test_dead_letters.py",),
    ),
    Mistake(
        "a dead letter of an instance that has ended is retried",
        "engine/operations/retried_letter.py",
        "    if row.status in ENDED:\n",
        "    if row.status in ():\n",
        ("tests/engine/test_handled_failures.py",),
    ),
    Mistake(
        "an answer that a reset left behind keeps the next one out",
        "app/answers.py",
        "rows = live(await store.stream(ref, version, EVENTS_LOOKED_AT))",
        "rows = await store.stream(ref, version, EVENTS_LOOKED_AT)",
        ("tests/edges/remote/test_service.py",),
    ),
    Mistake(
        "an instance was changed last when it began",
        "app/viewing.py",
        "updated=moment(row.updated_us),",
        "updated=moment(row.created_us),",
        (_SHOWN + "test_an_instance_began_with_its_first_input_and_was_changed_with_its_last",),
        "not postgres",
    ),
    Mistake(
        "a timer's seconds are shown in milliseconds",
        "app/viewing.py",
        "after_seconds=None if detail.after_us is None else detail.after_us / 1e6,",
        "after_seconds=None if detail.after_us is None else detail.after_us / 1e3,",
        ("tests/edges/web/test_api.py", "tests/edges/cli/test_looking.py", "tests/edges/web/test_history.py"),
    ),
    Mistake(
        "what waits for any workflow is counted for each that is paused",
        "app/pauses.py",
        "sum(one.count for one in inputs if one.workflow == pause.name), False",
        "sum(one.count for one in inputs), False",
        ("tests/engine/test_pauses.py::test_the_list_says_what_is_paused_by_whom_since_when_and_how_many_wait",),
        "not postgres",
    ),
)

WEB: Final = (
    Mistake(
        "whoever adds a second header with groups has those of both",
        "web/access.py",
        'if address not in self.proxies or not is_name(name) or "\\n" in listed:',
        "if address not in self.proxies or not is_name(name):",
        ("tests/edges/web/test_access.py",),
    ),
    Mistake(
        "the page of a neighbour under the same site may change something",
        "web/guard.py",
        '_OUR_PAGES: Final = frozenset({"same-origin", "none"})',
        '_OUR_PAGES: Final = frozenset({"same-origin", "same-site", "none"})',
        ("tests/edges/web/test_access.py", "tests/edges/web/test_hostile.py"),
    ),
    Mistake(
        "whoever is in any group picks the tasks of every role",
        "web/tasks.py",
        "if known.name is not None and picked.role not in known.groups:",
        "if known.name is not None and not known.groups:",
        ("tests/edges/web/test_access.py",),
    ),
    Mistake(
        "a page that is read in several pieces says that it is the last one",
        "web/served.py",
        "more = len(rows) == wanted",
        "more = len(rows) == limit",
        ("tests/edges/web/test_api.py", "tests/edges/web/test_many.py"),
    ),
    Mistake(
        "a listener that is far behind is told of the first events only",
        "web/live.py",
        "listener.seen = row if last >= row.version or not events else None",
        "listener.seen = row",
        ("tests/edges/web/test_live.py",),
    ),
    Mistake(
        "who may only look can stop an operation on many",
        "web/bulk.py",
        '@router.delete("/bulk/{id}", "act", models.BulkDocument, 404)',
        '@router.delete("/bulk/{id}", "read", models.BulkDocument, 404)',
        ("tests/edges/web/test_access.py", "tests/edges/web/test_many.py"),
    ),
    Mistake(
        "where a search ends tells what it looked into",
        "analysis/export/viewed_store.py",
        "rows, behind = await self._store.search(_any_error(where), limit, after, newest)",
        "rows, behind = await self._store.search(where, limit, after, newest)",
        ("tests/proof/secrets/test_shown_bytes.py::test_no_search_spells_out_what_is_not_shown",),
    ),
    Mistake(
        "a field that is not to be shown is shown in the headers of a dead letter",
        "web/letters.py",
        'name: MARKER if hides(_shown_as(row), name.removeprefix("ce-")) else value',
        "name: MARKER if hides(_shown_as(row), name) else value",
        ("tests/edges/brokers/test_letters_over_http.py",),
    ),
    Mistake(
        "why a workflow refused an answer quotes what is hidden elsewhere",
        "web/served.py",
        'elif isinstance(error, TaskRefusedError) and error.reason == "guard":',
        'elif isinstance(error, TaskRefusedError) and error.reason == "answer":',
        ("tests/edges/web/test_api.py",),
    ),
    Mistake(
        "the log shows in the reason of a refused answer what is hidden elsewhere",
        "web/history.py",
        '    "Refused",\n',
        "",
        ("tests/edges/web/test_history.py", "tests/edges/web/test_api.py"),
    ),
)

BROKERS: Final = (
    Mistake(
        "a broker is not told that what it delivered is in good hands",
        "brokers/source.py",
        "                    await subscription.extend(deliveries)\n",
        "                    pass\n",
        ("tests/edges/brokers/test_sources.py",),
    ),
    Mistake(
        "the tracestate of a message is sent under a name that no tool looks for",
        "brokers/wire.py",
        '_TRACE: Final = ("traceparent", "tracestate")',
        '_TRACE: Final = ("traceparent",)',
        (
            "tests/edges/brokers/test_sources.py::test_the_trace_of_a_message_travels_in_the_headers_that_tools_look_for",
        ),
    ),
    Mistake(
        "entries of Redis whose answer was lost are not read again",
        "brokers/redis_subscription.py",
        "cursor, self._cursor = self._cursor, BEGINNING\n",
        "cursor = self._cursor\n",
        ("tests/edges/brokers/test_redis_turn.py",),
    ),
    Mistake(
        "the turn at NATS is taken from somebody who renews it",
        "brokers/nats_turn.py",
        "if state == HELD and entry.revision != self._seen:",
        "if state == HELD and self._seen is None:",
        ("tests/edges/brokers/test_nats_turn.py",),
    ),
    Mistake(
        "of two messages under one id that cannot be taken, one is kept",
        "brokers/source.py",
        "keeping[number if anew else (each.id, delivery.body)]",
        "keeping[number if anew else each.id]",
        ("tests/edges/brokers/test_undelivered.py",),
    ),
    Mistake(
        "what goes back to SQS is received behind what came after it",
        "brokers/sqs_subscription.py",
        "deque(sorted([*back, *self._ready], key=lambda delivery: delivery.token))",
        "deque([*self._ready, *back])",
        ("tests/edges/brokers/test_sqs_contract.py", "tests/edges/brokers/test_sqs.py"),
    ),
    Mistake(
        "two messages with one text are one to SQS",
        "brokers/sqs.py",
        "sha256(message.id.encode()).hexdigest(),",
        "sha256(message.body).hexdigest(),",
        ("tests/edges/brokers/test_sqs_contract.py", "tests/edges/brokers/test_sqs.py"),
    ),
    Mistake(
        "the headers of a message take nothing of what SQS takes in a message",
        "brokers/sqs.py",
        'return len(entry["MessageBody"].encode()) + beside',
        'return len(entry["MessageBody"].encode())',
        ("tests/edges/brokers/test_sqs.py",),
    ),
)

CLI: Final = (
    Mistake(
        "--until looks at when instances began",
        "cli/searching.py",
        "updated_to=time_of(until),",
        "updated_to=time_of(began_until),",
        ("tests/edges/cli/test_read_models.py",),
    ),
    Mistake(
        "an instance whose id is another's whole name cannot be named",
        "cli/loading.py",
        "match exact or found:",
        "match found:",
        ("tests/edges/cli/test_loading.py", "tests/edges/cli/test_looking.py"),
    ),
    Mistake(
        "a worker that reloads is scraped at another address than asked for",
        "cli/worker.py",
        'options += [f"--metrics-port={metrics_port}", f"--metrics-host={metrics_host}"]',
        'options += [f"--metrics-port={metrics_port}"]',
        ("tests/edges/cli/test_worker.py",),
    ),
    Mistake(
        "why an instance refused reaches the terminal with its control characters",
        "cli/bulk.py",
        'click.echo(f"  {visible(refusal.instance)}: {visible(refusal.why)}")',
        'click.echo(f"  {visible(refusal.instance)}: {refusal.why}")',
        ("tests/edges/cli/test_operating.py",),
    ),
    Mistake(
        "an operation on many that some refused ends with exit code 0",
        "cli/bulk.py",
        "return REFUSED if report.refusals else 0",
        "return REFUSED if report.refusals and not report.done else 0",
        ("tests/edges/cli/test_operating.py",),
    ),
    Mistake(
        "a dead letter that is named twice is retried twice",
        "cli/letters.py",
        "for id in dict.fromkeys(ids)]",
        "for id in ids]",
        ("tests/edges/cli/test_dead_letters.py",),
    ),
)
