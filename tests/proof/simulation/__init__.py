"""The deterministic simulator: the real engine in a world that goes wrong, all of it from one seed.

      plan          what a seed chooses: processes, instances, kinds of faults, how long they last
        ▼
      world         starts everything, makes trouble, then peace, and waits until all is quiet
        │
        ├── loop        asyncio without a selector: virtual time, parties that die or are held at any await
        ├── node        a process: the real app and engine on a runtime of its own, its clock set wrong
        ├── store       its way to the database: delays, errors before, lost answers after, short claims
        ├── database    the memory store's tables, shared by all processes, and the log of every commit
        ├── post        a broker: delivers again, loses acknowledgements and confirmations
        ├── app, cast   workflows and handlers, and the outside world that handlers change
        └── clients     who sends, answers tasks, and operates, and the ledger of what they were told
        ▼
      judge         checks (what holds for all workflows) · cases (sagas, tasks, children …) · edges (versions, purging,
        │           brokers) · the kill loop's checks
        ▼
      shrink        the smallest plan that still fails, its story, and the command that repeats it

What runs on the loop is the engine itself, with its own housekeeping: heartbeats, takeovers, claims, projections. One
process is one context: whatever it starts carries that context, so the loop knows whose turn it is about to run. A
crash drops all turns of a process from some turn on; what it had asked of the database is still done there.

Nothing here depends on real time, addresses or the hash seed: the same seed gives the same trace, in any process.

`python -m simulate --seeds 10000` is the long form, a part of `make soak`; `test_simulation` runs 120 seeds. That a
mistake would be noticed is proven by `plants`: `python -m simulate --plants` puts them in one by one (`hunt`).
"""
