"""The statements of `.sql` files: each has a name, and what several share stands there once.

-- name: search           a statement, by this name
-- part: matching         lines that statements share
-- with: matching         inside a statement: those lines
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources


def named(text: str) -> dict[str, str]:
    r"""Return the statements of a file, each by the name that stands in the comment before it.

    >>> named("-- part: few\n    LIMIT 9\n-- name: one\n-- What it is for.\nSELECT 1\n    -- with: few\n;\n")
    {'one': 'SELECT 1\n    LIMIT 9\n;'}
    """
    statements: dict[str, list[str]] = {}
    parts: dict[str, list[str]] = {}
    lines: list[str] = []  # whatever stands before the first name is about the file
    for line in text.splitlines():
        mark, _, name = line.strip().partition(": ")
        match mark:
            case "-- name":
                lines = statements[name] = []
            case "-- part":
                lines = parts[name] = []
            case "-- with":
                lines += parts[name]
            case _ if line and not line.startswith("--"):
                lines.append(line)
            case _:
                pass
    return {name: "\n".join(lines) for name, lines in statements.items()}


def read(package: str, files: Sequence[str]) -> Mapping[str, str]:
    """Return the statements of files of a package, by name.

    >>> read("mainspring.stores.sqlite", ["search.sql"])["search"].startswith("SELECT")
    True
    """
    folder = resources.files(package)
    texts = (folder.joinpath(file).read_text("utf-8") for file in files)
    return {name: statement for text in texts for name, statement in named(text).items()}
