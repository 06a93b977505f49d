"""The testing kit: given / when / then, property fuzzing, purity, rehearsals, envelopes, and whole-app simulation."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mainspring.testing.envelopes import envelope
from mainspring.testing.fuzz import Fuzzed, FuzzFailure, fuzz
from mainspring.testing.pure import assert_pure
from mainspring.testing.rehearsal import Rehearsal
from mainspring.testing.scenario import given

if TYPE_CHECKING:
    from mainspring.testing.simulation import World, simulate

__all__ = ["FuzzFailure", "Fuzzed", "Rehearsal", "World", "assert_pure", "envelope", "fuzz", "given", "simulate"]

# A workflow's own tests need the pure core only: the engine is imported when somebody simulates.
_LATER = {"World", "simulate"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module("mainspring.testing.simulation"), name)
    raise AttributeError(f"module 'mainspring.testing' has no attribute {name!r}")
