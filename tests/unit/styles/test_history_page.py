"""The page about the history style names every word that there is, with all its fields."""

import re

from msgspec import Struct

from mainspring.styles import history_words
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "how-to" / "history-style.md"
ROLES = {
    "input": history_words.HistoryInput,
    "event": history_words.HistoryEvent,
    "command": history_words.HistoryCommand,
    "output": history_words.HistoryOutput,
}


def test_the_page_names_all_words_with_their_fields_and_what_they_are() -> None:
    told = re.findall(r"^\| `(\w+)\((.*?)\)` \| ([a-z, ]+) \|", PAGE.read_text(), re.MULTILINE)
    named = {name: word for name, word in vars(history_words).items() if name[0] != "_" and isinstance(word, type)}
    words = [word for word in named.values() if issubclass(word, Struct) and word is not Struct]
    assert sorted(told) == sorted(
        (
            word.__name__,
            ", ".join(word.__struct_fields__),
            ", ".join(role for role, union in ROLES.items() if word in union.__args__),  # type: ignore[attr-defined]
        )
        for word in words
    )
