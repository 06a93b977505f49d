"""`python -m tests.proof.fleet.process ROLE URL RELEASE NAME [MISTAKE]`: a worker or a sender, until SIGTERM.

RELEASE is one of the changes of `tests.engine.releases`, or `before`. A sender's trips have ids that begin with NAME.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from itertools import count
from typing import Any, Final, cast

from mainspring import Mainspring
from mainspring.engine.stepping.stepper import Stepper
from tests.engine.releases import Change, begin, release

BEFORE: Final = "before"
PACE_SECONDS: Final = 0.15


async def main(role: str, url: str, name: str, change: Change | None) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    app = release(Mainspring(url), change)
    if role == "worker":
        await app.start(name=name)
        await stopping.wait()
    else:
        await app.start(work=False)
        await send(app, name, change, stopping)
    await app.stop()


async def send(app: Mainspring, name: str, change: Change | None, stopping: asyncio.Event) -> None:
    for number in count():
        await app.send(begin(change, f"{name}-{number}"))
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
    asyncio.run(main(role, url, name, None if of == BEFORE else cast("Change", of)))
