"""What handlers do to the world, with a crash point before and after each call and each effect."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mainspring import Context
from tests.proof.crash.files import Place
from tests.proof.crash.worker import World
from tests.proof.crash_points.points import Points


class HandlerEffects:
    """The handlers' side of one life of a process."""

    def __init__(self, place: Place, points: Points, life: int, *, before: bool) -> None:
        self._world = World(place.effects)
        self._points = points
        self._life = life
        self.before = before

    @contextmanager
    def call(self, context: Context) -> Generator[None]:
        """Be called, and write it down; also that it failed."""
        name = type(context.envelope.message).__name__
        self._points.reach(f"before the handler of {name}")
        self._world.called(context, self._life)
        try:
            yield
        except Exception:
            self._world.failed(context)
            raise
        self._points.reach(f"after the handler of {name}")

    def make(self, context: Context) -> None:
        """Have the effect, unless it was had under this key."""
        self._points.reach("before the effect")
        self._world.make(context)
        self._points.reach("after the effect")
