"""A chain of lives on one disk, each beginning with what the cut before left, and what the judge says of them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import apsw

from tests.proof.crash import checker
from tests.proof.crash.checker import CHECKS, Check, Checker, Verdict
from tests.proof.crash.evidence import read, sample
from tests.proof.crash.files import Lines, Place
from tests.proof.crash.journey import JOURNEY
from tests.proof.power_cuts.powered_process import CUT, DATABASE_FILES, Wish, come_to_rest, live

# A cut in the making, the opening or the recovery of the file, or in its use.
EARLY, LATE = (1, 80), (80, 1_000)
EARLY_SHARE: Final = 0.3
_HOLD_AT_ANY_MOMENT: Final[tuple[Check, ...]] = (
    checker.acknowledged_once,
    checker.nothing_unasked,
    checker.versions,
    checker.prefixes,
    checker.whole_steps,
    checker.same_id_same_answer,
    checker.causes,
    checker.folds,
    checker.one_committer,
    checker.ends,
    checker.effects,
    checker.logs,
)
ALL: Final = frozenset(title for _, title, _ in CHECKS)
AT_ANY_MOMENT: Final = frozenset(title for _, title, check in CHECKS if check in _HOLD_AT_ANY_MOMENT)


@dataclass
class Result:
    """What was seen in a chain: how many cuts, how much was acknowledged before them, and every broken promise."""

    cuts: int = 0
    acknowledged: int = 0
    events: int = 0
    recovered_logs: int = 0
    violations: list[str] = field(default_factory=list[str])


class Chain:
    """So many cuts on one database, then rest."""

    def __init__(self, folder: Path, seed: str, *, synchronous: str | None = None) -> None:
        self._place = Place(folder / "machine")
        self._left = folder / "left"
        self._looked_at = folder / "looked-at"
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311  no secret
        self._synchronous = synchronous
        self.result = Result()
        self._place.folder.mkdir()

    def run(self, cuts: int) -> Result:
        """Cut so often, or until a promise is broken."""
        for number in range(1, cuts + 1):
            if not self.result.violations:
                self._cut(number)
        if not self.result.violations:
            code = come_to_rest(self._place, cuts + 1)
            if code:
                self._complain(f"the last life did not come to rest (it ended with {code}): {self._log()}")
            self._judge(self._place, ALL, "at rest")
        return self.result

    def _cut(self, number: int) -> None:
        shutil.rmtree(self._left, ignore_errors=True)
        self._left.mkdir()
        cut_at = self._chance.randint(*(EARLY if self._chance.random() < EARLY_SHARE else LATE))
        wish = Wish(number, f"{self._seed}-{number}", cut_at, synchronous=self._synchronous)
        code = live(self._place, self._left, wish)
        if code != CUT:
            self._complain(f"life {number} ended by itself with {code}, before change {cut_at}: {self._log()}")
            return
        self.result.cuts += 1
        for name in (*DATABASE_FILES, f"{DATABASE_FILES[0]}-shm"):
            (self._place.folder / name).unlink(missing_ok=True)
        for path in self._left.iterdir():
            shutil.copy(path, self._place.folder)
        self.result.recovered_logs += (self._left / "crash.db-wal").exists()
        self._look(number, cut_at)

    def _look(self, number: int, cut_at: int) -> None:
        """Judge a copy: looking recovers the log, and that is the next life's to do."""
        shutil.rmtree(self._looked_at, ignore_errors=True)
        shutil.copytree(self._place.folder, self._looked_at)
        place, where = Place(self._looked_at), f"after cut {number}, at change {cut_at}"
        try:
            if not _has_tables(place.database):
                if place.ledger.exists() and '"ok"' in place.ledger.read_text():
                    self._complain(f"{where}: there is no database any more, and inputs were acknowledged")
                return
            found = sample(place, number)
        except apsw.Error as error:
            self._complain(f"{where}: the database cannot be read: {error!r}")
            return
        if found is not None:
            Lines(self._place.samples).add(sync=False, **found)
        self._judge(place, AT_ANY_MOMENT, where)

    def _judge(self, place: Place, titles: frozenset[str], where: str) -> None:
        try:
            evidence = read(place)
            broken = _integrity(place.database)
        except apsw.Error as error:
            self._complain(f"{where}: the database cannot be read: {error!r}")
            return
        if broken != "ok":
            self._complain(f"{where}: integrity_check says {broken}")
        verdicts = [verdict for verdict in Checker(evidence, JOURNEY).verdicts() if verdict.title in titles]
        self.result.acknowledged = sum(asked.answer == "ok" for asked in evidence.asked)
        self.result.events = sum(map(len, evidence.streams.values()))
        for text in _faults(verdicts):
            self._complain(f"{where}: {text}")

    def _complain(self, text: str) -> None:
        self.result.violations.append(f"seed {self._seed}: {text}")

    def _log(self) -> str:
        return self._place.log.read_text()[-3_000:] if self._place.log.exists() else "nothing was logged"


def _faults(verdicts: list[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        for fault in verdict.faults:
            yield f"invariant {fault.invariant}: {fault.ref or ''} {fault.what}"


def _has_tables(database: Path) -> bool:
    if not database.exists():
        return False
    connection = apsw.Connection(str(database))
    try:
        return bool(connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'outbox'").get)
    finally:
        connection.close()


def _integrity(database: Path) -> str:
    connection = apsw.Connection(str(database))
    try:
        return connection.execute("PRAGMA integrity_check").get
    finally:
        connection.close()
