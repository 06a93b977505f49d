"""The statements of the `.sql` files of both SQL stores: each has a name, and what several share stands there once.

-- name: search           a statement, by this name
-- part: matching         lines that statements share
-- with: matching         inside a statement: those lines
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final

_SECTION: Final = re.compile(r"^-- (name|part): (\S+)\n", re.MULTILINE)
_WITH: Final = re.compile(r"^ *-- with: (\S+)$", re.MULTILINE)


def named(text: str) -> dict[str, str]:
    r"""Return the statements of a file, each by the name that stands in the comment before it.

    >>> named("-- part: few\n    LIMIT 9\n-- name: one\n-- What it is for.\nSELECT 1\n    -- with: few\n;\n")
    {'one': 'SELECT 1\n    LIMIT 9\n;'}
    """
    _, *sections = _SECTION.split(text)
    statements: dict[str, str] = {}
    parts: dict[str, str] = {}
    for kind, name, rest in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        lines = "\n".join(line for line in rest.splitlines() if line and not line.startswith("--"))
        if kind == "part":
            parts[name] = lines
        else:
            statements[name] = _WITH.sub(lambda found: parts[found[1]], lines)
    return statements


def read(package: str, files: Sequence[str]) -> Mapping[str, str]:
    """Return the statements of files of a package, by name.

    >>> read("mainspring.stores.sqlite", ["search.sql"])["search"].startswith("SELECT")
    True
    """
    folder = resources.files(package)
    return {
        name: statement for file in files for name, statement in named(folder.joinpath(file).read_text("utf-8")).items()
    }


def backwards(statement: str) -> str:
    """Return a statement that reads from parameter 1 to parameter 13 in the order of keys as one for the other way.

    >>> backwards("SELECT key FROM t WHERE key > ?1 AND key <= ?13 ORDER BY key LIMIT ?12;")
    'SELECT key FROM t WHERE key < ?1 AND key >= ?13 ORDER BY key DESC LIMIT ?12;'
    """
    turned = re.sub(r"(ORDER BY \S+)", r"\1 DESC", statement)
    return re.sub(r"<= ([?$])13\b", r">= \g<1>13", re.sub(r"> ([?$])1\b(?!\d)", r"< \g<1>1", turned))
