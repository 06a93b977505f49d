"""`python -m tests.proof.fleet.process ROLE URL RELEASE NAME [MISTAKE]`: a worker or a sender, until SIGTERM.

RELEASE is one of the changes of `tests.engine.releases`, or `before`; or one of `tests.engine.history_releases`. A
sender's trips have ids that begin with NAME.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from itertools import count
from typing import Any, Final, Literal, TypeAlias, get_args

import pytest

from mainspring import Mainspring
from mainspring.engine.stepping.stepper import Stepper
from mainspring.styles.history_words import StartWorkflow
from tests.engine.history_releases import HistoryRelease, history_release, words_of_before
from tests.engine.releases import CHANGES, Change, begin, release

Release: TypeAlias = Change | Literal["before"] | HistoryRelease
RELEASES: Final[tuple[Release, ...]] = (*CHANGES, "before", *get_args(HistoryRelease))
PACE_SECONDS: Final = 0.15


def app_of(url: str, of: Release) -> Mainspring:
    """Return the app of a release."""
    if of in ("history", "history before"):
        return history_release(Mainspring(url), of)
    return release(Mainspring(url), None if of == "before" else of)


def first(of: Release, id: str) -> Any:
    """Return the message that begins a trip in a release."""
    if of in ("history", "history before"):
        return StartWorkflow(id, None)
    return begin(None if of == "before" else of, id)


async def main(role: str, url: str, name: str, of: Release) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    if of == "history before":
        words_of_before(pytest.MonkeyPatch())  # for as long as this process lives
    app = app_of(url, of)
    if role == "worker":
        await app.start(name=name)
        await stopping.wait()
    else:
        await app.start(work=False)
        await send(app, name, of, stopping)
    await app.stop()


async def send(app: Mainspring, name: str, of: Release, stopping: asyncio.Event) -> None:
    for number in count():
        await app.send(first(of, f"{name}-{number}"))
        try:
            # The pace of the load, and no signal: so many trips a second.
            await asyncio.wait_for(stopping.wait(), PACE_SECONDS)
        except TimeoutError:
            continue
        return


def bury_what_is_strange() -> None:
    """Plant a mistake: what came for an instance that cannot be read here becomes a dead letter."""
    stepper: Any = Stepper

    def bury(self: Any, lane: Any, pending: Any) -> None:
        self._commit(lane, pending, self._units.buried(pending, lane.elsewhere.why), "dead letter")

    stepper._leave = bury  # noqa: SLF001  a mistake is planted in the inside of things


if __name__ == "__main__":
    role, url, of, name, *mistake = sys.argv[1:]
    if mistake:
        bury_what_is_strange()
    asyncio.run(main(role, url, name, next(one for one in RELEASES if one == of)))
