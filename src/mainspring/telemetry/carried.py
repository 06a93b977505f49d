"""A handler's function on its way to another process, with the trace and the fields of the current message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mainspring.telemetry.logs import Fields, at_hand


class Carried:
    """A function of a message. Where it is called, its log lines and its spans belong where it was sent from.

    >>> Carried(len, {"workflow": "Orders"}, None)("abc")
    3
    """

    def __init__(self, function: Callable[[Any], Any], fields: Fields | None, trace: str | None) -> None:
        self._function = function
        self._fields = fields
        self._trace = trace

    def __call__(self, message: Any) -> Any:
        at = at_hand.set(self._fields)
        try:
            if self._trace is None:
                return self._function(message)
            from mainspring.telemetry.tracing import carried_on  # noqa: PLC0415  an extra

            return carried_on(self._trace, self._function, message)
        finally:
            at_hand.reset(at)
