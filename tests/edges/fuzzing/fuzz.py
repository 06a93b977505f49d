"""Feeds a reader, and tells what became of it."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.edges.fuzzing.mutating import changed

CORPUS: Final = Path(__file__).parent / "corpus"
POOL: Final = 500
"""So many inputs that led to something new are changed further."""
FAULTS: Final = 5
SHOWN_BYTES: Final = 300


@dataclass(frozen=True)
class Reader:
    """One reader of bytes from outside: what it returns tells what came of them, and how it may refuse them."""

    name: str
    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...] = ()

    @property
    def seeds(self) -> list[bytes]:
        """What it can read, as it stands in the tree."""
        return [path.read_bytes() for path in sorted((CORPUS / self.name).iterdir())]


@dataclass
class Fuzzed:
    """What became of the inputs."""

    reader: str
    tried: int = 0
    accepted: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])

    def line(self) -> str:
        """Return it as a row of a table."""
        return (
            f"| {self.reader} | {self.tried:,} | {self.accepted:,} | {self.tried - self.accepted:,} | "
            f"{len(self.outcomes):,} | {len(self.faults):,} |"
        )


HEAD: Final = "| reader | inputs | read | refused | distinct outcomes | faults |\n|---|---:|---:|---:|---:|---:|"


def fuzz(reader: Reader, inputs: int, seed: int = 0) -> Fuzzed:
    """Feed a reader with its seeds, and with so many inputs made of them; always the same ones for a seed."""
    chance = random.Random(f"{reader.name} {seed}")  # noqa: S311  to be the same again
    seeds = reader.seeds
    pool, found = list(seeds), Fuzzed(reader.name)
    for number in range(len(seeds) + inputs):
        base = chance.choice(chance.choice((seeds, pool)))
        data = seeds[number] if number < len(seeds) else changed(chance, base, pool)
        outcome = _fed(reader, data, found)
        if outcome is None:
            if len(found.faults) >= FAULTS:
                break
        elif outcome not in found.outcomes and len(pool) < POOL:
            pool.append(data)
        if outcome is not None:
            found.outcomes[outcome] += 1
    return found


def _fed(reader: Reader, data: bytes, found: Fuzzed) -> str | None:
    """Return what became of some bytes, and by which way; None: what must not be."""
    found.tried += 1
    try:
        read = reader.read(data)
    except reader.errors as error:
        return f"{type(error).__name__} at {_way(error)}"
    except Exception as error:  # noqa: BLE001  that is what is looked for
        shown = data if len(data) <= SHOWN_BYTES else data[:SHOWN_BYTES] + b"..."
        found.faults.append(f"{reader.name}: {type(error).__name__}: {str(error)[:300]}; from {shown!r}")
        return None
    found.accepted += 1
    return f"read: {read if isinstance(read, str) else type(read).__name__}"


def _way(error: Exception) -> str:
    """Return the lines of ours through which an error came: the same refusal for another reason is another outcome."""
    frames = traceback.extract_tb(error.__traceback__)
    return " ".join(f"{Path(each.filename).stem}:{each.lineno}" for each in frames if "mainspring" in each.filename)
