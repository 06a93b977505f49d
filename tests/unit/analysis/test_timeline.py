"""What began and ended over time: nothing is lost when intervals get wider."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mainspring.analysis.figures import timeline
from mainspring.analysis.figures.timeline import INTERVALS_SHOWN, Timeline, Width

MINUTE_US = 60_000_000
BEGIN_US = round(datetime(2026, 1, 7, tzinfo=UTC).timestamp() * 1e6)


def counted(minutes: int, apart: int = 1) -> Timeline:
    """A timeline in which one began every so many minutes, and ended at once."""
    found = Timeline()
    for n in range(minutes):
        found.add(BEGIN_US + n * apart * MINUTE_US, "begun")
        found.add(BEGIN_US + n * apart * MINUTE_US, "completed")
    return found


@pytest.mark.parametrize(
    ("minutes", "width"), [(60, "minute"), (61, "hour"), (60 * 60 + 1, "day"), (60 * 24 * 61, "week")]
)
def test_the_width_is_the_finest_that_shows_all_in_few_intervals(minutes: int, width: Width) -> None:
    told = counted(2, minutes - 1).told()
    assert told.width == width
    assert sum(interval.begun for interval in told.intervals) == 2


def test_weeks_begin_on_mondays() -> None:
    told = counted(2, 60 * 24 * 100).told()
    assert [interval.begin.weekday() for interval in told.intervals] == [0, 0]


def test_too_many_intervals_are_made_wider_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "INTERVALS_KEPT", 50)
    told = counted(500).told(INTERVALS_SHOWN)
    assert told.width == "hour"
    assert sum(interval.begun for interval in told.intervals) == 500
    assert sum(interval.ended["completed"] for interval in told.intervals) == 500


def test_two_timelines_are_merged_in_the_wider_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = counted(3)
    monkeypatch.setattr(timeline, "INTERVALS_KEPT", 50)
    fine.merge(counted(500))
    told = fine.told()
    assert (told.width, sum(interval.begun for interval in told.intervals)) == ("hour", 503)
