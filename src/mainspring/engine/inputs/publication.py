"""Publications: what an app itself publishes, as tiny instances, so that functions get it as durably as others."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any, Final, Union

from mainspring.core.decisions import Complete, Decisions, Publish
from mainspring.core.events import Event
from mainspring.core.workflow import Workflow

PUBLICATION: Final = "mainspring.Publication"


@dataclass(frozen=True)
class Publishing:
    """The only state of a publication.

    >>> Publishing()
    Publishing()
    """


class _Publication(Workflow[Any, Publishing, Any]):
    name = PUBLICATION
    initial_state = Publishing()

    def route(self, message: Any, /) -> str | None:
        """Take nothing by itself: a publication begins under the id of its message."""
        return None

    def decide(self, message: Any, state: Publishing, /) -> Decisions[Any, Any] | None:
        return [Publish(message), Complete()]

    def evolve(self, state: Publishing, event: Event[Any, Any], /) -> Publishing | None:
        return None


def publication_of(message_types: list[type[Any]]) -> Workflow[Any, Any, Any]:
    """Return a workflow that publishes each message of these types once and completes.

    >>> from mainspring.testing.samples import Count
    >>> publication_of([Count]).name
    'mainspring.Publication'
    """
    union: Any = Union[tuple(message_types)]  # noqa: UP007  made of a list
    members = {name: value for name, value in vars(_Publication).items() if not name.startswith("__")}
    members["begins"] = union
    made = types.new_class(
        "Publication", (Workflow[union, Publishing, union],), exec_body=lambda body: body.update(members)
    )
    made.__module__ = __name__
    return made()
