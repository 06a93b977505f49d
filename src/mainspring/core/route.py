"""Routing: which instance a message belongs to."""

from __future__ import annotations

from typing import Any, Final

from mainspring.core.workflow import Workflow
from mainspring.errors import InvalidIdError, RouteError

ID_CHARACTERS: Final = 1_000


def route(workflow: Workflow[Any, Any, Any], message: object) -> str | None:
    """Return the checked id that the workflow's route gives, or None when the message is not for it.

    >>> from mainspring.testing.samples import Count, Counter
    >>> route(Counter(), Count("c-1"))
    'c-1'
    """
    try:
        id = workflow.route(message)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise RouteError(type(workflow).__name__, message, error) from error
    return None if id is None else check_id(id)


def check_id(id: object) -> str:
    """Return the id if it can be stored, shown and typed again; raise InvalidIdError otherwise.

    >>> check_id("o-1")
    'o-1'
    """
    if not isinstance(id, str):
        raise InvalidIdError(id, f"is a {type(id).__name__}, not a string", "Return a string from route, or None.")
    if not id:
        raise InvalidIdError(id, "is empty", "Return None from route to skip a message.")
    if len(id) > ID_CHARACTERS:
        raise InvalidIdError(
            id, f"has {len(id):,} characters", f"Use at most {ID_CHARACTERS:,}; a digest of the long value will do."
        )
    if not id.isprintable():
        raise InvalidIdError(id, "holds characters that cannot be seen", "Use visible characters and plain spaces.")
    return id
