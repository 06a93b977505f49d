"""Faults at the store's own calls: is every promise kept when any one call of SQLite or of asyncpg fails?

      prepare     a scenario of the crash points is told once without a fault: the reference, and the calls it made
         │
         ▼  for each call k and each kind of fault
      fail        a process works on a copy and tells the script; its k-th call fails, once, and nothing else does
         │        (`sqlite_calls`: statements, fetches, checkpoints; `sqlite_files`: what SQLite asks of the system;
         │        `postgres_calls`: connecting, statements, closing)
         ▼
      go on       the same app goes on; who was told of an error asks again; an app that does not start is started again
         │
         ▼
      judge       that of the crash points: ledger, tables and effects by the invariants, the end as in the reference

`python -m tests.proof.store_faults` does all of it; `test_store_faults` does a spread sample on each store, and shows
that a store that swallows an error is found (`plants`).
"""
