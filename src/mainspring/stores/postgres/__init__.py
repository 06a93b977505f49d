"""A store in PostgreSQL: as many workers as you like, on many machines, and no coordinator among them.

```
 commit(units)                                    the transaction (READ COMMITTED)
   BEGIN
   lock     the worker and the instances ───────▶ row locks, in the order of names
   facts    what the batch asks, in one statement ─▶ a snapshot behind the locks
   judge    each unit in order, over what earlier ones do (in Python)
   write    all tables in one statement ────────▶ rows as JSON, whatever the number of units
   COMMIT                                         then, if there is work that no worker holds: NOTIFY
```

- A batch costs these five round trips, and one more for each rare thing in it (cancelling, the inbox, dead letters).
- Locks before facts: a statement that waited for a lock sees all other rows as they were before it waited.
- What has no row to lock is protected by unique indexes: a violation rolls back, and the batch is retried. An instance
  that inputs wait for before it has begun has a row already, with a negative key, to be locked.
- A commit whose answer is lost is looked up by its transaction's number (`pg_xact_status`), never guessed.
- A worker holds an advisory lock on a connection of its own: the server frees it when the worker is gone. Behind a
  pooler in transaction mode (`?pooler=transaction`) there is no such connection; then only its lease counts.
- Due times and leases are judged by the database's clock.
- The feed is ordered by transaction numbers. It ends before the oldest transaction that has not ended: a long
  transaction that writes, anywhere on the server, makes the feed wait, and nothing else.

    store                    the verbs, as statements and transactions
    address, session         the URL; connections, and the pool of them
    transaction              one of them, and what became of it when the answer was lost
    commit, facts, changes   a batch: what the judge asks, behind its locks, and what it has decided
    work, workers, tasks     what is claimed, who lives, tasks that change hands
    presence                 the connection that shows that a worker lives, and hears of work
    loans, posting, relay    a transaction for a handler; what programs write in theirs, and how it becomes inputs
    schema                   migrations
    statements, dialect      the `.sql` files; how values travel
    clock                    whose time counts
    faults                   what goes wrong, in the words of `mainspring.errors`
    examination, symptoms    what `mainspring doctor` asks, and what the answers mean
"""

from mainspring.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
