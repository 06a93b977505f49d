"""A bank as its sandbox would be: it honours idempotency keys, and its book survives whoever calls it."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIMIT_CENTS: Final = 100_000


@dataclass(frozen=True)
class Answer:
    charge_id: str | None
    reason: str | None


class Bank:
    """Its book is a file with a line for each charge."""

    def __init__(self, book: Path) -> None:
        self._book = book
        self._alone = threading.Lock()

    def charge(self, key: str, order_id: str, amount_cents: int, card: str) -> Answer:
        """Charge a card, once for each key."""
        if card == "stolen":
            return Answer(None, "the card was reported stolen")
        if amount_cents > LIMIT_CENTS:
            return Answer(None, "the amount is over the card's limit")
        charge_id = f"charge-{order_id}"
        with self._alone:
            if all(charge["key"] != key for charge in read_book(self._book)):
                with self._book.open("a") as file:
                    file.write(json.dumps({"key": key, "order_id": order_id, "cents": amount_cents}) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
        return Answer(charge_id, None)


def read_book(book: Path) -> list[dict[str, str]]:
    """Return all charges."""
    return [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []
