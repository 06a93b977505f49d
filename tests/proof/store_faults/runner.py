"""Lets one call fail in each run of a scenario, and has the end judged; in processes like those of the crash points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.proof.crash.files import Place
from tests.proof.crash_points.doomed_process import Life, note_of
from tests.proof.crash_points.judge import judged
from tests.proof.crash_points.runner import Prepared, Runner, Store, log_of
from tests.proof.crash_points.scenario import Scenario
from tests.proof.store_faults.calls import Fault, read_note
from tests.proof.store_faults.life import LEVELS, FaultyLife, live

PATIENCE_SECONDS: Final = 30.0
"""What a client has with what does not come: the longest rest of the product is a few seconds."""


@dataclass(frozen=True)
class Run:
    """What came of one fault: what was wrong afterwards."""

    fault: Fault
    wrong: tuple[str, ...]


class FaultRunner(Runner):
    """Runs scenarios on one store, with calls counted at one level."""

    def __init__(self, folder: Path, store: Store, level: str, plant: str | None = None) -> None:
        super().__init__(folder, store, plant)
        self._level = level

    def faults(self, prepared: Prepared, *kinds: str) -> list[Fault]:
        """Return all faults of these kinds that the calls of the run without one can meet.

        Without kinds: of all of them, one for those that nothing tells apart.
        """
        level = LEVELS[self._level]
        return [
            Fault(kind, call)
            for kind in kinds or level.kinds
            for call in prepared.points
            if kind in level.kinds and level.fits(kind, call) and (kinds or level.stands_for(kind, call) == kind)
        ]

    def fail(self, prepared: Prepared, fault: Fault, patience_seconds: float = PATIENCE_SECONDS) -> Run | None:
        """Let a call fail, and judge. None: this run had no such call, or nobody was there to give up."""
        scenario, run = prepared.scenario, self._copy(prepared.template)
        try:
            more = {"plant": self._plant, "fault": fault, "patience_seconds": patience_seconds}
            code = self._lived(self._life(scenario, run, 1, **more))
            happened, _ = read_note(note_of(run))
            if not happened and code == 0:
                return None
            self._store.wait_until_gone(run)
            _, wrong = judged(scenario, run, prepared.ending)
            ended = [] if code == 0 else [f"the process ended with {code}", *log_of(run)]
            return Run(fault, (*wrong, *ended))
        finally:
            self._remove(run)

    def _life(self, scenario: Scenario, place: Place, number: int, **more: Any) -> Life:
        return FaultyLife(scenario.name, place.folder, number, level=self._level, **more)

    def _live(self) -> Callable[[Any], None]:
        return live

    def _passed(self, place: Place) -> list[str]:
        return read_note(note_of(place))[1]
