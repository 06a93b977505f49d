"""The store port in dicts and lists: what each verb means, and a store for tests and for work that may be forgotten."""

from mainspring.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
