"""What there is to watch while it runs: a bar with rich, a line that rewrites itself without, and lines in a pipe."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from examples.demo.page import BOLD, DIM, RESET, Page

BAR: Final = 30
CLEAR: Final = "\r\x1b[K"


@dataclass(frozen=True)
class Progress:
    """Where things stand."""

    ended: int
    to_end: int
    waiting: int
    owed: int

    def __str__(self) -> str:
        return f"{self.ended:,} of {self.to_end:,} ended, {self.waiting:,} under way or waiting, {self.owed:,} owed"


class PlainScreen:
    """For a pipe: what happened, line by line."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def live(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def note(self, text: str, style: str = "") -> None:
        self._page.write(text, style)

    def show(self, progress: Progress) -> None:
        """Nothing: a pipe need not see how it goes on."""


class AnsiScreen(PlainScreen):
    """For a terminal without rich."""

    @contextmanager
    def live(self) -> Generator[None]:
        try:
            yield
        finally:
            self._page.out.write(CLEAR)

    def note(self, text: str, style: str = "") -> None:
        self._page.out.write(CLEAR)
        super().note(text, style)

    def show(self, progress: Progress) -> None:
        done = BAR * progress.ended // max(1, progress.to_end)
        bar = f"{'━' * done}{'╌' * (BAR - done)}"
        text = f"  {bar}  {progress}"[: (self._page.width or 80) - 1]
        self._page.out.write(f"{CLEAR}{DIM}{text}{RESET}" if self._page.coloured else f"{CLEAR}{text}")
        self._page.out.flush()


class RichScreen(PlainScreen):
    """For a terminal with rich: a bar at the bottom, and what happened above it."""

    def __init__(self, page: Page) -> None:
        # Here and not above: rich may not be installed.
        from rich import console, progress  # noqa: PLC0415

        super().__init__(page)
        self._console = console.Console(file=page.out, no_color=not page.coloured, highlight=False)
        bar, text = progress.BarColumn(BAR), progress.TextColumn("{task.description}")
        self._bar = progress.Progress(progress.SpinnerColumn(), bar, text, console=self._console, transient=True)
        self._task = self._bar.add_task("", total=None)

    def live(self) -> AbstractContextManager[Any]:
        return self._bar

    def note(self, text: str, style: str = "") -> None:
        self._console.print(text, style="bold" if style == BOLD else None, markup=False, soft_wrap=True)

    def show(self, progress: Progress) -> None:
        self._bar.update(self._task, completed=progress.ended, total=max(1, progress.to_end), description=str(progress))


def screen(page: Page) -> PlainScreen:
    """Return the best there is for this page."""
    if page.width is None:
        return PlainScreen(page)
    return AnsiScreen(page) if importlib.util.find_spec("rich") is None else RichScreen(page)
