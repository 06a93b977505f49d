"""The words of the glossary are those of the API."""

import re
from importlib import import_module
from typing import Any

import pytest

import mainspring
from mainspring import Mainspring
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "concepts" / "glossary.md"
ROW = re.compile(r"^\| (?P<word>[a-z -]+) \| (?P<meaning>.+) \| (?P<names>`.+`) \|$", re.MULTILINE)
MODULES = ("errors", "flows")  # public, and reached by their own names
# Said of an app once, and no words that a user meets in a conversation about workflows.
PLAIN = {
    "blocking",
    "bulk",
    "discard_dead_letter",
    "ended",
    "external",
    "hook",
    "instance_at",
    "instances",
    "post",
    "prometheus_collector",
    "purge",
    "reply",
    "resource",
    "send_many",
    "stats",
    "stop",
    "transaction",
}


def rows() -> list[tuple[str, list[str]]]:
    return [(row["word"], re.findall(r"`([^`]+)`", row["names"])) for row in ROW.finditer(PAGE.read_text())]


def resolved(name: str, app: Mainspring) -> Any:
    """Return what a name of the API names; one of an app may be its attribute alone."""
    first, _, rest = name.partition(".")
    if first in MODULES:
        return getattr(import_module(f"mainspring.{first}"), rest)
    if first == "Mainspring" and rest:
        return getattr(app, rest)
    found = getattr(mainspring, first)
    return getattr(found, rest) if rest else found


@pytest.mark.parametrize(("word", "names"), rows(), ids=[word for word, _ in rows()])
def test_a_word_is_found_in_the_api(word: str, names: list[str]) -> None:
    app = Mainspring("memory://")
    for name in names:
        assert name.partition(".")[0] in (*dir(mainspring), *MODULES)
        assert resolved(name, app) is not None


def test_every_word_stands_once_and_in_its_place() -> None:
    words = [word for word, _ in rows()]
    assert len(words) == PAGE.read_text().count("\n| ") - 1, "a row that is none"
    assert words == sorted(set(words))


def test_what_an_app_offers_is_explained() -> None:
    app = Mainspring("memory://")
    named = {name.partition(".")[2] for _, names in rows() for name in names if name.startswith("Mainspring.")}
    offered = {name for name in (*dir(Mainspring), *vars(app)) if not name.startswith("_")}
    assert offered - named - PLAIN == set()
    assert offered >= PLAIN, "what is no more needs no excuse"


def test_what_an_author_decides_and_folds_is_explained() -> None:
    named = {name for _, names in rows() for name in names}
    decisions = {"Send", "Publish", "Reply", "Schedule", "CancelSchedule", "Complete", "Fail", "Ask", "CloseTask"}
    assert decisions | {"StartChild", "FanOut", "Compensate"} <= named
