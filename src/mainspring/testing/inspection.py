"""A rehearsal that checks every call of route, decide and evolve: is it pure and deterministic?"""

from __future__ import annotations

import copy
import inspect
from functools import cached_property
from typing import Any

from mainspring.core.difference import diff, show, value_diff
from mainspring.core.events import ENDS
from mainspring.core.fold import fold, placed
from mainspring.core.messages import In, Out
from mainspring.core.workflow import State, Workflow
from mainspring.errors import ImpureCallError, shown
from mainspring.purity.guarding import METHODS, Method, guarded
from mainspring.testing.rehearsal import Rehearsal


class Broken(Exception):  # noqa: N818  it names what is broken, and never leaves the kit
    """A property does not hold; `how` says in which way."""

    def __init__(self, property: str, how: str) -> None:
        self.property = property
        self.how = how
        super().__init__(f"{property}: {how}")


class Declined(Exception):  # noqa: N818  a signal: decide raised what it may raise, and nothing was decided
    """Stands for an error that decide raises on purpose; `error` is that one.

    >>> type(Declined(ValueError("sold out")).error).__name__
    'ValueError'
    """

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(f"{type(error).__name__}: {error}")


class InspectedRehearsal(Rehearsal[In, State, Out]):
    """A rehearsal that raises Broken as soon as a call is not what it should be.

    The workflow gets copies of everything, twice: what it changes is seen, and never reaches the next call. `raises`
    are the errors that decide may raise.

    >>> from mainspring.testing.samples import Count, Counter
    >>> rehearsal = InspectedRehearsal(Counter())
    >>> _ = rehearsal.take(Count("c-1"))
    >>> rehearsal.check_stream()
    """

    def __init__(self, workflow: Workflow[In, State, Out], raises: tuple[type[Exception], ...] = ()) -> None:
        self._raises = raises
        super().__init__(workflow)

    def check_stream(self) -> None:
        """Check what must hold after every step: a replay gives this state, and nothing follows an end."""
        replayed = copy.deepcopy(self.workflow.initial_state)
        for entry in self.entries:
            seen = placed(self._definition, [entry.event], entry.position - 1, entry.time, entry.cause)
            replayed = fold(self.workflow, replayed, seen)
        if not _same(replayed, self.state):
            lines = value_diff(self.state, replayed, "replayed")
            raise Broken("a replay of the stream gives the same state", "\n".join(["The replay differs:", *lines]))
        ends = [entry.position for entry in self.entries if isinstance(entry.event, ENDS)]
        if ends and ends[0] != self.position:
            raise Broken("nothing follows the end", f"The instance ended at position {ends[0]}, and went on.")

    def _around(self, name: str, method: Method) -> Method:
        call = guarded(f"{type(self.workflow).__name__}.{name}", method)

        def inspected(*arguments: Any) -> Any:
            given, itself = copy.deepcopy(arguments), self._attributes()
            try:
                first = call(*given)
            except ImpureCallError as error:
                raise Broken(f"{name} is pure", str(error)) from error
            except Exception as error:
                if name != "decide" or not isinstance(error, self._raises):
                    raise
                _check_unchanged(name, arguments, given)
                raise Declined(error) from error
            _check_unchanged(name, arguments, given)
            if not _same(itself, self._attributes()):
                lines = value_diff(itself, self._attributes(), "after it")
                raise Broken(f"{name} leaves the workflow alone", "\n".join([f"{name} changed self:", *lines]))
            _check_repeated(name, arguments, first, method(*copy.deepcopy(arguments)))
            return first

        return self._remembered(inspected) if name == "decide" else inspected

    def _attributes(self) -> dict[str, Any]:
        """Return what the workflow's own object holds now, without what is only remembered for speed."""
        cls = type(self.workflow)
        # While the twin is being made it has no attributes that could have changed.
        own = vars(getattr(self, "watched", self.workflow))
        kept = {
            name: value
            for name, value in own.items()
            if name not in METHODS.values() and not isinstance(inspect.getattr_static(cls, name, None), cached_property)
        }
        return copy.deepcopy(kept) if kept else {}


def _check_unchanged(name: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    for old, new in zip(before, after, strict=True):
        if not _same(old, new):
            lines = [f"{name} changed what it was given:", *value_diff(old, new, "after it")]
            raise Broken(f"{name} leaves its arguments alone", "\n".join(lines))


def _check_repeated(name: str, arguments: tuple[Any, ...], first: Any, second: Any) -> None:
    if _same(first, second):
        return
    call = f"{name}({', '.join(shown(argument, 200) for argument in arguments)})"
    is_list = isinstance(first, list | tuple) and isinstance(second, list | tuple)
    lines = diff(first, second, text=show, verb="then") if is_list else value_diff(first, second, "then")  # pyright: ignore[reportUnknownArgumentType]
    text = "\n".join([f"{call} gave two answers:", *lines])
    raise Broken(f"{name} is deterministic", text.replace(": expected ", ": first "))


def _same(one: Any, other: Any) -> bool:
    # By their text too: a NaN is not equal to itself, and a class may compare by identity.
    return bool(one == other) or (type(one) is type(other) and repr(one) == repr(other))
