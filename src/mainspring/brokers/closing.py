"""What goes wrong while something is closed or given back keeps nothing else from it; it stands in the log."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mainspring.errors import told
from mainspring.logs import Quoted, logger

log = logger("mainspring.brokers")


@contextmanager
def going_on(what: str) -> Generator[None]:
    """Continue after something that may fail, because the broker itself finds out what is lost by that.

    >>> with going_on("closing a channel"):
    ...     raise OSError("the line is cut")
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  a client's own errors have no common base
        log.debug("%s: %s", what, Quoted(told(error)))
