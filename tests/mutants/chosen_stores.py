"""Mistakes in the stores."""

from __future__ import annotations

from typing import Final

from tests.mutants.mistake import Mistake

_MEMORY: Final = "tests/stores/test_memory.py"
_SQLITE: Final = "tests/stores/test_sqlite.py"
_POSTGRES: Final = "tests/stores/test_postgres.py"

STORES: Final = (
    Mistake(
        "what an error says is stored beside a seal, and not under it",
        "stores/sealed/bodies.py",
        "return text if text is None or not self.secret else closed_error(text, about, self._seal)",
        "return text",
        ("tests/stores/test_sealed_errors.py",),
    ),
    Mistake(
        "a timer that has fired outlives the beginning of a compensation",
        "stores/commit/changes.py",
        'if everything in ("timers", "forward"):\n            self.fired',
        'if everything == "timers":\n            self.fired',
        (_MEMORY,),
    ),
    Mistake(
        "in memory, a lease that ends now has not ended",
        "stores/memory/workers.py",
        "if worker.ends_us <= self.now_us()]",
        "if worker.ends_us < self.now_us()]",
        (_MEMORY,),
    ),
    Mistake(
        "in memory, a person sees tasks that exclude them",
        "stores/memory/task_table.py",
        "if person is not None and (person in task.excludes or task.claimed_by not in (None, person)):",
        "if person is not None and task.claimed_by not in (None, person):",
        (_MEMORY,),
    ),
    Mistake(
        "in memory, a page of what can be purged leaves one out before the next",
        "stores/memory/upkeep.py",
        "ends[limit - 1][0] if len(ends) > limit else None",
        "ends[limit][0] if len(ends) > limit else None",
        (_MEMORY,),
    ),
    Mistake(
        "a message that is accepted twice in one batch is not recognised",
        "stores/commit/judge.py",
        "if known.accepted and message_id in known.accepted:",
        "if self._taken and known.accepted and message_id in known.accepted:",
        (_SQLITE, "tests/stores/test_sqlite_batches.py"),
    ),
    Mistake(
        "an instance that begins anew keeps the context of its first life",
        "stores/commit/judge.py",
        "            changes.renewed.append(known)\n",
        "",
        (_SQLITE, "tests/stores/test_sqlite_batches.py"),
    ),
    Mistake(
        "an output that is made and fails in one batch forgets its error",
        "stores/commit/changes.py",
        "born.due_us, born.owner, born.attempts, born.error = due_us, None, retry.attempts, retry.error",
        "born.due_us, born.owner, born.attempts, born.error = due_us, None, retry.attempts, None",
        ("tests/stores/test_sqlite_batches.py",),
    ),
    Mistake(
        "in SQLite, an instance that begins and ends in one batch is never purged",
        "stores/sqlite/changes.py",
        "if ended := [(i.key, i.workflow) for i in (*changes.begun, *changes.moved) if i.status in ENDED]:",
        "if ended := [(i.key, i.workflow) for i in changes.moved if i.status in ENDED]:",
        (_SQLITE, "tests/stores/test_sqlite_batches.py"),
    ),
    Mistake(
        "in SQLite, what waits behind a damaged input overtakes it",
        "stores/sqlite/queries.sql",
        "FROM inbox INDEXED BY inbox_by_owner WHERE owner >= 0 AND owner <> ?2",
        "FROM inbox INDEXED BY inbox_by_owner WHERE owner > 0 AND owner <> ?2",
        ("tests/stores/test_sqlite_faults.py",),
    ),
    Mistake(
        "a damaged row on a page lets a search leave out what follows",
        "stores/sql/instances.py",
        "return Found(rows, found[-1][0] if len(found) == limit else until)",
        "return Found(rows, rows[-1].key if len(rows) == limit else until)",
        ("tests/stores/test_sqlite_damage.py",),
    ),
    Mistake(
        "in SQLite, the lock of a dead worker is kept when its relief is rolled back",
        "stores/sqlite/workers.py",
        "        transaction.when_rolled_back += [self._unlocker(key) for key in seized]\n",
        "",
        ("tests/stores/test_sqlite_faults.py",),
    ),
    Mistake(
        "a thousand that an index finds are taken for all there are",
        "stores/sql/instances.py",
        "self.dialect.narrowing(where, FEW + 1)",
        "self.dialect.narrowing(where, FEW)",
        ("tests/stores/test_searching.py",),
    ),
    Mistake(
        "a timer that the same batch has cancelled can still be settled",
        "stores/commit/judge.py",
        'return fact.key not in known.cancelled_keys and not (fact.kind == "timer" and known.cancelled_timers)',
        "return fact.key not in known.cancelled_keys",
        (_POSTGRES,),
    ),
    Mistake(
        "in PostgreSQL, an error with a zero byte cannot be written",
        "stores/postgres/changes.py",
        "(*spot, due, tries, clean(error))",
        "(*spot, due, tries, error)",
        ("tests/stores/test_postgres_faults.py",),
    ),
    Mistake(
        "in PostgreSQL, nobody is told that a resumed instance has inputs",
        "stores/postgres/changes.py",
        '            await transaction.rows("unpark_inputs", resumed)\n            changes.news = True\n',
        '            await transaction.rows("unpark_inputs", resumed)\n',
        ("tests/stores/test_postgres_workers.py",),
        "wake",
    ),
    Mistake(
        "in PostgreSQL, what waits behind a damaged input stays with a worker that does not know of it",
        "stores/postgres/work.py",
        "            aside.append((name, row[0], None))  # what stands behind a damaged input waits for it\n",
        "",
        ("tests/stores/test_postgres_faults.py",),
        "damaged",
    ),
    Mistake(
        "in PostgreSQL, a connection that came back does not take its workers' locks again",
        "stores/postgres/presence.py",
        "for worker in sorted(self.workers):",
        "for worker in ():",
        ("tests/stores/test_postgres_workers.py",),
    ),
    Mistake(
        "in PostgreSQL, the role that a handler has set is still set when its result is recorded",
        "stores/postgres/loans.py",
        "await transaction.session.run(_UNDO + self._lender.transactions.settings + _SAVEPOINT)",
        "await transaction.session.run(self._lender.transactions.settings + _SAVEPOINT)",
        ("tests/stores/test_postgres_loans.py",),
    ),
    Mistake(
        "a task is open again beside the one that took its place",
        "stores/commit/task_book.py",
        'if again is not None and not any(task.status == "open" and task.key == again.key for task in own.values()):',
        "if again is not None:",
        (_MEMORY,),
    ),
    Mistake(
        "what an operator read before a key was renewed is written under the new one",
        "stores/sealed/renewals.py",
        "newest > (self.began if unit.era is None else unit.era)",
        "newest > self.began",
        ("tests/stores/test_renewals.py",),
    ),
    Mistake(
        "the second key of a subject is not known to be a renewed one",
        "sealing/keys.py",
        "renewed=generation > 1)",
        "renewed=generation > 2)",
        ("tests/stores/test_renewals.py", "tests/engine/test_sealing.py"),
        "not postgres",
    ),
)
