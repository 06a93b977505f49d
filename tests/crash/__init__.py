"""The kill -9 loop: does what was promised hold when workers and clients die at any moment?

      client ──ask/told──► ledger.jsonl         H: what clients were told
        │
        ▼
      crash.db ◄── worker ──run/effect──► effects.jsonl     E: what handlers really did
        │            ▲
        │            └── SIGKILL, 0.05 to 1 s after its start, again and again; the client now and then too
        ▼
      samples.jsonl       what stood in the database at each kill

When all is quiet, `checker` reads the three files and the tables with plain SQL and holds them against the invariants
of the design. One handler writes to a table in its result's transaction: it has a row for each result, and no other.
It knows the workflows (`journey`) and nothing of the engine: what the engine counts is not asked.

With `--store postgres` there are three workers side by side on a server of the run's own, and the server has no peace
either (`upheaval`): it is stopped or crashes every few seconds, and sessions are ended as an operator would.

`python -m tests.crash --cycles 500 --seed 7` is a part of `make soak`; `test_kill_loop` runs 20 cycles on each store.
"""
