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
"""

from mainspring.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
