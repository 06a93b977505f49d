"""What a failed test is chained to: only what its text does not say already."""

from __future__ import annotations

from mainspring.errors import MainspringError

_KIT = "mainspring."


def cause_of(error: BaseException | None) -> BaseException | None:
    """Return an error of the author's own code, from where it enters that code; None for the kit's own errors.

    Their text says all there is to know, and a traceback through the core would only bury it.

    >>> from mainspring.errors import InvalidDecisionError
    >>> cause_of(ValueError("negative amount")), cause_of(InvalidDecisionError("Schedule got both", "Give one."))
    (ValueError('negative amount'), None)
    """
    if error is None or isinstance(error, MainspringError):
        return None
    traceback = error.__traceback__
    while traceback is not None and str(traceback.tb_frame.f_globals.get("__name__")).startswith(_KIT):
        traceback = traceback.tb_next
    return error if traceback is None else error.with_traceback(traceback)
