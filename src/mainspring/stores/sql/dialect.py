"""How a database takes values, and gives rows: all in which the two SQL stores differ besides their statements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import json

from mainspring.port.records import InstanceFilter, InstanceRow, OutputClaim, Ref

Values: TypeAlias = tuple[Any, ...]


class Dialect(ABC):
    """Of SQLite, or of PostgreSQL."""

    one_moment: bool
    """Whether several statements of a read see one moment."""

    @abstractmethod
    def name(self, ref: Ref | None) -> Values:
        """Return the values by which an instance is found; nothing but None for none."""

    @abstractmethod
    def names(self, refs: Sequence[Ref]) -> Any:
        """Return the value by which several are found."""

    @abstractmethod
    def digest(self, text: str) -> Any:
        """Return the value by which a result under a key, or an input by its id, is found."""

    @abstractmethod
    def values(self, values: Sequence[Any]) -> Any:
        """Return a list as one value."""

    @abstractmethod
    def rows(self, rows: Sequence[Sequence[Any]]) -> Values:
        """Return rows of texts and numbers, at least one, as the values of a statement."""

    @abstractmethod
    def inserted(self, rows: Sequence[Sequence[Any]]) -> Values:
        """Return rows of anything, at least one, as the values of a statement that inserts them."""

    @abstractmethod
    def text(self, text: str | None) -> str | None:
        """Return what an error said as it can be kept."""

    @abstractmethod
    def instance(self, row: Sequence[Any]) -> InstanceRow:
        """Return the instance of a row, or raise DamagedRecordError."""

    @abstractmethod
    def output(self, row: Sequence[Any]) -> OutputClaim:
        """Return the output of a row of `outputs`, or raise DamagedRecordError."""

    @abstractmethod
    def narrowing(self, where: InstanceFilter, most: int) -> Sequence[Values]:
        """Return statements that find, each by an index, the keys of all instances that can match; `most` of them."""


def packed(values: Sequence[Any]) -> str:
    """Return values as the JSON array in which they travel.

    >>> packed([(7, "o-1", b"{}", None)])
    '[[7,"o-1","e30=",null]]'
    """
    return _encode(values).decode()


_encode = json.Encoder().encode
