"""The kill -9 loop: does what was promised hold when workers and clients die at any moment?

      client ──ask/told──► ledger.jsonl         H: what clients were told
        │
        ▼
      crash.db ◄── worker ──run/effect──► effects.jsonl     E: what handlers really did
        │            ▲
        │            └── SIGKILL, 0.05 to 3 s after it began to serve, again and again; a client now and then too;
        │                SIGSTOP until its lease is over and others have its work, then SIGCONT
        ▼
      samples.jsonl       what stood in the database at each kill

When all is quiet, `checker` reads the three files and the tables with plain SQL and holds them against the invariants
of the design. One handler writes to a table in its result's transaction: it has a row for each result, and no other.
It knows the workflows (`journey`, named by its `Workload`, so that others can be judged by the same checks) and nothing
of the engine: what the engine counts is not asked.

There are four workers side by side and two clients, on one file or, with `--store postgres`, on a server of the run's
own that has no peace either (`upheaval`): it is stopped or crashes every few seconds, and sessions are ended as an
operator would. What clients saw is judged by itself, too (`seen`, and `tests.proof.histories`).

`python -m tests.proof.crash --cycles 500 --seed 7` is a part of `make soak`; `test_kill_loop` runs a few cycles.
"""
