"""Calendars: when something that recurs is due next. Pure: the moment is always given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from mainspring.core.messages import message
from mainspring.errors import SettingError

CatchUp: TypeAlias = Literal["skip", "once", "all"]

CATCH_UPS: Final = ("skip", "once", "all")
SHORTEST_INTERVAL: Final = timedelta(seconds=1)
MICROSECOND: Final = timedelta(microseconds=1)
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@message(name="mainspring.Calendar")
@dataclass(frozen=True)
class Calendar:
    """When a schedule fires, and what it does about the times at which no worker was there to fire.

    >>> Calendar(every_us=3_600_000_000).text
    'every 1:00:00'
    """

    cron: str | None = None
    every_us: int | None = None
    timezone: str = "UTC"
    catch_up: CatchUp = "once"

    @property
    def text(self) -> str:
        """How people write it."""
        if self.cron is None:
            return f"every {timedelta(microseconds=self.every_us or 0)}"
        return self.cron if self.timezone == "UTC" else f"{self.cron} {self.timezone}"

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Return the times behind a moment, in order.

        >>> start = datetime(2026, 3, 28, 12, tzinfo=UTC)
        >>> next(Calendar(cron="30 2 * * *", timezone="Europe/Berlin").after(start)).isoformat()
        '2026-03-29T01:00:00+00:00'
        """
        if self.cron is None:
            yield from self._intervals(moment)
            return
        for at in CronSim(self.cron, moment.astimezone(ZoneInfo(self.timezone))):
            found = at.astimezone(UTC)
            # In the hour that autumn repeats, local time alone points back at its first half.
            if found > moment:
                yield found

    def first_after(self, at: datetime, moment: datetime) -> datetime | None:
        """Return the first time behind a moment, counted from `at`, a time of this calendar. None: never again."""
        if self.cron is None:
            every = timedelta(microseconds=self.every_us or 0)
            return at + every * (max(moment - at, timedelta(0)) // every + 1)
        return next(self.after(moment), None)

    def _intervals(self, moment: datetime) -> Iterator[datetime]:
        while True:
            moment += timedelta(microseconds=self.every_us or 0)
            yield moment


def calendar_of(name: str, cron: str | None, every: timedelta | None, timezone: str, catch_up: str) -> Calendar:
    """Return a calendar as an author wrote it, or say what is wrong with it.

    >>> calendar_of("nightly", "0 3 * * *", None, "Europe/Berlin", "skip").text
    '0 3 * * * Europe/Berlin'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SettingError("A schedule's name", name, "Use up to 100 letters, digits, dots, dashes and underscores.")
    if (cron is None) == (every is None):
        what = "neither cron nor every" if cron is None else "both cron and every"
        raise SettingError(f"Schedule {name}", what, 'Use one of them: cron="0 3 * * *" or every=timedelta(hours=1).')
    if catch_up not in CATCH_UPS:
        raise SettingError(f"Schedule {name}: catch_up", catch_up, "Use one of 'skip', 'once' and 'all'.")
    if every is not None and (not isinstance(every, timedelta) or every < SHORTEST_INTERVAL):
        raise SettingError(f"Schedule {name}: every", every, "Use a timedelta of a second or more.")
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError, TypeError):
        advice = 'Use a name such as "Europe/Berlin", and `pip install tzdata` where the system knows none.'
        raise SettingError(f"Schedule {name}: timezone", timezone, advice) from None
    every_us = None if every is None else every // MICROSECOND
    calendar = Calendar(cron, every_us, timezone, catch_up)
    if cron is not None:
        _check_cron(name, calendar)
    return calendar


def _check_cron(name: str, calendar: Calendar) -> None:
    advice = 'Use minute, hour, day, month and weekday, as in "0 3 * * *" for every night at three.'
    try:
        first = next(calendar.after(datetime(2026, 1, 1, tzinfo=UTC)), None)
    except (CronSimError, AttributeError, ValueError) as error:  # too many digits, too
        raise SettingError(f"Schedule {name}: cron", calendar.cron, f"{error}. {advice}") from None
    if first is None:
        raise SettingError(f"Schedule {name}: cron", calendar.cron, f"It names a day that never comes. {advice}")
