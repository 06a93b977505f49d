"""What docs/reference/wire-format.md says of brokers: its tables and examples, read for the tests that hold it true."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from tests.support.paths import ROOT

PAGE: Final = (ROOT / "docs/reference/wire-format.md").read_text().partition("\n## At a broker\n")[2]
PLACE: Final = re.compile(r"the (\w+)|(\w+) `([^`]+)`")
CODE: Final = re.compile(r"`([^`]+)`")
PYTHON: Final = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

Place = tuple[str, str]
"""Where a part stands: `("header", "ce-id")`, or `("payload", "")` where it needs no name."""


def table(heading: str) -> list[dict[str, str]]:
    """Return the first table below a heading, or the page's first; each row by the names of its columns."""
    text = PAGE if not heading else PAGE.partition(f"\n### {heading}\n")[2]
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    names, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in rows]


def places(broker: str, part: str) -> list[Place]:
    """Return where a part of a message stands at a broker."""
    (cell,) = [row[broker] for row in table("") if row["part"].strip("`") == part]
    return _places(cell)


def written(broker: str, conditions: set[str]) -> set[Place]:
    """Return every place that mainspring fills, in a message of which these conditions are true."""
    known = {"always", "by an instance", "in a reply", "with `replies`", "never", "with a trace"}
    rows = table("")
    assert {row["written"] for row in rows} == known
    return {place for row in rows if row["written"] in conditions for place in _places(row[broker])}


def ids(broker: str) -> list[str]:
    """Return the templates of the ids under which a message is taken that has none of its own."""
    (cell,) = [row[broker] for row in table("What others write") if row["part"] == "`id`"]
    return CODE.findall(cell)


def names(heading: str) -> list[str]:
    """Return the templates of the names that mainspring makes at a broker."""
    return [name for row in table(heading) for name in CODE.findall(row["name"])]


def filled(template: str, **values: str) -> str:
    """Return a template with its `<placeholders>` filled in; one that nobody filled is an error."""
    return re.sub(r"<([\w-]+)>", lambda found: values[found[1].replace("-", "_")], template)


def queue_arguments(version: int) -> dict[str, Any]:
    """Return with which arguments queues of RabbitMQ are declared, by its major version."""
    found = dict(re.findall(r"`(x-[a-z-]+): ([^`]+)`", PAGE))
    limit = {"x-delivery-limit": int(found.pop("x-delivery-limit"))}
    assert found.pop("x-single-active-consumer") == "true"
    return {**found, "x-single-active-consumer": True, **(limit if version >= 4 else {})}


def examples() -> Mapping[str, Any]:
    """Return what the page's Python defines."""
    found: dict[str, Any] = {}
    exec("\n".join(PYTHON.findall(PAGE)), found)  # noqa: S102  our own page
    return found


def commands(program: str) -> list[str]:
    """Return the commands of a program that the page tells to type."""
    return [line for line in PAGE.splitlines() if line.startswith(f"{program} ")]


def _places(cell: str) -> list[Place]:
    if cell == "none":
        return []
    found = [PLACE.fullmatch(one.strip()) for one in cell.split(",")]
    assert all(found), cell
    return [(one[1] or one[2], one[3] or "") for one in found if one is not None]
