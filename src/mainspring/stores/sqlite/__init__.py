"""A store in one SQLite file: fast, durable, and shared by the processes of one machine.

```
 event loop                      writer thread                                  the file
 commit(units) ──queue──▶  BEGIN IMMEDIATE                                      WAL, synchronous=FULL
 claim, …      ──queue──▶    check    which units fit? (a few SELECTs that return misfits only)
                             decide   each unit in order, over what earlier ones do (in Python)
                             change   one INSERT, UPDATE or DELETE per table
                           COMMIT ─────────────────────────────────────────────▶ fsync
 outcomes ◀─call_soon_threadsafe, once─┘
 load, stream, … ──queue──▶ reader threads, each with a connection of its own
```

All that waits in the queue when the writer becomes free goes into one transaction. Nothing is answered before COMMIT
has returned. The number of statements does not grow with the number of units (inserts: one per 256 rows), because each
statement gives up the interpreter lock to the event loop and has to get it back.

    store                    the verbs, handed to the writer or to a reader
    writer, transaction      the thread that writes, and what a job in it has at hand
    threads                  jobs and their answers, and the threads that read
    commit, facts, changes   a batch: what the judge asks, and what it has decided
    work, workers, tasks     what is claimed, who lives, tasks that change hands
    loans                    the writer's transaction, lent to a handler
    place, schema            the file and how it is opened; migrations
    statements, dialect      the `.sql` files; how values travel. outputs: rows of the outbox, checked
    hints                    how a process learns of another's commits
    faults, damage           what goes wrong, in the words of `mainspring.errors`; whether records are still whole
    lost_commits             whether the log holds commits that cannot be read
    examination              what `mainspring doctor` looks at
"""

from mainspring.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
