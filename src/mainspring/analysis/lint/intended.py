"""Comments that say a finding is intended.

    # mainspring: intended waits-without-timeout the answer is late, not lost
    # mainspring: intended unhandled-message(OrderShipped, New) the carrier ships no order that was not placed

On the line of the finding, or in the comments and decorators directly above it. In parentheses may stand what the
finding is about; without, all findings of that rule on the line are meant.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from mainspring.analysis.lint.rules import BY_NAME, Finding, Intended, finding
from mainspring.analysis.reading.model import Place
from mainspring.sources import file_source

_COMMENT: Final = re.compile(r"#\s*mainspring:\s*intended\s+([\w-]+)\s*(?:\(([^)]*)\))?\s*[:,]?\s*(.*)")
_ALMOST: Final = re.compile(r"#\s*mainspring:")


class Comment(Struct, frozen=True):
    """One comment, the line of the code that it speaks of, and the class around it."""

    file: str
    line: int
    speaks_of: int
    rule: str
    about: tuple[str, ...]
    reason: str
    owner: str = ""

    def covers(self, found: Finding) -> bool:
        """Return True if a finding is meant."""
        here = found.place.file == self.file and found.place.line in (self.line, self.speaks_of)
        return here and found.name == self.rule and set(self.about) <= set(found.about) and bool(self.reason)


def comments_in(file: str) -> list[Comment]:
    """Return the comments of a file that say something is intended."""
    source = file_source(file)
    if source is None:
        return []
    classes = [node for node in source.tree.body if isinstance(node, ast.ClassDef)]
    found: list[Comment] = []
    for token in tokenize.generate_tokens(iter(source.lines).__next__):
        if token.type != tokenize.COMMENT or not _ALMOST.match(token.string):
            continue
        line = token.start[0]
        parts = _COMMENT.match(token.string)
        rule, about, reason = parts.groups() if parts is not None else (token.string, None, "")
        names = tuple(name.strip() for name in (about or "").split(",") if name.strip())
        code = _speaks_of(source.lines, line)
        owner = next((node.name for node in classes if node.lineno <= code <= (node.end_lineno or 0)), "")
        found.append(Comment(file, line, code, rule, names, reason.strip(), owner))
    return found


def sift(
    findings: Sequence[Finding], files: Iterable[str], classes: Mapping[str, str]
) -> tuple[list[Finding], list[Intended]]:
    """Return the findings that are not intended, with those about comments; and the intended ones.

    `classes` are those that were looked at, with their workflows: a comment in another one is none of theirs.
    """
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
    fallback = next(iter(classes.values()), "")
    left += [
        _unused(classes.get(comment.owner, fallback), comment)
        for comment in comments
        if comment not in used and (not comment.owner or comment.owner in classes)
    ]
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


def _unused(workflow: str, comment: Comment) -> Finding:
    if comment.rule not in BY_NAME:
        what = f"there is no rule {comment.rule}"
    elif not comment.reason:
        what = f"it does not say why {comment.rule} is intended here"
    else:
        what = f"nothing is found by {comment.rule} here that it could mean"
    return finding("MS902", workflow, Place(comment.file, comment.line), what, comment.rule)
