"""Comments that say a finding is intended.

    # mainspring: intended waits-without-timeout the answer is late, not lost
    # mainspring: intended unhandled-message(OrderShipped, New) the carrier never ships what nobody ordered

On the line of the finding, or in the comments and decorators directly above it. In parentheses may stand what the
finding is about; without, all findings of that rule on the line are meant.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from mainspring.analysis.lint.findings import Finding, Intended, finding
from mainspring.analysis.lint.rules import BY_NAME
from mainspring.analysis.model import Place

_COMMENT: Final = re.compile(r"#\s*mainspring:\s*intended\s+([\w-]+)\s*(?:\(([^)]*)\))?\s*[:,]?\s*(.*)")
_ALMOST: Final = re.compile(r"#\s*mainspring:")


class Comment(Struct, frozen=True):
    """One comment, and the line of the code that it speaks of.

    >>> Comment("shop.py", 3, 4, "dead-end", (), "the archive").line
    3
    """

    file: str
    line: int
    speaks_of: int
    rule: str
    about: tuple[str, ...]
    reason: str

    def covers(self, found: Finding) -> bool:
        """Tell whether a finding is meant."""
        here = found.place.file == self.file and found.place.line in (self.line, self.speaks_of)
        return here and found.name == self.rule and set(self.about) <= set(found.about) and bool(self.reason)


def comments_in(file: str) -> list[Comment]:
    """Return the comments of a file that say something is intended."""
    try:
        with tokenize.open(file) as source:
            tokens = list(tokenize.generate_tokens(source.readline))
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, SyntaxError, UnicodeDecodeError, tokenize.TokenError):
        return []
    found: list[Comment] = []
    for token in tokens:
        if token.type != tokenize.COMMENT or not _ALMOST.match(token.string):
            continue
        line = token.start[0]
        parts = _COMMENT.match(token.string)
        rule, about, reason = parts.groups() if parts is not None else (token.string, None, "")
        names = tuple(name.strip() for name in (about or "").split(",") if name.strip())
        found.append(Comment(file, line, _speaks_of(lines, line), rule, names, reason.strip()))
    return found


def sift(workflows: str, findings: Sequence[Finding], files: Iterable[str]) -> tuple[list[Finding], list[Intended]]:
    """Return the findings that nobody intends, with those about comments; and the intended ones."""
    comments = [comment for file in sorted(set(files)) for comment in comments_in(file)]
    left: list[Finding] = []
    intended: list[Intended] = []
    used: set[Comment] = set()
    for each in findings:
        covering = next((comment for comment in comments if comment.covers(each)), None)
        if covering is None:
            left.append(each)
        else:
            used.add(covering)
            intended.append(Intended(each, covering.reason))
    left += [_unused(workflows, comment) for comment in comments if comment not in used]
    return left, intended


def _speaks_of(lines: Sequence[str], line: int) -> int:
    """Return the line of code that a comment speaks of: its own, or the next that is neither comment nor decorator."""
    if not lines[line - 1].lstrip().startswith("#"):
        return line
    for number in range(line, len(lines)):
        text = lines[number].strip()
        if text and not text.startswith(("#", "@")):
            return number + 1
    return line


def _unused(workflows: str, comment: Comment) -> Finding:
    if comment.rule not in BY_NAME:
        what = f"there is no rule {comment.rule}"
    elif not comment.reason:
        what = f"it does not say why {comment.rule} is intended here"
    else:
        what = f"nothing is found by {comment.rule} here that it could mean"
    return finding("MS902", workflows, Place(comment.file, comment.line), what, comment.rule)
