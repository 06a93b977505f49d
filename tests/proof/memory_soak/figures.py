"""What a run of hours comes to: samples, how far they drift, and a picture of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

WARM_UP: Final = 0.25
PART: Final = 0.1
MOST_DRIFT: Final = 0.05
# What a tombstone and its index entries may need, of a job and of the publication beside it, with room to spare.
MOST_BYTES_EACH: Final = 1_500
# The cache of the one connection that writes, and the small ones of those that read.
MOST_CACHED: Final = 64 * 1_024 * 1_024

_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 160, 70, 24


@dataclass(frozen=True)
class Sample:
    """A moment of a run: seconds since its begin, bytes of this process in memory and of the store, jobs ended.

    `cached` is what SQLite holds of that memory. Its cache of pages grows with the file up to a size that is set, which
    takes hours: so it is judged by itself.
    """

    seconds: float
    rss: int
    stored: int
    ended: int
    lanes: int = 0
    cached: int = 0

    @property
    def own(self) -> int:
        """What the process holds beside that cache."""
        return self.rss - self.cached


def rss_bytes() -> int:
    """Return what this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Verdict:
    """What the samples behind the warm-up say: the first tenth of them against the last."""

    rss_before: int
    rss_after: int
    bytes_each: float
    cached: int = 0

    @property
    def drift(self) -> float:
        """By how much the memory has grown."""
        return self.rss_after / self.rss_before - 1

    @property
    def violations(self) -> list[str]:
        """What is not as it must be."""
        found: list[str] = []
        if self.drift > MOST_DRIFT:
            found.append(f"memory grew by {self.drift:.1%}, and {MOST_DRIFT:.0%} is allowed")
        if self.bytes_each > MOST_BYTES_EACH:
            found.append(f"each ended job left {self.bytes_each:.0f} bytes, and {MOST_BYTES_EACH} are allowed")
        if self.cached > MOST_CACHED:
            found.append(f"SQLite holds {self.cached / 1e6:.0f} MB, and {MOST_CACHED / 1e6:.0f} are allowed")
        return found


def judge(samples: list[Sample]) -> Verdict:
    """Compare the begin and the end of what came behind the warm-up.

    >>> steady = [Sample(n, 100, 0, n) for n in range(100)]
    >>> judge(steady).violations
    []
    >>> judge([Sample(n, 100 + n, 0, n) for n in range(100)]).violations
    ['memory grew by 54.3%, and 5% is allowed']
    """
    warm = [sample for sample in samples if sample.seconds >= WARM_UP * samples[-1].seconds]
    part = max(1, round(PART * len(warm)))
    first, last = warm[:part], warm[-part:]
    ended = max(1.0, median(s.ended for s in last) - median(s.ended for s in first))
    grown = median(s.stored for s in last) - median(s.stored for s in first)
    before, after = (round(median(sample.own for sample in samples)) for samples in (first, last))
    return Verdict(before, after, grown / ended, max(sample.cached for sample in warm))


def plot(samples: list[Sample], title: str) -> str:
    """Return a picture of a run: memory above, the store's size below; what is left of the line is the warm-up."""
    memory = _panel([(s.seconds, s.own / 1e6) for s in samples], "memory without SQLite's cache, MB", 0)
    stored = _panel([(s.seconds, s.stored / 1e6) for s in samples], "store, MB", 1)
    height = 2 * (_HEIGHT + 2 * _TOP) + _TOP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + 2 * _LEFT}" height="{height}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{_LEFT}" y="16">{title}</text>\n{memory}{stored}</svg>\n'
    )


def _panel(points: list[tuple[float, float]], name: str, number: int) -> str:
    top = _TOP + number * (_HEIGHT + 2 * _TOP) + _TOP
    end, most = max(x for x, _ in points) or 1, max(y for _, y in points) * 1.1 or 1
    line = " ".join(f"{_LEFT + x / end * _WIDTH:.1f},{top + (1 - y / most) * _HEIGHT:.1f}" for x, y in points)
    warm = _LEFT + WARM_UP * _WIDTH
    return (
        f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#999"/>\n'
        f'<line x1="{warm}" y1="{top}" x2="{warm}" y2="{top + _HEIGHT}" stroke="#999" stroke-dasharray="4"/>\n'
        f'<text x="{_LEFT - 6}" y="{top + 10}" text-anchor="end">{most:.0f}</text>\n'
        f'<text x="{_LEFT - 6}" y="{top + _HEIGHT}" text-anchor="end">0</text>\n'
        f'<text x="{_LEFT}" y="{top - 6}">{name}</text>\n'
        f'<text x="{_LEFT + _WIDTH}" y="{top + _HEIGHT + 16}" text-anchor="end">{end / 60:.0f} min</text>\n'
        f'<polyline fill="none" stroke="#2563eb" stroke-width="1.5" points="{line}"/>\n'
    )
