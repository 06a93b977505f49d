"""What a log says, as a signal. caplog takes a record after a logger's own handlers: never wait here and read there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager


class Heard(logging.Handler):
    """Keeps the records of a logger that say a thing, and signals the first of them once it is kept."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.first = threading.Event()
        self.records: list[logging.LogRecord] = []
        self._text = text

    def emit(self, record: logging.LogRecord) -> None:
        if self._text in record.getMessage():
            self.records.append(record)
            self.first.set()


@contextmanager
def hearing(name: str, text: str = "") -> Generator[Heard]:
    """Listen to a logger."""
    heard = Heard(text)
    logging.getLogger(name).addHandler(heard)
    try:
        yield heard
    finally:
        logging.getLogger(name).removeHandler(heard)
