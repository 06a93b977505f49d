"""The process in which old code runs: it folds the events that it is given, and answers with the states.

`python -m mainspring.analysis.what_if.old_process`, as `old_code` starts it. It ends with the process that asks.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import msgspec

from mainspring.analysis.what_if.check import entry_of
from mainspring.analysis.what_if.comparison import Comparison, class_of
from mainspring.analysis.what_if.contrast import StopWalkError, Stored
from mainspring.analysis.what_if.old_code import (
    Answer,
    OldCode,
    Part,
    Past,
    is_below,
    is_library,
    read_frame,
    write_frame,
)
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.registry import Registry
from mainspring.errors import CodecError, told
from mainspring.port.records import EventRow, Ref
from mainspring.purity.guarding import Watch


def main() -> None:
    """Answer questions until there are none."""
    # An interrupt at the terminal reaches all processes: who asks ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked, answers = _pipes()
    try:
        first = read_frame(asked)
        if first is None:
            return
        try:
            fold = _Fold(_loaded(msgspec.msgpack.decode(first, type=OldCode)))
        except Exception as error:  # noqa: BLE001  a module may raise anything, and the caller gets it
            write_frame(answers, Answer(failed=told(error)))
            return
        write_frame(answers, Answer())
        questions = msgspec.msgpack.Decoder(list[Part])
        while (frame := read_frame(asked)) is not None:
            write_frame(answers, Answer([fold.past(part) for part in questions.decode(frame)]))
    except BrokenPipeError:
        return  # the caller is gone


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return where questions come from and where answers go. What a module prints goes to where errors go."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return asked, answers


def _loaded(old: OldCode) -> Registry:
    sys.path[:] = old.path
    module, _, attribute = old.address.partition(":")
    app: Any = attrgetter(attribute or "app")(importlib.import_module(module))
    if not isinstance(app, Mainspring):
        raise TypeError(f"{old.address} is a {type(app).__name__} there, not a Mainspring")
    today, folder = Path(old.instead_of), Path(old.folder)
    for name, loaded in list(sys.modules.items()):
        file = getattr(loaded, "__file__", None)
        if file is None or name.partition(".")[0] == "mainspring":
            continue
        place = Path(file).resolve()
        if is_below(place, today) and not is_below(place, folder) and not is_library(place):
            raise ImportError(f"{name} was imported from today's code, {place}, and not from {folder}")
    internals_of(app).registry.add_publication()
    internals_of(app).registry.add_fan_out()
    return internals_of(app).registry


class _Fold:
    """Folds one stream after the other."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._watch = Watch()
        self._walk: _States | None = None
        self._why: str | None = None

    def past(self, part: Part) -> Past:
        if part.row is not None:
            entry = entry_of(self._registry, part.row)
            self._why = entry if isinstance(entry, str) else None
            ref = Ref(part.row.workflow, part.row.id)
            self._walk = None if isinstance(entry, str) else _States(entry, ref, watch=self._watch)
        walk = self._walk
        if walk is None:
            return Past(why=self._why)
        walk.states = {}
        walk.take(part.events)
        if part.ends:
            walk.end()
        return Past(walk.states, walk.gone or next((what for _, what in walk.found), None))


class _States(Comparison):
    """Folds what was recorded, decides nothing, and keeps the state behind each step."""

    states: dict[int, Stored]

    def step(self, group: Sequence[EventRow], begins: bool) -> None:
        head = group[0]
        events = [self._event(row) for row in group]
        guard = self._watch.guard(self.ref.workflow, class_of(events[0].message), class_of(self.state))
        with guard or nullcontext():
            self.state = self._folded(self._seen(group, events, begins), head)
        self._settle(head.version, group[-1].version, None)

    def _settle(self, input: int, version: int, before: Any) -> None:
        super()._settle(input, version, before)
        try:
            kept = self._recorder.snapshot(self.state, version, "")
        except CodecError as error:
            self.gone = f"the state at position {version} cannot be stored: {error}"
            raise StopWalkError from error
        self.states[version] = Stored(kept.type, kept.type_version, kept.body)


if __name__ == "__main__":
    main()
