"""Brokers and workers that are killed in the middle: is anything lost, or done twice?

```
  sender ──posts──► broker ──► worker (SQLite) ──posted──► broker ──► collector
  (again until          ▲            │ a handler with an effect for each: effects.jsonl
   confirmed)           │            │
                     SIGKILL      SIGKILL
```

Sender and collector are in the process of the test, the worker and the broker in processes of their own, which are
killed when so and so many parcels have come out, and started again. The broker syncs its log. When everything has come
out, or nothing moves any more, `judge` holds what was sent against what came, what the handler did and what stands in
the tables. At each kill of a worker it is seen that the broker was told of no message which is not in the database.

`python -m tests.proof.broker_faults` is the long form, with ten thousand parcels for each broker.
"""
