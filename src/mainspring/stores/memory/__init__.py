"""The store port in dicts and lists: what each verb means, and a store for tests and for work that may be forgotten.

The verbs stand in the files of their roles: work, workers, streams, instances, backlog, tasks, projections, upkeep;
`store` is their sum. Below them: tables (all that is kept), task_table, and what a commit asks (facts) and writes
(changes).
"""

from mainspring.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
