"""The testing kit: given / when / then, property fuzzing, purity, rehearsals and envelopes."""

from mainspring.testing.envelopes import envelope
from mainspring.testing.fuzz import Fuzzed, FuzzFailure, fuzz
from mainspring.testing.pure import assert_pure
from mainspring.testing.rehearsal import Rehearsal
from mainspring.testing.scenario import given

__all__ = ["FuzzFailure", "Fuzzed", "Rehearsal", "assert_pure", "envelope", "fuzz", "given"]
