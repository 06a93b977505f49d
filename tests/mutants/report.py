"""What came of a run, as a page: the score of each module, then what survived, each as a diff."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.mutants.equivalents import Equivalent
from tests.mutants.run import Tried


class Report:
    """The mutants that were tried, and the entries of the list of equivalents that are wrong."""

    def __init__(
        self,
        tried: Sequence[Tried],
        listed: Mapping[tuple[str, str, str, str], Equivalent],
        stale: Sequence[Equivalent],
        seconds: float,
    ) -> None:
        self._tried, self._listed, self._stale, self._seconds = tried, listed, stale, seconds

    @property
    def survivors(self) -> list[Tried]:
        """What no test noticed, and what is not known to do the same."""
        return [each for each in self._tried if not each.is_killed and each.mutant.key not in self._listed]

    @property
    def refuted(self) -> list[Tried]:
        """What is listed as doing the same, and was killed all the same. One that only took too long is no proof."""
        return [each for each in self._tried if each.verdict == "killed" and each.mutant.key in self._listed]

    @property
    def is_good(self) -> bool:
        return not self._stale and not self.refuted and not self.survivors

    def lines(self) -> Iterable[str]:
        yield "## Mutants"
        yield f"{len(self._tried):,} mutants in {self._seconds:.0f} s"
        yield ""
        yield f"{'module':40} mutants  killed  timed out  equivalent  survived  score"
        by_module: dict[str, list[Tried]] = {}
        for each in self._tried:
            by_module.setdefault(each.mutant.module.name, []).append(each)
        for name, tried in [*by_module.items(), ("all", list(self._tried))]:
            yield self._row(name, tried)
        for each in self.survivors:
            yield f"\n{each.verdict}: {each.mutant}"
        for each in self.refuted:
            yield f"\nlisted as equivalent, and a test fails with it: {each.mutant}"
        for entry in self._stale:
            yield f"\nlisted as equivalent, and no such mutant: {entry.module} in {entry.function}: {entry.after}"

    def _row(self, name: str, tried: Sequence[Tried]) -> str:
        killed = sum(each.is_killed for each in tried)
        timed_out = sum(each.verdict == "timed out" for each in tried)
        same = len(tried) - killed - self._alive(tried)
        alive = self._alive(tried)
        score = f"{self._score(tried):6.1%}"
        return f"{name:40} {len(tried):7,} {killed:7,} {timed_out:10,} {same:11,} {alive:9,} {score}"

    def _alive(self, tried: Sequence[Tried]) -> int:
        return sum(not each.is_killed and each.mutant.key not in self._listed for each in tried)

    def _score(self, tried: Sequence[Tried]) -> float:
        """Return the share of those that can be killed which were; a sample of equivalents only is a good one."""
        killed, alive = sum(each.is_killed for each in tried), self._alive(tried)
        return killed / (killed + alive) if killed + alive else 1.0
