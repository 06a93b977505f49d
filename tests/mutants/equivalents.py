"""The mutants that no test can kill, for they do the same: each with its reason, in equivalents.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants.mutations import Mutant

FILE: Final = Path(__file__).with_name("equivalents.toml")


@dataclass(frozen=True)
class Equivalent:
    """A mutant by its module, its function and its changed line, and why it changes nothing."""

    module: str
    function: str
    before: str
    after: str
    reason: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.module, self.function, self.before, self.after)


def equivalents(file: Path = FILE) -> dict[tuple[str, str, str, str], Equivalent]:
    """Return the listed mutants by their keys."""
    listed = [Equivalent(**each) for each in tomllib.loads(file.read_text()).get("mutant", [])]
    return {each.key: each for each in listed}


def stale(listed: Iterable[Equivalent], mutants: Iterable[Mutant]) -> list[Equivalent]:
    """Return the entries that name no mutant: the line was changed, and the reason with it perhaps."""
    mutants = list(mutants)
    modules, keys = {mutant.module.name for mutant in mutants}, {mutant.key for mutant in mutants}
    return [each for each in listed if each.module in modules and each.key not in keys]
