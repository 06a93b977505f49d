"""The app of the golden databases, as far as a commit knows it, and what its handlers did."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

import mainspring
from mainspring import Context, DoNotRetryError, Mainspring
from tests.proof.crash.files import Lines, read_lines, read_on
from tests.proof.golden import orders
from tests.proof.golden.orders import Pack, Packed


class Effects:
    """A file of what handlers did. They honour their key: what is there is not done again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = Lines(path)
        self._done: set[str] = set()
        self._read = 0

    def make(self, context: Context) -> None:
        key = context.idempotency_key
        self._lines.add(sync=False, call=key)
        # A worker that was relieved may be at the same command as the one that took over: who is second sees the first.
        with self._lines.alone():
            self._read, news = read_on(self._path, self._read)
            self._done |= {line["effect"] for line in news if "effect" in line}
            if key not in self._done:
                self._lines.add(effect=key)


def made(path: Path) -> list[str]:
    """Return the keys of the effects in a file, in order."""
    return [line["effect"] for line in read_lines(path) if "effect" in line]


class Hands:
    """What handlers do with a command, by its path: `held` and `failing` are as they say when the workload ran."""

    def __init__(self, effects: Path, *, troubled: bool = False) -> None:
        self._effects = Effects(effects)
        self._troubled = troubled
        self.held = 0

    async def carry_out(self, path: str, context: Context) -> None:
        if self._troubled and path == "held":
            self.held += 1
            await asyncio.Event().wait()
        if self._troubled and path == "failing":
            raise DoNotRetryError("no box is large enough")
        self._effects.make(context)


def knows_trips() -> bool:
    """Tell whether this commit can run them."""
    return all(hasattr(mainspring, name) for name in ("Ask", "Compensate", "StartChild"))


def shop(url: str, hands: Hands) -> Mainspring:
    """Return the app."""
    app = Mainspring(url)
    app.add(*(workflow() for workflow in orders.WORKFLOWS))

    @app.handler(breaker=None)
    async def pack(command: Pack, context: Context) -> Packed:
        await hands.carry_out(command.path, context)
        return Packed(command.order)

    if knows_trips():
        # Where a commit does not know them, their module cannot be imported.
        importlib.import_module("tests.proof.golden.trip_handlers").add_trips(app, hands)
    return app


def workflows() -> tuple[Any, ...]:
    """Return the workflows of the app."""
    later: Any = importlib.import_module("tests.proof.golden.trips").WORKFLOWS if knows_trips() else ()
    return (*orders.WORKFLOWS, *later)
