"""The testing kit: given / when / then, rehearsals, envelopes."""

from mainspring.testing.envelopes import envelope
from mainspring.testing.rehearsal import Rehearsal
from mainspring.testing.scenario import given

__all__ = ["Rehearsal", "envelope", "given"]
