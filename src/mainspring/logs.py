"""What a log says of an error: its text; or its kind alone, while a store is open whose bodies are secret."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

from mainspring.errors.kinds import kind_in, kind_of

# It writes what it says of tasks and callbacks into the line itself: arguments, results, exceptions.
_ASYNCIO: Final = logging.getLogger("asyncio")
_SHOWN_VALUE: Final = re.compile(r"\n|\((?!\))| (?:result|exception)=")


class Quoted:
    """What an error says, on its way to a log as one of its arguments.

    >>> str(Quoted("ValueError: no"))
    'ValueError: no'
    """

    __slots__ = ("text",)

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __str__(self) -> str:
        return str(self.text)


class Unsaid(Exception):  # noqa: N818  it stands in a log for another one
    """An error of which nothing is said but its kind.

    >>> str(Unsaid("ValueError"))
    'ValueError'
    """


class Discretion(logging.Filter):
    """Lets no line say more of an error than its kind, as long as any store has asked for that.

    A log has many writers and one reader, so it holds for the whole process, whichever app a line is about.
    """

    def __init__(self) -> None:
        super().__init__()
        self._asking: set[int] = set()

    @property
    def asked(self) -> bool:
        """Whether a store is open whose bodies are secret."""
        return bool(self._asking)

    def ask(self, store: object) -> None:
        """Ask for it, as long as a store is open. Any thread may: there is nothing to count."""
        self._asking.add(id(store))
        _ASYNCIO.addFilter(self)  # it stays: if no store asks for it, it lets everything through

    def release(self, store: object) -> None:
        """Ask for it no longer."""
        self._asking.discard(id(store))

    def filter(self, record: logging.LogRecord) -> bool:
        if self.asked:
            if record.name == _ASYNCIO.name:
                record.msg, record.args = _SHOWN_VALUE.split(record.getMessage(), 1)[0], ()
            elif isinstance(record.args, tuple):
                record.args = tuple(_said(each) for each in record.args)
            if record.exc_info and record.exc_info[1] is not None:
                # Where it was raised is code, and no value.
                record.exc_info = (Unsaid, Unsaid(kind_of(record.exc_info[1])), record.exc_info[2])
        return True


discretion: Final = Discretion()


def logger(name: str) -> logging.Logger:
    """Return the logger of a part of this library.

    >>> logger("mainspring.engine").name
    'mainspring.engine'
    """
    log = logging.getLogger(name)
    log.addFilter(discretion)
    return log


def _said(value: Any) -> Any:
    if isinstance(value, BaseException):
        return kind_of(value)
    return kind_in(value.text or "") or "not told" if isinstance(value, Quoted) else value
