"""The testing kit: given / when / then, property fuzzing, purity, rehearsals, histories, and whole-app simulation."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mainspring.core.step import Output, Step
from mainspring.testing.envelopes import envelope
from mainspring.testing.fuzz import Fuzzed, FuzzFailure, fuzz
from mainspring.testing.pure import assert_pure
from mainspring.testing.rehearsal import Rehearsal
from mainspring.testing.scenario import given

if TYPE_CHECKING:
    from mainspring.testing.histories import HistoryChanged, replay_histories, save_histories
    from mainspring.testing.simulation import Call, Timer, World, simulate

__all__ = [
    "Call",
    "FuzzFailure",
    "Fuzzed",
    "HistoryChanged",
    "Output",
    "Rehearsal",
    "Step",
    "Timer",
    "World",
    "assert_pure",
    "envelope",
    "fuzz",
    "given",
    "replay_histories",
    "save_histories",
    "simulate",
]

# A workflow's own tests need the pure core only: the engine is imported for a simulation, or to replay histories.
_LATER = {
    "Call": "simulation",
    "HistoryChanged": "histories",
    "Timer": "simulation",
    "World": "simulation",
    "replay_histories": "histories",
    "save_histories": "histories",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"mainspring.testing.{_LATER[name]}"), name)
    raise AttributeError(f"module 'mainspring.testing' has no attribute {name!r}")
