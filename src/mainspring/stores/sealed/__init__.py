"""Sealing between any store and the engine, which sees what it always sees.

bodies    records whose bodies are closed, and opened again
errors    what an error says, sealed like a body
store     a store whose verbs do both
renewals  what was read before a key was renewed is not written under the new one
files     events in a file that outlives its database
"""

from mainspring.stores.sealed.bodies import sealed_input
from mainspring.stores.sealed.store import sealed

__all__ = ["sealed", "sealed_input"]
