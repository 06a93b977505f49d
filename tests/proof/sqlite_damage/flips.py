"""One place of a file is damaged, all is read, and what came of it is named."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mainspring.errors import MainspringError, StoreError
from mainspring.port.records import EventRow, Loaded, Ref
from mainspring.stores.sqlite.damage import damage
from tests.proof.crash.checker import CHECKS, Checker, ends, folds, versions
from tests.proof.crash.evidence import read
from tests.proof.crash.files import Place
from tests.proof.crash.journey import JOURNEY
from tests.proof.sqlite_damage.reading import Reading, read_all
from tests.proof.sqlite_damage.subject import DATABASE, LOG

# What may lack rows, where a tree of pages lost them and the doctor says so; streams, loads and rows never do.
LISTINGS: Final = frozenset({"feed", "inbox", "outputs", "timers", "dead_letters", "instances", "tasks", "attributes"})
_WHOLE: Final = frozenset(title for _, title, check in CHECKS if check in (versions, folds, ends))

Spoil = Callable[[bytearray, random.Random], str]


@dataclass
class Tally:
    """What came of the damages, by the file and the kind of damage; and every one that was believed."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    violations: list[str] = field(default_factory=list[str])


def flipped(content: bytearray, chance: random.Random) -> str:
    place = chance.randrange(len(content))
    content[place] ^= chance.randrange(1, 256)
    return f"byte {place}"


def cut(content: bytearray, chance: random.Random) -> str:
    size = chance.randrange(len(content))
    del content[size:]
    return f"cut at {size}"


class Damager:
    """Damages copies of a database: as a killed process left it, or with its log moved."""

    def __init__(self, folder: Path, killed: Path, moved: Path) -> None:
        self._folder = folder / "damaged"
        self._killed = killed
        self._moved = moved
        self._whole = asyncio.run(read_all(_copy(moved, self._folder) / DATABASE))
        self._known = [Ref(row.workflow, row.id) for row in self._whole["instances"]]
        self.tally = Tally()

    def run(self, kind: str, times: int, seed: int) -> Iterator[None]:
        """Damage so often in one way, each time a fresh copy."""
        origin, name, spoil = {
            "a byte of the database": (self._moved, DATABASE, flipped),
            "a byte of the log": (self._killed, LOG, flipped),
            "the database cut short": (self._moved, DATABASE, cut),
            "the log cut short": (self._killed, LOG, cut),
        }[kind]
        for number in range(times):
            chance = random.Random(f"{seed}-{kind}-{number}")  # noqa: S311  no secret
            path = _copy(origin, self._folder) / name
            content = bytearray(path.read_bytes())
            where = spoil(content, chance)
            path.write_bytes(content)
            outcome = self._outcome(in_log=name == LOG)
            self.tally.outcomes[kind, outcome] += 1
            if outcome.startswith("BELIEVED"):
                self.tally.violations.append(f"seed {seed}, {kind}, number {number}, {where}: {outcome}")
            yield

    def _outcome(self, *, in_log: bool) -> str:
        database = self._folder / DATABASE
        try:
            found = asyncio.run(read_all(database, self._known))
        except StoreError:
            return "told"
        except (MainspringError, Exception) as error:  # noqa: BLE001  whatever else it is, it is not clear enough
            return f"BELIEVED, or told unclearly: {error!r}"
        if found == self._whole:
            return "as written"
        if in_log:
            return self._earlier(found)
        differs = {name for name in found if not _same(name, found[name], self._whole[name])}
        if not differs:
            return "without a snapshot"
        if differs <= LISTINGS and any(finding.level == "problem" for finding in damage(database)):
            return "told by the doctor"
        return f"BELIEVED: {', '.join(sorted(differs))}"

    def _earlier(self, found: Reading) -> str:
        """Tell whether this is what the database was after an earlier commit: the first events, and each step whole."""
        feed = self._whole["feed"][: len(found["feed"])]
        if found["feed"] != feed:
            return "BELIEVED: other events"
        verdicts = Checker(read(Place(self._folder)), JOURNEY).verdicts()
        faults = [fault.what for v in verdicts if v.title in _WHOLE for fault in v.faults]
        return f"BELIEVED: {faults[0]}" if faults else "an earlier commit"


def _same(name: str, found: Any, whole: Any) -> bool:
    """Compare, without regard to a snapshot that is not there: more events are read then, and fold to the same."""
    if name != "loaded" or len(found) != len(whole):
        return found == whole
    return all(_same_load(one, other) for one, other in zip(found, whole, strict=True))


def _same_load(found: Loaded | None, whole: Loaded | None) -> bool:
    if found is None or whole is None or found.snapshot is not None:
        return found == whole
    behind: list[EventRow] = found.events[len(found.events) - len(whole.events) :]
    return found.row == whole.row and behind == whole.events


def _copy(origin: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for name in (DATABASE, LOG):
        if (origin / name).exists():
            shutil.copy(origin / name, to)
    return to
